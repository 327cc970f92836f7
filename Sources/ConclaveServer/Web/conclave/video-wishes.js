// Which videos the server need not send here, as far as it has been told (protocol section 6, "Wishes").

const MAX_NAMED = 64; // in one request

export class VideoWishes {
  #participant;
  #paused = new Set();

  /**
   * What to tell the server so that of `tracks` only those of `wanted`, a set, have slots: `[{track, paused}]`, the changes alone, at most 64; the next
   * call brings what is left. `participant` is this device's number: a join as another begins without wishes.
   */
  toTell(participant, tracks, wanted) {
    if (participant !== this.#participant) this.#paused.clear();
    this.#participant = participant;
    const there = new Set(tracks);
    for (const track of this.#paused) if (!there.has(track)) this.#paused.delete(track);
    const changed = tracks.filter((track) => this.#paused.has(track) === wanted.has(track)).slice(0, MAX_NAMED);
    for (const track of changed) {
      if (wanted.has(track)) this.#paused.delete(track);
      else this.#paused.add(track);
    }
    return changed.map((track) => ({ track, paused: !wanted.has(track) }));
  }

  /** The server was not reached: `videos` are told with the next call. */
  untold(videos) {
    for (const { track, paused } of videos) {
      if (paused) this.#paused.delete(track);
      else this.#paused.add(track);
    }
  }
}
