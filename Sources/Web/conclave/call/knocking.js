// A guest who waits at the door of a call until a member admits it (protocol section 4, "Guests").

import { RequestError } from '../connection/index.js';

const AGAIN_MS = 20_000; // the server forgets a guest that has not knocked for a minute
const PASSING = ['connection-lost', 'timeout', 'rate.limited', 'server.busy'];

const refused = (code) => new RequestError({ code, message: 'No member has admitted this guest.' });

/** Events: `change`, when the waiting begins or is over. */
export class Knocking extends EventTarget {
  /** @type {{resolve: (value?: unknown) => void, reject: (error: unknown) => void, timer: any} | undefined} */
  #answer;

  #isStopped = false;

  /** Whether this guest waits. */
  get isWaiting() {
    return Boolean(this.#answer);
  }

  /** Knocks with `request()` until a member has admitted this guest. Rejects if none does, or the server accepts no knock. */
  async wait(request) {
    if (this.#isStopped) throw refused('call.not-admitted');
    const answer = { resolve: (_value) => {}, reject: (_error) => {}, timer: undefined };
    const answered = new Promise((resolve, reject) => Object.assign(answer, { resolve, reject }));
    this.#answer = answer;
    this.#changed();
    this.#knock(request, answer);
    try {
      await answered;
    } finally {
      clearTimeout(answer.timer);
      this.#answer = undefined;
      this.#changed();
    }
  }

  /** `guest.knock-over` about this guest: `admitted`, `refused` or `over`. */
  answered(outcome) {
    if (outcome === 'admitted') this.#answer?.resolve();
    else this.#answer?.reject(refused(outcome === 'refused' ? 'guest.refused' : 'call.not-admitted'));
  }

  /** This guest waits no longer. */
  stop() {
    this.#isStopped = true;
    this.#answer?.reject(refused('call.not-admitted'));
  }

  async #knock(request, answer) {
    try {
      await request();
    } catch (error) {
      if (!PASSING.includes(error.code)) return answer.reject(error);
    }
    if (this.#answer === answer) answer.timer = setTimeout(() => this.#knock(request, answer), AGAIN_MS);
    return undefined;
  }

  #changed() {
    this.dispatchEvent(new Event('change'));
  }
}
