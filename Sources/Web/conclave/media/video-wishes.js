// Which videos and whose sound the server need not send here, how large the other videos are shown and which come first, as far as it was told (protocol section 6, "Wishes").

const MAX_NAMED = 64; // in one request, of videos and of participants
const STEPS = [90, 180, 270, 360, 540, 720, 1_080, 1_440, 2_160, 4_320]; // pixels: a resized window changes the wish a few times, and not with every pixel

const UNNAMED = { paused: false, maxHeight: undefined, priority: 0 }; // the values for a track that was never named

export class VideoWishes {
  #participant;
  #told = new Map(); // track -> {paused, maxHeight, priority}
  #toldMuted = ''; // the numbers; undefined if the server may not know them

  /**
   * The changes to send to the server, so that only the tracks in `wanted` have slots, each at the height at which it is shown: `[{track, paused, maxHeight,
   * priority}]`, at most 64; the next call returns the rest. `tracks` are all tracks. `wanted` is a map of tracks to heights in pixels of the screen, `priorities`
   * one of tracks to those that are not 0. `participant` is this device's number: a join as another begins without wishes.
   */
  toTell(participant, tracks, wanted, priorities = new Map()) {
    if (participant !== this.#participant) {
      this.#told.clear();
      this.#toldMuted = '';
    }
    this.#participant = participant;
    const there = new Set(tracks);
    for (const track of this.#told.keys()) if (!there.has(track)) this.#told.delete(track);
    return tracks.flatMap((track) => this.#changeOf(track, wanted, priorities.get(track) ?? 0)).slice(0, MAX_NAMED).map((change) => this.#tell(change));
  }

  /** The numbers of the participants whose sound is not wanted, at most the first 64, to be sent after `toTell`; undefined if the server knows them. */
  mutedToTell(participants) {
    const muted = [...participants].slice(0, MAX_NAMED).sort((a, b) => a - b);
    if (muted.join() === this.#toldMuted) return undefined;
    this.#toldMuted = muted.join();
    return muted;
  }

  #changeOf(track, wanted, priority) {
    const told = this.#told.get(track) ?? UNNAMED;
    const paused = !wanted.has(track);
    const maxHeight = paused ? told.maxHeight : STEPS.find((step) => step >= wanted.get(track)) ?? STEPS.at(-1);
    const isOtherHeight = maxHeight !== undefined && maxHeight !== told.maxHeight;
    const change = { ...(paused === told.paused ? {} : { paused }), ...(isOtherHeight ? { maxHeight } : {}), ...(priority === told.priority ? {} : { priority }) };
    return Object.keys(change).length > 0 ? [{ track, ...change }] : [];
  }

  #tell({ track, ...change }) {
    this.#told.set(track, { ...UNNAMED, ...this.#told.get(track), ...change });
    return { track, ...change };
  }

  /** The server was not reached, or its answer was lost: `videos` and `muted` are sent with the next call. */
  untold(videos, muted) {
    for (const { track, priority } of videos) {
      const told = priority === undefined ? this.#told.get(track)?.priority : undefined;
      this.#told.set(track, { paused: undefined, maxHeight: undefined, priority: told });
    }
    if (muted) this.#toldMuted = '?';
  }
}
