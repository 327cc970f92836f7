// Plays a recording: sound and pictures of all its reels by one clock, gaps as gaps, seeking to any time, and other speeds.

import { Lane } from './lane.js';
import { PlayClock } from './play-clock.js';

const TICK_MS = 20;
const AHEAD_US = 1_000_000; // how far ahead of the clock frames are decoded
const STARVED_US = 100_000;
const RETRY_S = 1; // between attempts to load a segment
const BEHIND_US = 6_000_000; // the newest of what is being recorded: more comes every five seconds (protocol section 13.6)
export const SPEEDS = [1, 1.5, 2];

/**
 * `sources` are the `ReelSource`s of a recording's reels; `output` decodes and shows: see `WebOutput`. A reel's place among them is its number in `gaps` and for the output.
 *
 * Events: `change` of `state`, `gap`, `gaps`, `length` or `speed`. The position changes all the time.
 */
export class Player extends EventTarget {
  /** `paused`, `playing`, `waiting` (for a segment), or `ended`. */
  state = 'paused';
  /** Why something is not to be seen and heard here, `{from, to, why, lane}`; undefined where nothing is missing. */
  gap;
  #lanes;
  #output;
  #clock;
  #shownGaps = new Map(); // lane -> gap
  #seeks = 0;
  #isReady = false; // whether the cursors stand where the clock is
  #retryAt = 0;
  #timer;
  #wasEmpty;

  constructor(sources, output) {
    super();
    this.#output = output;
    this.#clock = new PlayClock(() => output.now);
    this.#lanes = sources.map((source, index) => new Lane(source, { output: output.lane(index), changed: () => this.tick(), found: () => this.#changed() }));
    this.#wasEmpty = this.#recorded.length === 0;
    // While it stands still nothing ticks, and a picture is decoded some time after the seek.
    output.decoded = () => this.#timer === undefined && this.tick();
    this.#clock.seek(this.start);
    this.seek(this.start);
    this.#learnEnds();
  }

  /** When the first reel begins, µs since 1970. */
  get start() {
    const starts = this.#recorded.map(({ source }) => source.start);
    return starts.length > 0 ? Math.min(...starts) : 0;
  }

  get #end() {
    return Math.max(this.start, ...this.#recorded.map(({ source }) => source.end));
  }

  get #recorded() {
    return this.#lanes.filter(({ source }) => source.length > 0);
  }

  get #isLive() {
    return this.#lanes.some(({ source }) => source.isLive);
  }

  get #isGoing() {
    return this.state === 'playing' || this.state === 'waiting';
  }

  /** µs since 1970. */
  get position() {
    return this.#within(this.#clock.position);
  }

  #within(time) {
    return Math.min(Math.max(time, this.start), this.#end);
  }

  /** The recording's length in ms; its end is known once the last segment of each reel was opened, which is done at once. */
  get length() {
    return (this.#end - this.start) / 1_000;
  }

  /** The gaps `{from, to, why, lane}` of what was played so far, in µs since 1970, the earliest first. */
  get gaps() {
    const all = this.#lanes.flatMap(({ gaps }, lane) => gaps.map(({ from, to, why }) => ({ from, to, why, lane })));
    return all.sort((one, other) => one.from - other.from);
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
    if (this.state === 'ended') this.seek(this.start);
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
    const target = this.#within(time);
    this.#isReady = false;
    this.gap = undefined; // it is shown again
    this.#shownGaps.clear();
    this.#clock.stop();
    this.#clock.seek(target);
    for (const lane of this.#lanes) lane.reset();
    if (this.state === 'playing' || this.state === 'ended') this.#set(this.state === 'ended' ? 'paused' : 'waiting');
    const from = await Promise.all(this.#lanes.map((lane) => lane.prepare(target).catch(() => undefined)));
    if (seek !== this.#seeks) return;
    this.#lanes.forEach((lane, index) => lane.seek(target, from[index]));
    this.#isReady = true;
    this.tick();
  }

  /** µs by which it is behind the newest that there is. */
  get behind() {
    return Math.max(0, this.#end - this.position);
  }

  /** Goes on close to the end of a recording that is being made. */
  seekNewest() {
    return this.seek(this.#end - BEHIND_US);
  }

  /** There is more of it, or nothing more will come. */
  grown() {
    if (this.#recorded.length === 0) return;
    this.#learnEnds();
    if (this.#wasEmpty) this.seek(this.start);
    this.#wasEmpty = false;
    for (const lane of this.#lanes) lane.retry();
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
    for (const lane of this.#lanes) lane.show(position, position >= lane.source.end && lane.source.end < this.#end);
    this.#noteGaps(position);
    if (!this.#isGoing) return;
    const isAtEnd = this.#lanes.every((lane) => lane.isAtEnd) && position >= this.#end;
    if (isAtEnd && !this.#isLive) this.#halt('ended');
    else if (isStarved || isAtEnd) {
      if (this.#clock.isRunning) this.#silence();
      this.#set('waiting');
      if (this.#output.now < this.#retryAt) return;
      this.#retryAt = this.#output.now + RETRY_S;
      for (const lane of this.#lanes) lane.retry();
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
    const isHeard = this.state !== 'paused' && this.#clock.isRunning;
    for (const lane of this.#lanes) {
      if (isHeard) lane.feedSound(until, (time) => this.#clock.dueAt(time), this.speed);
      lane.feedPictures(position, until);
    }
    return this.#lanes.some((lane) => lane.lacks(position + STARVED_US));
  }

  /** A reel's end is in its last segment. */
  #learnEnds() {
    for (const { source } of this.#recorded) source.segment(source.length - 1).then(() => this.#changed(), () => {});
  }

  #noteGaps(position) {
    let isOther = false;
    this.#lanes.forEach((lane, index) => {
      const gap = lane.gapAt(position);
      if (gap === this.#shownGaps.get(index)) return;
      isOther = true;
      if (gap) {
        this.#shownGaps.set(index, gap);
        lane.blank(gap);
      } else this.#shownGaps.delete(index);
    });
    if (!isOther) return;
    const [first] = [...this.#shownGaps].sort(([one], [other]) => one - other);
    this.gap = first && { from: first[1].from, to: first[1].to, why: first[1].why, lane: first[0] };
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
    const { position } = this.#clock;
    for (const lane of this.#lanes) {
      lane.silence();
      lane.seekSound(position);
    }
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
