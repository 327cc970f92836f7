// Plays a recording: sound and pictures by one clock, gaps as gaps, seeking to any time, and other speeds.

import { FrameCursor } from './frame-cursor.js';
import { PictureGate } from './picture-gate.js';
import { PlayClock } from './play-clock.js';

const TICK_MS = 20;
const AHEAD_US = 1_000_000; // how far ahead of the clock frames are decoded
const STARVED_US = 100_000;
const PICTURES_AHEAD = 8; // decoded pictures use much memory
const WARM_UP_US = 80_000; // Opus needs some packets until it is right (RFC 7845 section 4.6)
const RETRY_S = 1; // between attempts to load a segment
const BACK = 4; // segments in which a key frame is looked for
const BEHIND_US = 6_000_000; // the newest of what is being recorded: more comes every five seconds (protocol section 13.6)
export const SPEEDS = [1, 1.5, 2];

const isSound = ({ stream }) => stream.codec === 'opus';
const isPicture = ({ stream }) => stream.source !== 'microphone' && stream.source !== 'screen-audio';

/**
 * `source` is a `ReelSource`; `output` decodes and shows: see `WebOutput`.
 *
 * Events: `change` of `state`, `gap`, `gaps`, `length` or `speed`. The position changes all the time.
 */
export class Player extends EventTarget {
  /** `paused`, `playing`, `waiting` (for a segment), or `ended`. */
  state = 'paused';
  /** Why nothing is to be seen and heard here, `{from, to, why}`; undefined where there is something. */
  gap;
  #source;
  #output;
  #clock;
  #sounds;
  #pictures;
  #gate = new PictureGate();
  #gaps = new Map(); // n -> gaps
  #seeks = 0;
  #isReady = false; // whether the cursors stand where the clock is
  #retryAt = 0;
  #timer;
  #wasEmpty;

