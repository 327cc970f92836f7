// How large pictures are wished for where frames count more than pixels, as they do for sign language. Time is an argument, in ms.

const LINES = 720; // more would take frames
const LEAST_LINES = 180;
const LASTING_MS = 3_000; // a wish is carried out and measured by then
const HOLD_MS = 20_000; // before more is wished again: twice as long after each time that it was too much
const MOST_HOLD_MS = 160_000;
const PINNED = 2; // priorities
const RAISED = 1;

/**
 * A server that lacks room for a large picture first leaves out frames of it (protocol section 6, "Wishes"). So while a picture comes in a lower quality than
 * wished, a smaller one is wished, of which all frames come.
 */
export class FramesFirst {
  #tracks = new Map(); // track -> {shrink, changedAt, lowerSince, hold}

  /**
   * The wishes for the `tiles`, descriptions of the library, that are shown at `heights`, by track: `{heights, priorities}`. A screen keeps its pixels. The
   * pinned one, whose key is `pinned`, and people with a raised hand are seen best.
   */
  wishesOf(tiles, heights, { pinned, isRaised, now }) {
    const wished = new Map(heights);
    const priorities = new Map();
    for (const { key, track, picture, source, participant } of tiles) {
      if (!heights.has(track)) continue;
      if (source === 'camera') wished.set(track, this.heightOf(track, { picture, height: heights.get(track), now }));
      if (key === pinned) priorities.set(track, PINNED);
      else if (source === 'camera' && isRaised(participant)) priorities.set(track, RAISED);
    }
    for (const track of this.#tracks.keys()) if (!heights.has(track)) this.#tracks.delete(track);
    return { heights: wished, priorities };
  }

  /** The height to wish for a track that is shown at `height` pixels, and whose `picture` is as in the library's `tilesOf`. */
  heightOf(track, { picture, height, now }) {
    const known = this.#tracks.get(track) ?? { shrink: 1, changedAt: now, lowerSince: undefined, hold: HOLD_MS / 2 };
    this.#tracks.set(track, known);
    const wished = Math.min(height, LINES);
    known.lowerSince = picture === 'lower' || picture === 'paused' ? (known.lowerSince ?? now) : undefined;
    const isLasting = now - Math.max(known.lowerSince ?? now, known.changedAt) >= LASTING_MS;
    if (isLasting && wished / known.shrink > LEAST_LINES) {
      Object.assign(known, { shrink: known.shrink * 2, changedAt: now, hold: Math.min(MOST_HOLD_MS, known.hold * 2) });
    } else if (known.lowerSince === undefined && known.shrink > 1 && now - known.changedAt >= known.hold) {
      Object.assign(known, { shrink: known.shrink / 2, changedAt: now });
    }
    return Math.max(Math.min(wished, LEAST_LINES), Math.round(wished / known.shrink));
  }
}
