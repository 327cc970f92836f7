// Starts the worker that seals and opens the frames of one stay, and asks it.

let policy;
let wanted; // the URL that the policy permits

/** The worker's URL. A page that requires trusted types must allow the policy `conclave`, which permits nothing else. */
function trusted(url) {
  policy ??= globalThis.trustedTypes?.createPolicy('conclave', {
    createScriptURL(asked) {
      if (asked !== wanted) throw new TypeError(`${asked} is not the library’s worker`);
      return asked;
    },
  });
  wanted = url;
  return policy ? policy.createScriptURL(url) : url;
}

/** The worker that seals and opens frames, once it is ready. `url` is where the app serves it. */
export function startWorker(url) {
  const worker = new Worker(trusted(url), { type: 'module' });
  return new Promise((resolve, reject) => {
    worker.addEventListener('message', () => resolve(worker), { once: true });
    worker.addEventListener('error', () => reject(new Error('The encryption worker did not start.')), { once: true });
  });
}

const ANSWER_MS = 3_000;

/** The answers of the worker. */
export class WorkerAnswers {
  #worker;
  #waiting = new Map();
  #next = 1;

  constructor(worker) {
    this.#worker = worker;
    worker.addEventListener('message', ({ data }) => {
      if (data.type === 'answer') this.#waiting.get(data.id)?.(data.result);
    });
  }

  /** Resolves with the worker's answer to `message`; with undefined if it can give none, or is gone. */
  ask(message) {
    const id = this.#next++;
    return new Promise((resolve) => {
      const timer = setTimeout(() => settle(undefined), ANSWER_MS);
      const settle = (result) => {
        clearTimeout(timer);
        this.#waiting.delete(id);
        resolve(result);
      };
      this.#waiting.set(id, settle);
      this.#worker.postMessage({ ...message, id });
    });
  }
}
