// One reel in a player: what is decoded of it ahead of the clock, and where it has gaps.

import { FrameCursor } from './frame-cursor.js';
import { PictureGate } from './picture-gate.js';

const PICTURES_AHEAD = 8; // decoded pictures use much memory
const WARM_UP_US = 80_000; // Opus needs some packets until it is right (RFC 7845 section 4.6)
const BACK = 4; // segments in which a key frame is looked for
const SOUNDS = ['microphone', 'screen-audio'];

const isSound = ({ stream }) => stream.codec === 'opus';
const isPicture = ({ stream }) => !SOUNDS.includes(stream.source);

export class Lane {
  source;
  #output;
  #sounds;
  #pictures;
  #gates = new Map(); // source -> PictureGate
  #noted = []; // the gaps since the last seek, for gates that are made later
  #gaps = new Map(); // n -> gaps

  /** `source` is a `ReelSource`, `output` its part of the player's output. `changed()` is called when something was loaded, `found()` when a gap became known. */
  constructor(source, { output, changed, found }) {
    this.source = source;
    this.#output = output;
    this.#sounds = new FrameCursor(source, { wants: isSound, changed, entered: (segment) => this.#entered(segment, found) });
    this.#pictures = new FrameCursor(source, { wants: isPicture, changed, entered: ({ gaps, offs = [] }) => this.#note(gaps, offs) });
  }

  get gaps() {
    return [...this.#gaps.values()].flat();
  }

  get isAtEnd() {
    return this.#sounds.isAtEnd && this.#pictures.isAtEnd;
  }

  /** Whether something that may be due at `time` is not loaded yet. */
  lacks(time) {
    return [this.#sounds, this.#pictures].some((cursor) => cursor.lacks(time));
  }

  retry() {
    for (const cursor of [this.#sounds, this.#pictures]) cursor.retry();
  }

  /** The place `{n, time}` from which pictures have to be decoded for `target`: of each source the last key frame before it, and of these the earliest. */
  async prepare(target) {
    if (this.source.length === 0) return undefined;
    const last = this.source.indexAt(target);
    const keys = new Map();
    for (let n = last; n >= Math.max(0, last - BACK); n -= 1) {
      const { frames } = await this.source.segment(n);
      for (const { stream, isKey, time } of frames.filter((frame) => isPicture(frame) && frame.isKey && frame.time <= target).reverse()) {
        if (isKey && !keys.has(stream.source)) keys.set(stream.source, { n, time });
      }
      const seen = new Set(frames.filter((frame) => isPicture(frame) && frame.time <= target).map(({ stream }) => stream.source));
      if (keys.size > 0 && [...seen].every((source) => keys.has(source))) break;
    }
    return [...keys.values()].sort((one, other) => one.time - other.time)[0];
  }

  /** Goes on at `target`, with pictures from `from`, the result of `prepare`. */
  seek(target, from) {
    this.#gates.clear();
    this.#noted = [];
    const n = this.source.indexAt(target);
    this.seekSound(target);
    this.#pictures.seek(from?.n ?? n, from?.time ?? -Infinity);
  }

  /** Sound that is already due later is decoded again. */
  seekSound(target) {
    this.#sounds.seek(this.source.indexAt(target), target - WARM_UP_US);
  }

  /** Decodes the sound that is due until `until`; `dueAt(time)` is when, at `speed`. */
  feedSound(until, dueAt, speed) {
    for (let frame; (frame = this.#sounds.next) && frame.time <= until; this.#sounds.take()) this.#output.sound(frame, dueAt(frame.time), speed);
  }

  /** Decodes the pictures until `until`; behind a seek to `position` all from the key frame on are due, and decoded without a limit. */
  feedPictures(position, until) {
    for (let frame; (frame = this.#pictures.next) && frame.time <= until; this.#pictures.take()) {
      if (frame.time > position && this.#output.picturesAhead >= PICTURES_AHEAD) break;
      if (this.#gateOf(frame.stream.source).takes(frame)) this.#output.picture(frame);
    }
  }

  /** Shows what is due at `position`; nothing once `isOver`, when others go on. */
  show(position, isOver) {
    if (isOver) this.#output.blank();
    else this.#output.show(position);
  }

  gapAt(position) {
    if (position < this.source.start || position >= this.source.end) return undefined;
    const gaps = this.#gaps.get(this.source.indexAt(position)) ?? [];
    return gaps.find(({ from, to }) => from <= position && position < to);
  }

  blank({ source }) {
    if (!SOUNDS.includes(source)) this.#output.blank(source);
  }

  reset() {
    this.#output.reset();
  }

  silence() {
    this.#output.silence();
  }

  #entered({ n, gaps }, found) {
    const isNew = gaps.length > 0 && !this.#gaps.has(n);
    this.#gaps.set(n, gaps);
    if (isNew) found();
  }

  #note(gaps, offs) {
    this.#noted.push(...gaps);
    for (const [source, gate] of this.#gates) gate.note(ofSource(gaps, source));
    for (const { time, source } of offs) if (!SOUNDS.includes(source)) this.#output.off(time, source);
  }

  #gateOf(source) {
    let gate = this.#gates.get(source);
    if (!gate) {
      gate = new PictureGate();
      gate.note(ofSource(this.#noted, source));
      this.#gates.set(source, gate);
    }
    return gate;
  }
}

const ofSource = (gaps, source) => gaps.filter((gap) => gap.source === undefined || gap.source === source);
