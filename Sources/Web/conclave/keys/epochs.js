// The epochs of a call that this device remembers: the one in use, the next ones, and for a moment the previous one.

import { callCodeOf } from '../wire/index.js';

const OVERLAP_MS = 10_000; // how long lists stay after their epoch
const AHEAD = 8; // announced but never in use: more are not kept

/** The `Epoch`s of a call, by number. */
export class Epochs extends Map {
  /** The number of the epoch in use. */
  current = 0;

  #isClosed = false;

  get inUse() {
    return this.get(this.current);
  }

  /** The list of the epoch in use: everybody who can decrypt. */
  get list() {
    return this.inUse?.list ?? [];
  }

  /** Whether an unverified device, although only verified ones are sent to, is on the list in use or on a following one. */
  get hasUnverified() {
    return [...this.values()].some((record) => record.epoch >= this.current && record.devices.some(({ problem }) => problem === 'unverified'));
  }

  /** The call code of `call`; empty without an epoch. */
  async code(call) {
    return this.inUse ? callCodeOf(call, this.inUse.roster.hash) : '';
  }

  /** A record that arrives after all were forgotten is over immediately. */
  add(record) {
    if (this.#isClosed) return record.forget();
    this.set(record.epoch, record);
    return this.#drop((epoch) => epoch > this.current && epoch <= record.epoch - AHEAD);
  }

  /** `record` is in use from now on: earlier secrets are deleted, their lists a little later, scheduled by `after(ms, action)`. */
  use(record, after) {
    this.current = record.epoch;
    for (const [epoch, old] of this) if (epoch < record.epoch) old.forget();
    after(OVERLAP_MS, () => this.#drop((epoch) => epoch < record.epoch));
  }

  /** The stay is over. */
  close() {
    this.#isClosed = true;
    this.#drop(() => true);
  }

  #drop(isOver) {
    for (const [epoch, record] of this) {
      if (!isOver(epoch)) continue;
      record.forget();
      this.delete(epoch);
    }
  }
}
