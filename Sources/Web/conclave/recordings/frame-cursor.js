// Goes through the frames of one kind of a recording, segment by segment, and loads the next one before it is needed.

const AHEAD = 1; // segments

/**
 * `wants(frame)` says which frames. `entered(segment)` is called for each segment when its first frame may be next, also for one without frames. `changed()` is
 * called when something was loaded.
 */
export class FrameCursor {
  #source;
  #wants;
  #entered;
  #changed;
  #n = 0;
  #at = 0;
  #frames; // of segment n; undefined while it is loaded
  #loading; // the number that is being loaded
  #from = -Infinity;

  constructor(source, { wants, entered = (_segment) => {}, changed }) {
    this.#source = source;
    this.#wants = wants;
    this.#entered = entered;
    this.#changed = changed;
  }

  /** The next frame is the first of segment `n` that is not before `time`. */
  seek(n, time) {
    [this.#n, this.#at, this.#from] = [n, 0, time];
    this.#frames = undefined;
    this.#loading = undefined;
    this.#load();
  }

  get isAtEnd() {
    return this.#n >= this.#source.length;
  }

  /** Whether a frame of `time`, or before, may be in a segment that is not loaded yet. */
  lacks(time) {
    return this.next === undefined && !this.isAtEnd && this.#source.startOf(this.#n) <= time;
  }

  /** The next frame; undefined at the end, or while it is loaded. */
  get next() {
    while (this.#frames && this.#at >= this.#frames.length) {
      [this.#n, this.#at] = [this.#n + 1, 0];
      this.#frames = undefined;
      this.#load();
    }
    return this.#frames?.[this.#at];
  }

  take() {
    this.#at += 1;
  }

  /** Loads what could not be loaded before. */
  retry() {
    if (!this.#frames) this.#load();
  }

  #load() {
    const n = this.#n;
    if (this.isAtEnd || this.#loading === n) return;
    const opened = this.#source.opened?.(n);
    if (opened) {
      this.#take(opened);
      return;
    }
    this.#loading = n;
    this.#source.segment(n).then(
      (segment) => this.#loading === n && this.#loaded(segment),
      () => this.#loading === n && (this.#loading = undefined),
    );
  }

  #loaded(segment) {
    this.#loading = undefined;
    this.#take(segment);
    this.#changed();
  }

  #take(segment) {
    this.#entered(segment);
    this.#frames = segment.frames.filter((frame) => frame.time >= this.#from && this.#wants(frame));
    for (let n = segment.n + 1; n <= Math.min(segment.n + AHEAD, this.#source.length - 1); n += 1) this.#source.segment(n).catch(() => {});
  }
}