  constructor(source, output) {
    super();
    this.#source = source;
    this.#wasEmpty = source.length === 0;
    this.#output = output;
    this.#clock = new PlayClock(() => output.now);
    const changed = () => this.tick();
    this.#sounds = new FrameCursor(source, { wants: isSound, changed, entered: (segment) => this.#entered(segment) });
    this.#pictures = new FrameCursor(source, { wants: isPicture, changed, entered: ({ gaps }) => this.#gate.note(gaps) });
    // While it stands still nothing ticks, and a picture is decoded some time after the seek.
    output.decoded = () => this.#timer === undefined && this.tick();
    this.#clock.seek(source.start);
    this.seek(source.start);
    // Its end is in it.
    if (source.length > 0) source.segment(source.length - 1).then(() => this.#changed(), () => {});
  }

  /** µs since 1970. */
  get position() {
    return Math.min(Math.max(this.#clock.position, this.#source.start), Math.max(this.#source.end, this.#source.start));
  }

  /** The recording's length in ms; its end is known once the last segment was opened, which is done at once. */
  get length() {
    return (this.#source.end - this.#source.start) / 1_000;
  }

  /** The gaps `{from, to, why}` of what was played so far, in µs since 1970, the earliest first. */
  get gaps() {
    return [...this.#gaps.values()].flat().sort((one, other) => one.from - other.from);
  }

  get speed() {
    return this.#clock.speed;
  }

  set speed(speed) {
    this.#clock.speed = speed;
    this.seek(this.position);
    this.#changed();
  }

  play() {
    if (this.state === 'ended') this.seek(this.#source.start);
    this.#set('waiting');
    this.#timer ??= setInterval(() => this.tick(), TICK_MS);
    this.tick();
  }

  pause() {
    this.#halt('paused');
  }

  /** Goes on at `time`, µs since 1970. Resolves when that can be shown. */
  async seek(time) {
    const seek = (this.#seeks += 1);
    const target = Math.min(Math.max(time, this.#source.start), Math.max(this.#source.end, this.#source.start));
    this.#isReady = false;
    this.gap = undefined; // it is shown again
    this.#clock.stop();
    this.#clock.seek(target);
    this.#output.reset();
    if (this.state === 'playing' || this.state === 'ended') this.#set(this.state === 'ended' ? 'paused' : 'waiting');
    const from = await this.#keyFrameBefore(target).catch(() => undefined);
    if (seek !== this.#seeks) return;
    this.#gate = new PictureGate();
    const n = this.#source.indexAt(target);
    this.#sounds.seek(n, target - WARM_UP_US);
    this.#pictures.seek(from?.n ?? n, from?.time ?? -Infinity);
    this.#isReady = true;
    this.tick();
  }

  /** µs by which it is behind the newest that there is. */
  get behind() {
    return Math.max(0, this.#source.end - this.position);
  }

  /** Goes on close to the end of a recording that is being made. */
  seekNewest() {
    return this.seek(this.#source.end - BEHIND_US);
  }

  /** There is more of it, or nothing more will come. */
  grown() {
    if (this.#source.length === 0) return;
    this.#source.segment(this.#source.length - 1).then(() => this.#changed(), () => {}); // its end is in it
    if (this.#wasEmpty) this.seek(this.#source.start);
    this.#wasEmpty = false;
    for (const cursor of [this.#sounds, this.#pictures]) cursor.retry();
    this.tick();
    this.#changed();
  }

  close() {
    this.#halt('paused');
    this.#seeks += 1;
    this.#isReady = false;
    this.#output.close();
  }

  /** Decodes what is due soon and shows what is due now. Runs by itself while it plays. */
  tick() {
    if (!this.#isReady) return;
    const isStarved = this.#feed();
    const { position } = this.#clock;
    this.#output.show(position);
    this.#noteGap(position);
    if (this.state !== 'playing' && this.state !== 'waiting') return;
    const isAtEnd = this.#sounds.isAtEnd && this.#pictures.isAtEnd && position >= this.#source.end;
    if (isAtEnd && !this.#source.isLive) this.#halt('ended');
    else if (isStarved || isAtEnd) {
      if (this.#clock.isRunning) this.#silence();
      this.#set('waiting');
      if (this.#output.now < this.#retryAt) return;
      this.#retryAt = this.#output.now + RETRY_S;
      for (const cursor of [this.#sounds, this.#pictures]) cursor.retry();
    } else if (this.state === 'waiting') {
      this.#clock.run();
      this.#set('playing');
      this.#feed(); // sound is due at times that are known only now
    }
  }

  /** Whether a segment that is due is not loaded yet. */
  #feed() {
    const { position } = this.#clock;
    const until = position + AHEAD_US * this.speed;
    let frame;
    if (this.state !== 'paused' && this.#clock.isRunning) {
      for (; (frame = this.#sounds.next) && frame.time <= until; this.#sounds.take()) this.#output.sound(frame, this.#clock.dueAt(frame.time), this.speed);
    }
    for (; (frame = this.#pictures.next) && frame.time <= until; this.#pictures.take()) {
      // Behind a seek all from its key frame on are due: they are decoded without a limit.
      if (frame.time > position && this.#output.picturesAhead >= PICTURES_AHEAD) break;
      if (this.#gate.takes(frame)) this.#output.picture(frame);
    }
    return [this.#sounds, this.#pictures].some((cursor) => cursor.lacks(position + STARVED_US));
  }

  /** `{n, time}` of the last key frame that is not behind `time`; undefined without one in the segments before. */
  async #keyFrameBefore(time) {
    if (this.#source.length === 0) return undefined;
    const last = this.#source.indexAt(time);
    for (let n = last; n >= Math.max(0, last - BACK); n -= 1) {
      const { frames } = await this.#source.segment(n);
      const key = frames.findLast((frame) => isPicture(frame) && frame.isKey && frame.time <= time);
      if (key) return { n, time: key.time };
    }
    return undefined;
  }

  #entered({ n, gaps }) {
    const isNew = gaps.length > 0 && !this.#gaps.has(n);
    this.#gaps.set(n, gaps);
    if (isNew) this.#changed();
  }

  #noteGap(position) {
    const gaps = this.#gaps.get(this.#source.indexAt(position)) ?? [];
    const gap = gaps.find(({ from, to }) => from <= position && position < to);
    if (gap === this.gap) return;
    this.gap = gap;
    if (gap) this.#output.blank();
    this.#changed();
  }

  #halt(state) {
    clearInterval(this.#timer);
    this.#timer = undefined;
    if (this.#isReady) this.#silence();
    this.#clock.stop();
    this.#set(state);
  }

  /** The clock stops, and sound that is already due later is decoded again when it goes on. */
  #silence() {
    this.#clock.stop();
    this.#output.silence();
    const { position } = this.#clock;
    this.#sounds.seek(this.#source.indexAt(position), position - WARM_UP_US);
  }

  #set(state) {
    if (this.state === state) return;
    this.state = state;
    this.#changed();
  }

  #changed() {
    this.dispatchEvent(new Event('change'));
  }
}
