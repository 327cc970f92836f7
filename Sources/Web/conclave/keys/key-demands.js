// Requesting a missing key (protocol section 5, "Envelope"): three times, 2 s apart, not all devices at once.

const TRIES = 3;
const APART_MS = 2_000;
const SPREAD_MS = 500;

/** `ask(epoch)` requests the key, `isMissing(epoch)` says whether it is still wanted, `failed(epoch)` is called after three requests in vain. */
export class KeyDemands {
  #ask;
  #isMissing;
  #failed;
  #timers = new Map();
  #done = new Set();
  #isClosed = false;

  constructor({ ask, isMissing, failed }) {
    this.#ask = ask;
    this.#isMissing = isMissing;
    this.#failed = failed;
  }

  /** Requests an epoch's key unless that is under way. With `isAnew` also after three requests in vain. */
  begin(epoch, { isAnew = false } = {}) {
    if (this.#isClosed || this.#timers.has(epoch) || (this.#done.has(epoch) && !isAnew)) return;
    this.#done.add(epoch);
    this.#wait(epoch, Math.random() * SPREAD_MS, TRIES);
  }

  close() {
    this.#isClosed = true;
    for (const timer of this.#timers.values()) clearTimeout(timer);
    this.#timers.clear();
  }

  #wait(epoch, ms, tries) {
    const timer = setTimeout(() => {
      this.#timers.delete(epoch);
      if (!this.#isMissing(epoch)) return;
      if (tries === 0) return this.#failed(epoch);
      this.#ask(epoch);
      this.#wait(epoch, APART_MS, tries - 1);
    }, ms);
    this.#timers.set(epoch, timer);
  }
}
