// Sends a recording that is whole on this device: first what the server does not have of it yet, then the key. Without a network it waits.

const RETRY_MS = 3_000;
/** Errors of requests that pass by themselves. */
export const PASSING = ['connection-lost', 'timeout', 'server.busy', 'server.draining', 'rate.limited', 'recording.incomplete', 'recording.unavailable'];
/** States of an upload that goes no further. */
export const ENDS = ['lost', 'ended', 'refused'];

/** The server does not take the recording. `problem` says why, as `wordsForProblem` takes it. */
export class Undeliverable extends Error {
  constructor(upload) {
    super(upload.state);
    this.problem = problemOf(upload);
  }
}

/** Why an upload goes no further: the server's error, or the state. */
export const problemOf = ({ state, error }) => (error ? { error } : { code: state });

/** Resolves once everything is stored at the server. */
function uploaded(upload, told, signal) {
  return new Promise((resolve, reject) => {
    const end = (action) => (value) => {
      upload.removeEventListener('change', look);
      signal.removeEventListener('abort', stop);
      action(value);
    };
    const stop = end(() => reject(signal.reason));
    const look = () => {
      const { state, progress } = upload;
      told(state, progress);
      if (state === 'stored') end(resolve)(undefined);
      else if (ENDS.includes(state)) end(reject)(new Undeliverable(upload));
    };
    upload.addEventListener('change', look);
    signal.addEventListener('abort', stop);
    look();
  });
}

/** Resolves after `ms`, or when it is stopped. */
const pause = (ms, signal) =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => (clearTimeout(timer), resolve(undefined)), { once: true });
  });

/**
 * Resolves with how many devices of each reader can open it (see `Recordings.send`), or with what `send()` resolves with in place of that. `told(state, {sealed, stored})` is
 * called with what the upload does: its `state`, or `waiting` for another attempt to send. Rejects with an error that does not pass, or with the reason of `signal`.
 */
export async function deliver(recordings, id, { onlyOwn = false, send = () => recordings.send(id, { onlyOwn }), told = (_state, _progress) => {}, signal = new AbortController().signal } = {}) {
  const upload = await recordings.upload(id);
  for (;;) {
    signal.throwIfAborted();
    await uploaded(upload, told, signal);
    try {
      return await send();
    } catch (error) {
      if (!PASSING.includes(error.code)) throw error;
      told('waiting', upload.progress);
      await pause(RETRY_MS, signal);
    }
  }
}
