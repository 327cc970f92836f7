// Requesting a missing key (protocol section 5, "Envelope"): three times, 2 s apart, not all devices at once.

const TRIES = 3;
const APART_MS = 2_000;
const SPREAD_MS = 500;

/**
 * `request(path, body)` sends to `/app/calls/{id}/…`. A key is missing while its epoch is the newest of `lists`, and `epochs` has no secret of it. After three
 * requests in vain `warnings` says `no-key`.
 */
export class KeyDemands {
  #request;
  #lists;
  #epochs;
  #warnings;
  #timers = new Map();
  #done = new Set();
  #isClosed = false;

  constructor({ request, lists, epochs, warnings }) {
    this.#request = request;
    this.#lists = lists;
    this.#epochs = epochs;
    this.#warnings = warnings;
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

  #isMissing(epoch) {
    return this.#lists.newest?.epoch === epoch && !this.#epochs.get(epoch)?.hasSecret;
  }

  #wait(epoch, ms, tries) {
    const timer = setTimeout(() => {
      this.#timers.delete(epoch);
      if (!this.#isMissing(epoch)) return;
      if (tries === 0) return this.#warnings.warn('no-key', { epoch });
      this.#request('keys/request', { epoch }).catch(() => {});
      this.#wait(epoch, APART_MS, tries - 1);
    }, ms);
    this.#timers.set(epoch, timer);
  }
}
