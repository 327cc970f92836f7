// The epochs of a call that this device remembers: the one in use, those that come next, and for a moment the one before.

import { callCodeOf } from './transcript.js';

const OVERLAP_MS = 10_000; // how long lists stay after their epoch
const AHEAD = 8; // announced and never switched to: more are not kept

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

  /** Whether a device that is not verified, where only verified ones are talked to, is on the list in use or on one that comes next. */
  get hasUnverified() {
    return [...this.values()].some((record) => record.epoch >= this.current && record.devices.some(({ problem }) => problem === 'unverified'));
  }

  /** The call code of `call`; empty without an epoch. */
  async code(call) {
    return this.inUse ? callCodeOf(call, this.inUse.roster.hash) : '';
  }

  /** A record that comes when all are forgotten is over at once. */
  add(record) {
    if (this.#isClosed) return record.forget();
    this.set(record.epoch, record);
    return this.#drop((epoch) => epoch > this.current && epoch <= record.epoch - AHEAD);
  }

  /** `record` is in use from now on: the secrets before it are deleted, their lists a little later, when `after(ms, action)` says so. */
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
