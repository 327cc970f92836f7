// A call that everybody else has left. If a link is valid, the server keeps the call for an hour (protocol section 4, "Links"): the person is asked, and
// without an answer leaves as from any other call.

const PATIENCE_MS = 120_000; // as `aloneSeconds`

/** Whether others were in the call, and nobody is there, rings or may return. An `aloneSeconds` given in `start` is the app's decision and is respected. */
export function isDeserted({ answeredAt, policy, others }) {
  if (answeredAt === undefined || policy.aloneSeconds !== undefined) return false;
  return others.every(({ state, participants }) => participants.length === 0 && state !== 'ringing');
}

export class Alone {
  /** Whether the person must be asked. */
  isAsking = false;
  #leave;
  #isAlone = false;
  #timer;

  /** `leave()` is called if the person has not answered. */
  constructor({ leave }) {
    this.#leave = leave;
  }

  /** The call's state is `facts`; must not be called once it is over. */
  look(facts) {
    const isAlone = isDeserted(facts);
    if (isAlone === this.#isAlone) return;
    this.stop();
    this.#isAlone = isAlone;
    if (!isAlone) return;
    this.isAsking = true;
    this.#timer = setTimeout(() => this.#leave(), PATIENCE_MS);
  }

  /** The person waits for others. */
  wait() {
    this.isAsking = false;
    clearTimeout(this.#timer);
  }

  /** The call is over, or somebody is there. */
  stop() {
    this.wait();
    this.#isAlone = false;
  }
}
