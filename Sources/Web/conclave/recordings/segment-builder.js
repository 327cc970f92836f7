// Frames of a device become the records of a segment. Time is an argument: µs since 1970, by the device's clock.

import { ALL, RecordList } from './records.js';

const MAX_MS = 0xffff_ffff;

/** `streams` are the reel's, `{index, n, source, codec, clockRate}` each. */
export class SegmentBuilder {
  #streams;
  #list = new RecordList();
  #start;
  #announced = new Set();
  #timed = new Set(); // streams whose clock holds

  constructor(streams) {
    this.#streams = new Map(streams.map((stream) => [stream.index, stream]));
  }

  /** How many bytes of records there are so far. */
  get length() {
    return this.#list.length;
  }

  /** When the segment begins; undefined while it has nothing. */
  get start() {
    return this.#start;
  }

  /** A frame of stream `index`. `timestamp` is in units of the stream's clock, `time` is when it was captured. */
  frame({ index, isKey, timestamp, time, data, isDisposable = false, orientation = 0 }) {
    this.#begin(time);
    this.#announce(index);
    if (!this.#timed.has(index)) this.#list.add({ type: 'clock', index, how: 'device', timestamp: timestamp >>> 0, time });
    this.#timed.add(index);
    this.#list.add({ type: 'frame', index, isKey, isDisposable, orientation, timestamp: timestamp >>> 0, arrival: this.#msAt(time), data });
  }

  /** `what` is one of `MARKS`. Behind it each stream needs its clock again, because timestamps leave out a pause. */
  mark(what, time) {
    this.#begin(time);
    this.#list.add({ type: 'mark', index: ALL, what, at: this.#msAt(time) });
    this.#timed.clear();
  }

  /** Nothing was recorded `from` … `to`. `why` is one of `GAPS`. */
  gap(why, from, to) {
    this.#begin(from);
    this.#list.add({ type: 'gap', index: ALL, why, from: this.#msAt(from), to: this.#msAt(to), missing: 0 });
    this.#timed.clear();
  }

  /** `{start, end, records}` of the segment that ends at `time`; the next one begins with what is added then. `why` is one of `ENDS`. */
  close(why, time) {
    this.#begin(time);
    const segment = { start: this.#start, end: time, records: this.#list.close(why, time) };
    this.#list = new RecordList();
    this.#start = undefined;
    this.#announced.clear();
    this.#timed.clear();
    return segment;
  }

  #begin(time) {
    this.#start ??= time;
  }

  #announce(index) {
    if (this.#announced.has(index)) return;
    const { n, source, codec, clockRate } = this.#streams.get(index);
    this.#list.add({ type: 'stream', index, n, source, codec, layer: 0, clockRate, epoch: 0 });
    this.#announced.add(index);
  }

  /** ms since the start. Frames of two streams are not in order, so one may be from before it: its clock has the time. */
  #msAt(time) {
    return Math.min(Math.max(Math.round((time - this.#start) / 1_000), 0), MAX_MS);
  }
}
