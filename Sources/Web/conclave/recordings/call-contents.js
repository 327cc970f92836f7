// The contents of a participant's reel of a call: the frames as its device sealed them, which open with the keys that it handed out. The rest of a segment is the server's
// word, so each frame has to be of this participant, track and epoch, and in its place.

import { TAG_BYTES, clearBytes, open, parseHeader } from '../frames/index.js';
import { Refusal, concat, kidOf } from '../wire/index.js';
import { timedFrames } from './clocks.js';
import { parseRecords } from './records.js';
import { HEADER } from './segment.js';

const VIDEO = ['camera', 'screen'];
const HEADER_BYTES = 17; // the longest header of an SFrame
const BESIDE_US = 10_000_000; // how far a frame's time may be outside of its segment
const MIME_TYPES = { vp8: 'video/vp8', vp9: 'video/vp9' };

export class CallContents {
  #keys;
  #opened = new Set(); // of the keys, by the stream
  #counters = new Map(); // stream -> Map(n -> [lowest, highest])
  #failed = 0;
  #hasChanged = false;
  #isComplete = false;

  /** `keys` are those of `openTrackKeys`, by `epoch/n`. */
  constructor({ participant, keys }) {
    this.reel = participant;
    this.#keys = keys;
  }

  /** As in `SealedContents`; of the frames only those that count. */
  async open(file, header) {
    if (header.isSealed) throw new Refusal('a segment that is sealed as a whole');
    const { records, end, isDamaged } = parseRecords(file.subarray(HEADER));
    if (end?.why === 'complete') this.#isComplete = true;
    const bounds = { from: header.start - BESIDE_US, to: (end?.time ?? Infinity) + BESIDE_US };
    const seen = new Map(); // stream -> the counters in this segment
    const frames = [];
    const all = timedFrames(records, header.start);
    for (const frame of all) {
      const data = await this.#frame(frame, { n: header.n, seen, bounds });
      if (data) frames.push({ ...frame, data });
    }
    for (const [name, range] of seen) this.#counters.set(name, (this.#counters.get(name) ?? new Map()).set(header.n, range));
    const lacks = all.length > 0 && frames.length === 0;
    const gap = { type: 'gap', why: 'no-key', from: 0, to: Math.max(...all.map(({ arrival }) => arrival)), missing: 0 };
    return { records: lacks ? [...records, gap] : records, frames, end, isDamaged };
  }

  /** `changed`; `no-key`, if nothing opened; `complete`, as the server says; undefined otherwise. */
  get state() {
    if (this.#hasChanged) return 'changed';
    if (this.#failed > 0 && this.#opened.size === 0) return 'no-key';
    return this.#isComplete ? 'complete' : undefined;
  }

  /** The encoded frame; undefined if it does not open, or is out of its place. */
  async #frame({ stream, data, time }, { n, seen, bounds }) {
    const name = `${stream.epoch}/${stream.n}`;
    const key = this.#keys.get(name);
    const clear = clearBytes(data, VIDEO.includes(stream.source), MIME_TYPES[stream.codec]);
    if (!key || data.length < clear + 1 + TAG_BYTES) return this.#fail();
    try {
      const header = parseHeader(data.subarray(clear, clear + HEADER_BYTES));
      if (Number(header.kid) !== kidOf(this.reel, stream.n, stream.epoch)) return this.#change();
      const opened = await open(key, header, data.subarray(0, clear), data.subarray(clear));
      this.#opened.add(name);
      if (!this.#isNext(`${name}/${stream.layer}`, Number(header.counter), n, seen) || time < bounds.from || time > bounds.to) return this.#change();
      return concat(data.subarray(0, clear), opened);
    } catch {
      // Under a key that opens others, it was changed; a key that opens nothing may be a bad one of that device.
      return this.#opened.has(name) ? this.#change() : this.#fail();
    }
  }

  /** Whether the counter rises within a layer of a stream: in this segment, and between those before and behind it that were opened. */
  #isNext(name, counter, n, seen) {
    const range = seen.get(name);
    if (range && counter <= range[1]) return false;
    for (const [other, [lowest, highest]] of this.#counters.get(name) ?? []) {
      if ((other < n && counter <= highest) || (other > n && counter >= lowest)) return false;
    }
    seen.set(name, [range?.[0] ?? counter, counter]);
    return true;
  }

  #change() {
    this.#hasChanged = true;
    return this.#fail();
  }

  #fail() {
    this.#failed += 1;
    return undefined;
  }
}
