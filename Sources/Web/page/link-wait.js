// The view of somebody who waits: for a call of a lasting link to start, or to be let into a call.

import { byID, setText } from './dom.js';
import { plainName } from './link.js';
import * as session from './session.js';
import { t } from './texts.js';
import { show } from './views.js';

const ASK_MS = 5_000;
const PASSING = ['error.timeout', 'error.rate.limited'];

/** The call of the link has not started yet; `name` is the link's owner, as the server says. */
export function showLinkWait(name = '') {
  const shown = plainName(name);
  setText(byID('waiting-title'), shown ? t('links.wait-for', { name: shown }) : t('links.wait'));
  setText(byID('waiting-lead'), t('links.wait-lead'));
  if (byID('waiting').hidden) show('waiting');
}

/** This guest is at the door of a call. */
export function showDoorWait() {
  setText(byID('waiting-title'), t('waiting.title'));
  setText(byID('waiting-lead'), t('waiting.lead'));
  show('waiting');
}

/** Calls `stop` when the person presses *Stop waiting*. Returns a function that ends that. */
export function onStop(stop) {
  const until = new AbortController();
  byID('waiting-stop').addEventListener('click', stop, { signal: until.signal });
  return () => until.abort();
}

const pause = (ms, signal) =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => resolve(clearTimeout(timer)), { once: true });
  });

/**
 * A guest's `{token, user, call, link}`, as soon as a call of the lasting link `id` runs; undefined when `signal` says that the guest has had enough. Rejects as
 * `session.guestToken` does, but not for what may pass once the waiting has begun.
 */
export async function guestWhenStarted(id, name, signal) {
  let isWaiting = false;
  while (!signal.aborted) {
    try {
      const granted = await session.guestToken({ lasting: id, name });
      if (signal.aborted) return undefined;
      if (granted.token) return granted;
      isWaiting = true;
      showLinkWait(granted.name);
    } catch (error) {
      if (!isWaiting || !PASSING.includes(error.message)) throw error;
    }
    await pause(ASK_MS, signal);
  }
  return undefined;
}
