// The track that a slot shows, according to the server, and the frames that count for it (protocol section 5, "Attribution").

const FORMER_MS = 1_000; // frames of the previous track may still be in the network
const FORMER_REACH = 64; // and how far they may move a replay window: a member could forge one with a high counter

export class Attribution {
  #track;
  #former;

  /** From `now` (ms) on the slot shows `track`, `{participant, n}`, or nothing. */
  show(track, now) {
    if (isSame(track, this.#track)) return;
    if (this.#track) this.#former = { ...this.#track, until: now + FORMER_MS };
    this.#track = track;
  }

  /** How far a frame of this sender may move its window; undefined for one that does not count. */
  reach(sender, now) {
    if (isSame(sender, this.#track)) return Infinity;
    return isSame(sender, this.#former) && now < this.#former.until ? FORMER_REACH : undefined;
  }
}

const isSame = (a, b) => a?.participant === b?.participant && a?.n === b?.n;
