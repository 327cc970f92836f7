// The person who speaks: one at a time, and not another with every word. Time is an argument, in ms.

const HOLD_MS = 2_000;
const SAID_MS = 5_000; // a screen reader is not told of a speaker more often

export class Speaker {
  /** The participant that spoke last; undefined before anybody has. */
  current;
  #since = -Infinity;
  #saidAt = -Infinity;
  #said;

  /** `speaking` are the participants that are loud now, without this device. Answers whether `current` is another than before. */
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
