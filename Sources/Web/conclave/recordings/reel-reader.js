// Reads one reel, segment by segment, and says what the server has done to it.

import { idBytes } from '../consent/index.js';
import { Refusal, equal, sha256, toHex } from '../wire/index.js';
import { MAX_SEGMENTS, NO_SEGMENT, parseHeader } from './segment.js';

/**
 * `segments` is the server's list, from segment 0 on; `witnesses` are those of this reel whose signature is good; `remembered` is `{segments, head, isEnd?}` as of
 * the last time that it was seen here, if ever. `contents` opens a segment: `SealedContents` or `CallContents`.
 */
export class ReelReader {
  #id;
  #contents;
  #segments;
  #witnesses;
  #remembered;
  #missing = new Set();
  #refused = new Map(); // n -> why

  constructor({ id, contents, segments, witnesses, remembered = undefined }) {
    this.#id = toHex(idBytes(id));
    this.#contents = contents;
    this.#segments = segments;
    this.#witnesses = witnesses;
    this.#remembered = remembered;
  }

  get length() {
    return this.#segments.length;
  }

  /** The server's list of segments: where they are in time, for seeking, and how long each is. */
  get segments() {
    return this.#segments;
  }

  /** How long it is, in ms, by the device that recorded it; undefined while it has not signed the newest segment. */
  get duration() {
    const [first, last] = [this.#segments[0], this.#segments.at(-1)];
    const witness = this.#witnesses.find(({ segments, at }) => segments === this.length && at * 1_000 >= last?.start);
    return witness && witness.at - first.start / 1_000;
  }

  /** The next page of the list, or what was written since: `{from, segments}`. `witnesses` are as in the constructor. */
  append({ from, segments }, witnesses) {
    if (from !== this.length) throw new Refusal('segments that do not follow those that are listed');
    if (from + segments.length > MAX_SEGMENTS) throw new Refusal('a reel of too many segments');
    this.#segments = [...this.#segments, ...segments];
    const isKnown = (one) => this.#witnesses.some((other) => one.segments === other.segments && one.isEnd === other.isEnd && equal(one.head, other.head));
    this.#witnesses = [...this.#witnesses, ...witnesses.filter((witness) => !isKnown(witness))];
  }

  /** The newest head of the list, to be remembered. */
  get seen() {
    const last = this.#segments.at(-1);
    return last && { segments: this.#segments.length, head: last.hash };
  }

  /**
   * `{n, start, frames, records, end}` of segment `n`, whose bytes are `file`; `end` is missing if it was not closed, or is damaged behind its last record. Throws if it is another file,
   * was changed, or does not follow the one before it; the rest of the reel plays on.
   */
  async open(n, file) {
    try {
      return await this.#open(n, file);
    } catch (error) {
      if (error instanceof Refusal) this.#refused.set(n, error.message);
      throw error;
    }
  }

  async #open(n, file) {
    const listed = this.#segments[n];
    if (!listed) throw new RangeError('a segment that is not listed');
    const header = parseHeader(file);
    if (!equal(await sha256(file), listed.hash) || file.length !== listed.bytes) throw new Refusal('a segment with another hash or length');
    if (header.id !== this.#id || header.reel !== this.#contents.reel || header.n !== n) throw new Refusal('a segment of another place');
    if (header.start !== listed.start || !equal(header.previous, this.#headAt(n))) throw new Refusal('a segment that does not follow the one before it');
    if (n > 0 && header.start < this.#segments[n - 1].start) throw new Refusal('a segment that begins before the one before it');
    const { records, frames, end, isDamaged } = await this.#contents.open(file, header);
    this.#missing.delete(n);
    return { n, start: header.start, records, frames, end: isDamaged ? undefined : end };
  }

  /** The server has no segment `n`. */
  lack(n) {
    this.#missing.add(n);
  }

  /** The segments that cannot be played: those that the server does not have, and those that were refused. */
  get holes() {
    return [...this.#missing, ...this.#refused.keys()].sort((a, b) => a - b);
  }

  /** How many segments there were at some time, by a witness or by what was seen here. */
  get knownLength() {
    return Math.max(this.length, ...this.#claims.map(({ segments }) => segments));
  }

  /** The worth of the reel as far as it was read: `changed`, `cut-off` (it was longer), `complete`, `no-key` (nothing of it opens) or `not-finished`. */
  get state() {
    const { state } = this.#contents;
    if (this.#refused.size > 0 || this.#contradicts || this.#lacksWitnessed || state === 'changed') return 'changed';
    if (this.knownLength > this.length) return 'cut-off';
    return this.#claims.some(({ isEnd }) => isEnd) ? 'complete' : (state ?? 'not-finished');
  }

  get #claims() {
    return this.#remembered ? [...this.#witnesses, this.#remembered] : this.#witnesses;
  }

  /** Whether the list has another segment where a head is known, or goes on behind an end. */
  get #contradicts() {
    return this.#claims.some(({ segments, head, isEnd }) => segments <= this.length && (!equal(this.#headAt(segments), head) || (isEnd && segments < this.length)));
  }

  /** The hash of the last of the first `count` segments, by the list. */
  #headAt(count) {
    return count === 0 ? NO_SEGMENT : this.#segments[count - 1].hash;
  }

  /** Whether a segment is missing that a witness or this device has seen. */
  get #lacksWitnessed() {
    const covered = Math.max(0, ...this.#claims.map(({ segments }) => segments));
    return [...this.#missing].some((n) => n < covered);
  }
}
