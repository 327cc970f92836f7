// The segments of a reel as a player wants them: opened when they are needed, with what is missing as gaps in time.

import { Refusal } from '../wire/index.js';

const KEPT = 8; // opened segments

const OFF = ['muted', 'held', 'ended', 'paused', 'consent-ended']; // marks behind which the last picture is of the past

const byTime = (a, b) => a.time - b.time;

/**
 * `fetch(n)` resolves with the file of segment `n`, or with undefined if the server has none; it rejects while there is no network. Times are µs since 1970.
 */
export class ReelSource {
  #reel;
  #fetch;
  #segments = new Map(); // n -> a promise, the newest last
  #opened = new Map(); // n -> what its promise has resolved with
  #ends = new Map();
  #isLive;

  /** `isLive()` says whether more of it may come. */
  constructor(reel, fetch, isLive = () => false) {
    this.#reel = reel;
    this.#fetch = fetch;
    this.#isLive = isLive;
  }

  get isLive() {
    return this.#isLive();
  }

  /** How many segments there are. */
  get length() {
    return this.#reel.length;
  }

  /** When the recording begins. */
  get start() {
    return this.#reel.segments[0]?.start ?? 0;
  }

  /** When it ends, as far as that is known: the last segment has to be opened. */
  get end() {
    return this.#endOf(this.length - 1);
  }

  /** When segment `n` begins, by the list. */
  startOf(n) {
    return this.#reel.segments[n].start;
  }

  /** The segment in which `time` is; the first or the last if it is outside. */
  indexAt(time) {
    const { segments } = this.#reel;
    let [low, high] = [0, segments.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (segments[middle].start <= time) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /**
   * `{n, start, end, frames, gaps, offs}` of segment `n`: the frames in the order of their times; gaps `{from, to, why, source?}`, of one source or of all; `offs` `{time, source?}`
   * say when a person switched it off. A segment that is missing or refused is one gap, `why` being `missing` or `refused`. Rejects while it cannot be fetched.
   */
  segment(n) {
    const opening = this.#segments.get(n) ?? this.#open(n);
    this.#segments.delete(n);
    this.#segments.set(n, opening);
    if (this.#segments.size > KEPT) this.#forget(this.#segments.keys().next().value);
    const keep = (segment) => this.#segments.get(n) === opening && this.#opened.set(n, segment);
    opening.then(keep, () => this.#segments.get(n) === opening && this.#forget(n)); // it is fetched again
    return opening;
  }

  /** Segment `n` if it is here already: of several reels none has to wait for what another one has. */
  opened(n) {
    return this.#opened.get(n);
  }

  #forget(n) {
    this.#segments.delete(n);
    this.#opened.delete(n);
  }

  async #open(n) {
    const file = await this.#fetch(n);
    if (!file) {
      this.#reel.lack(n);
      return this.#hole(n, 'missing');
    }
    try {
      const { start, frames, records, end } = await this.#reel.open(n, file);
      if (end) this.#ends.set(n, end.time);
      return { n, start, end: this.#endOf(n), frames: frames.sort(byTime), gaps: gapsIn(records, start), offs: offsIn(records, start) };
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      return this.#hole(n, 'refused');
    }
  }

  #hole(n, why) {
    const [start, end] = [this.#reel.segments[n].start, this.#endOf(n)];
    return { n, start, end, frames: [], gaps: [{ from: start, to: end, why }], offs: [] };
  }

  #endOf(n) {
    return this.#ends.get(n) ?? this.#reel.segments[n + 1]?.start ?? this.#reel.segments[n]?.start ?? 0;
  }
}

/** The source of each index in a segment; undefined for the index of all. */
const sourcesIn = (records) => new Map(records.filter(({ type }) => type === 'stream').map(({ index, source }) => [index, source]));

const placed = (source, rest) => (source === undefined ? rest : { ...rest, source });

function gapsIn(records, start) {
  const sources = sourcesIn(records);
  return records.filter(({ type }) => type === 'gap').map(({ index, from, to, why }) => placed(sources.get(index), { from: start + from * 1_000, to: start + to * 1_000, why }));
}

function offsIn(records, start) {
  const sources = sourcesIn(records);
  const marks = records.filter(({ type, what }) => type === 'mark' && OFF.includes(what));
  return marks.map(({ index, at }) => placed(sources.get(index), { time: start + at * 1_000 }));
}
