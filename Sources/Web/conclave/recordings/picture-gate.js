// Which pictures can be decoded: a picture refers to those before it, so behind a gap, and at the beginning, a key frame is waited for.

export class PictureGate {
  #waits = true;
  #gaps = [];

  /** The gaps of a segment, before its pictures. */
  note(gaps) {
    this.#gaps.push(...gaps);
  }

  /** Whether the next picture, of `time`, can be decoded. */
  takes({ isKey, time }) {
    if (this.#gaps.some(({ to }) => to <= time)) this.#waits = true;
    this.#gaps = this.#gaps.filter(({ to }) => to > time);
    if (isKey) this.#waits = false;
    return !this.#waits;
  }
}
