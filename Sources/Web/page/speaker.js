// The person who speaks: one at a time, and not a different one with every word. Time is an argument, in ms.

const HOLD_MS = 2_000;
const SAID_MS = 5_000; // the minimum time between two announcements of a speaker to a screen reader

export class Speaker {
  /** The participant that spoke last; undefined before anybody has. */
  current;
  #since = -Infinity;
  #saidAt = -Infinity;
  #said;

  /** `speaking` are the participants that are loud now, without this device. Returns whether `current` has changed. */
  update(now, speaking) {
    if (speaking.has(this.current) || now - this.#since < HOLD_MS) return false;
    const [next] = speaking;
    if (next === undefined) return false;
    this.current = next;
    this.#since = now;
    return true;
  }

  /** The participant to name to a screen reader now, if any. */
  toSay(now) {
    if (this.current === undefined || this.current === this.#said || now - this.#saidAt < SAID_MS) return undefined;
    this.#said = this.current;
    this.#saidAt = now;
    return this.current;
  }
}
