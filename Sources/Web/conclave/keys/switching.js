// Which key this device sends under, and when it sends nothing (protocol section 5, "Epochs"). The worker, which seals, is notified here.

import { Timers } from '../timers.js';

const OWN_SWITCH_MS = 10_000; // how long to wait for the server's `keys.switch`
const OWN_SWITCH_AFTER_LOSS_MS = 3_000; // how long if a member that has left has the key in use

/**
 * `post(message)` notifies the worker. `isSilent()` says whether the keys forbid sending.
 *
 * Events, with the record of an epoch: `began`: this device sends under its key; `switched`: the epoch is in use.
 */
export class Switching extends EventTarget {
  #epochs;
  #post;
  #silentByKeys;
  #sending = 0;
  #isSilent = false;
  #isStopped = false;
  #isClosed = false;
  #ownSwitches = new Map(); // epoch -> timer
  #overlaps = new Timers();

  constructor({ epochs, post, isSilent }) {
    super();
    this.#epochs = epochs;
    this.#post = post;
    this.#silentByKeys = isSilent;
  }

  get canSend() {
    return !this.#isClosed && this.#sending > 0 && this.#sending === this.#epochs.current && !this.#mustBeSilent;
  }

  /** Sends under `record` from now on, or as soon as its secret is here; never goes back. */
  switchTo(record) {
    if (this.#isClosed || !record || record.epoch <= this.#epochs.current) return;
    for (const [epoch, timer] of this.#ownSwitches) {
      if (epoch > record.epoch) continue;
      clearTimeout(timer);
      this.#ownSwitches.delete(epoch);
    }
    this.#epochs.use(record, (ms, action) => this.#overlaps.after(ms, action));
    if (record.hasSecret) this.#send(record);
    this.review();
    this.dispatchEvent(new CustomEvent('switched', { detail: record }));
  }

  /** The secret of `record` has arrived. */
  keyed(record) {
    if (this.#isClosed) return;
    if (record.epoch === this.#epochs.current) this.#send(record);
    // A newcomer has no key in use: what it sent until everybody has this one would be lost. The others have it at about the same time, and wait for it.
    else if (this.#epochs.current === 0 && record.epoch > 1) this.switchTo(record);
    else if (record.epoch > this.#epochs.current) this.#switchLater(record);
  }

  /** Nothing is sent while the list of keys and the call differ (`roster-watch.js`). */
  setStopped(isStopped) {
    this.#isStopped = isStopped;
    this.review();
  }

  /** Evaluates `isSilent()` again, because its result may have changed. */
  review() {
    if (this.#isClosed || this.#mustBeSilent === this.#isSilent) return;
    this.#isSilent = !this.#isSilent;
    this.#post({ type: 'silence', isSilent: this.#isSilent });
  }

  close() {
    this.#isClosed = true;
    this.#overlaps.clear();
    for (const timer of this.#ownSwitches.values()) clearTimeout(timer);
  }

  /**
   * Without the key in use nothing is sent: under the previous one somebody who has left may listen. With `verifiedOnly` nothing is sent while somebody on the
   * list is not verified, or not looked up: another may give them the key.
   */
  get #mustBeSilent() {
    return this.#isStopped || this.#silentByKeys();
  }

  #send(record) {
    if (this.#sending >= record.epoch) return;
    this.#sending = record.epoch;
    this.#isSilent = this.#mustBeSilent;
    // In one message, because no frame may leave between the two.
    this.#post({ type: 'switch', epoch: record.epoch, isSilent: this.#isSilent });
    this.dispatchEvent(new CustomEvent('began', { detail: record }));
  }

  /** Waits for the server to switch, but not forever: somebody who has left may still have the key in use. */
  #switchLater(record) {
    const inUse = this.#epochs.inUse;
    const isLoss = record.mode === 'fresh' && inUse?.roster.losesSomebody(record.roster);
    const timer = setTimeout(() => this.switchTo(record), isLoss ? OWN_SWITCH_AFTER_LOSS_MS : OWN_SWITCH_MS);
    this.#ownSwitches.set(record.epoch, timer);
  }
}
