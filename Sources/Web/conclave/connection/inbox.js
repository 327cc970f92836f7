// Events in order, each once: the purpose of `seq` and `redelivered` (protocol section 3).

import { Malformed } from './border.js';

const HANDLED_KEPT = 2_000; // more events than the server keeps for a device that is away

/**
 * `handle(event)` returns whether the event is accepted; it is called for one event after the other. `missed()` is awaited before an event whose number shows
 * that others were lost.
 */
export class Inbox {
  #handle;
  #missed;
  #turn = Promise.resolve();
  #last = 0;
  #handled = new Set();

  constructor({ handle, missed }) {
    this.#handle = handle;
    this.#missed = missed;
  }

  /** Resolves with whether the event must be acknowledged: all except an envelope that did not open; with `{later}` for one that may still open. */
  take(event) {
    const turn = this.#turn
      .then(() => this.#next(event))
      .catch(async (error) => {
        // A malformed event counts as lost.
        if (error instanceof Malformed && event.name !== 'keys.envelope') await this.#missed();
        console.warn(`Conclave: ${event.name} failed: ${error.code ?? error.name}`);
        return event.name !== 'keys.envelope';
      })
      .then((isTaken) => {
        if (isTaken.later) isTaken.later.then((isOpened) => isOpened && this.#remember(event.seq));
        else if (isTaken) this.#remember(event.seq);
        return isTaken;
      });
    this.#turn = turn;
    return turn;
  }

  async #next(event) {
    const { seq, redelivered } = event;
    if (redelivered && this.#handled.has(seq)) return true; // its acknowledgement was lost
    if (!redelivered && seq <= this.#last) this.#handled.clear(); // the server lost its count and started again
    const isJump = this.#last > 0 && seq > this.#last + 1;
    // `call.state`, first on a connection, has a higher number than the redelivered events after it.
    this.#last = redelivered ? Math.max(this.#last, seq) : seq;
    if (isJump) await this.#missed();
    return this.#handle(event);
  }

  #remember(seq) {
    this.#handled.add(seq);
    if (this.#handled.size > HANDLED_KEPT) this.#handled.delete(this.#handled.values().next().value);
  }
}
