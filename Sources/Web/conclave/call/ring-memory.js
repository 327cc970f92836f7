// The calls whose ring envelopes this device has used: a replayed one would bring back old seconds of a caller.

const KEPT = 1_000;
const KEPT_MS = 30 * 24 * 3_600_000;

export class RingMemory {
  #store;
  #owner;

  constructor(store, { user, device }) {
    this.#store = store;
    this.#owner = `${user}/${device}>`;
  }

  /** Notes that the envelope of `call` is used; false if it already was. */
  async add(call) {
    const name = `${this.#owner}${call}`;
    if (await this.#store.get('rings', name)) return false;
    await this.#store.put('rings', name, { lastUsed: Date.now() });
    await this.#forgetOld();
    return true;
  }

  async #forgetOld() {
    this.#store.prune('rings', Date.now() - KEPT_MS);
    const known = await this.#store.entries('rings', this.#owner);
    const surplus = known.sort(([, a], [, b]) => b.lastUsed - a.lastUsed).slice(KEPT);
    for (const [name] of surplus) await this.#store.delete('rings', name);
  }
}
