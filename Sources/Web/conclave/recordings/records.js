// The records in a segment: `u8 type ‖ u24 length ‖ body`, big-endian. They come from the server or, behind a good seal, from another device: a
// record that does not fit ends the reading, and every prefix that ends at a record is worth playing.

import { concat, u32, u64 } from '../wire/index.js';

export const SOURCES = { microphone: 1, camera: 2, screen: 3, 'screen-audio': 4 };
export const CODECS = { opus: 1, vp8: 2, vp9: 3, av1: 4, h264: 5 };
/** How a clock record knows the time: by a sender report, by arrivals, or because the device wrote it itself. */
export const CLOCKS = { report: 1, arrivals: 2, device: 3 };
export const GAPS = { network: 1, server: 2, disk: 3, restart: 4, 'no-key': 5, away: 6, unknown: 7 };
export const MARKS = { muted: 1, unmuted: 2, held: 3, resumed: 4, ended: 5, paused: 6, continued: 7, 'consent-ended': 8 };
export const ENDS = { more: 1, complete: 2, recovered: 3 };
/** The index of a gap or a mark that concerns all streams. */
export const ALL = 255;

const [STREAM, FRAME, CLOCK, GAP, MARK, END] = [1, 2, 3, 4, 5, 127];
const MAX_STREAMS = 64; // in a segment: indices are below
const MAX_RECORDS = 65_536; // in a segment
const MAX_LENGTH = 0xff_ffff;
const FRAME_HEAD = 10;
const OVERHEAD = 4;

/** The name of a number of the format; the number itself, if a later version knows more of them than this one. */
const nameOf = (table, number) => Object.keys(table).find((name) => table[name] === number) ?? number;
const knownIn = (table, number) => Object.values(table).includes(number);

const flagsOf = ({ isKey, isDisposable = false, orientation = 0, spatial = 0, temporal = 0 }) =>
  Number(isKey) | (Number(isDisposable) << 1) | (orientation << 2) | (spatial << 4) | (temporal << 6);

/** The body of a record of each type. Its members are those that `readers` below returns. */
const writers = {
  stream: ({ index, n, source, codec, layer, clockRate, epoch }) => [STREAM, Uint8Array.of(index, n, SOURCES[source], CODECS[codec], layer), u32(clockRate), u32(epoch)],
  frame: ({ index, timestamp, arrival, data, ...flags }) => [FRAME, Uint8Array.of(index, flagsOf(/** @type {any} */ (flags))), u32(timestamp), u32(arrival), data],
  clock: ({ index, how, timestamp, time }) => [CLOCK, Uint8Array.of(index, CLOCKS[how]), u32(timestamp), u64(time)],
  gap: ({ index, why, from, to, missing }) => [GAP, Uint8Array.of(index, GAPS[why]), u32(from), u32(to), u32(missing)],
  mark: ({ index, what, at }) => [MARK, Uint8Array.of(index, MARKS[what]), u32(at)],
  end: ({ why, records, time }) => [END, Uint8Array.of(ENDS[why]), u32(records), u64(time)],
};

/**
 * A record as bytes. The members are, for each `type`: `stream` `{index, n, source, codec, layer, clockRate, epoch}`; `frame` `{index, isKey, isDisposable, orientation, spatial,
 * temporal, timestamp, arrival, data}`; `clock` `{index, how, timestamp, time}`; `gap` `{index, why, from, to, missing}`; `mark` `{index, what, at}`; `end`
 * `{why, records, time}`. `time` is µs since 1970; `timestamp` is RTP's, in units of the stream's clock; all other times are ms since the segment's start.
 */
export function encodeRecord(record) {
  const [type, ...parts] = writers[record.type](record);
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  if (length > MAX_LENGTH) throw new RangeError('a record of 16 MiB or more');
  return concat(Uint8Array.of(type, length >> 16, (length >> 8) & 255, length & 255), ...parts);
}

/** The length of a body of each type, but for frames. */
const LENGTHS = { [STREAM]: 13, [CLOCK]: 14, [GAP]: 14, [MARK]: 6, [END]: 13 };

/**
 * The record in a body of each type; undefined if it does not fit.
 * @type {Record<number, (view: DataView) => any>}
 */
const readers = {
  [STREAM](view) {
    const [index, n, clockRate] = [view.getUint8(0), view.getUint8(1), view.getUint32(5)];
    if (index >= MAX_STREAMS || n === 0 || clockRate === 0) return undefined;
    const [source, codec] = [nameOf(SOURCES, view.getUint8(2)), nameOf(CODECS, view.getUint8(3))];
    return { type: 'stream', index, n, source, codec, layer: view.getUint8(4), clockRate, epoch: view.getUint32(9) };
  },
  [CLOCK](view) {
    const [how, time] = [view.getUint8(1), timeAt(view, 6)];
    if (!knownIn(CLOCKS, how) || time === undefined) return undefined;
    return { type: 'clock', index: view.getUint8(0), how: nameOf(CLOCKS, how), timestamp: view.getUint32(2), time };
  },
  [GAP](view) {
    const [from, to] = [view.getUint32(2), view.getUint32(6)];
    return from <= to ? { type: 'gap', index: view.getUint8(0), why: nameOf(GAPS, view.getUint8(1)), from, to, missing: view.getUint32(10) } : undefined;
  },
  [MARK]: (view) => ({ type: 'mark', index: view.getUint8(0), what: nameOf(MARKS, view.getUint8(1)), at: view.getUint32(2) }),
  [END](view) {
    const [why, time] = [view.getUint8(0), timeAt(view, 5)];
    return knownIn(ENDS, why) && time !== undefined ? { type: 'end', why: nameOf(ENDS, why), records: view.getUint32(1), time } : undefined;
  },
  [FRAME](view) {
    const flags = view.getUint8(1);
    const layers = { orientation: (flags >> 2) & 3, spatial: (flags >> 4) & 3, temporal: flags >> 6 };
    const data = new Uint8Array(view.buffer, view.byteOffset + FRAME_HEAD, view.byteLength - FRAME_HEAD);
    const kind = { isKey: (flags & 1) !== 0, isDisposable: (flags & 2) !== 0, ...layers };
    return { type: 'frame', index: view.getUint8(0), ...kind, timestamp: view.getUint32(2), arrival: view.getUint32(6), data };
  },
};

function timeAt(view, offset) {
  const time = view.getBigUint64(offset);
  return time <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(time) : undefined;
}

function recordIn(type, body) {
  const isWhole = type === FRAME ? body.length >= FRAME_HEAD : body.length === LENGTHS[type];
  return isWhole ? readers[type](new DataView(body.buffer, body.byteOffset, body.length)) : undefined;
}

/**
 * `{records, end, isDamaged}` of a segment's bytes behind its header: the records before the first that does not fit, without those of an unknown type. Without
 * `end` the segment was not closed; if it `isDamaged`, something follows that is no record, or contradicts those before.
 * @returns {{records: any[], end: any, isDamaged: boolean}}
 */
export function parseRecords(bytes) {
  const records = [];
  const streams = new Set();
  let [at, count, end] = [0, 0, undefined]; // `count` with those that are skipped
  while (at < bytes.length) {
    const length = at + OVERHEAD <= bytes.length ? (bytes[at + 1] << 16) | (bytes[at + 2] << 8) | bytes[at + 3] : Infinity;
    const next = at + OVERHEAD + length;
    if (end || next > bytes.length || count === MAX_RECORDS) return { records, end, isDamaged: true };
    const type = bytes[at];
    if (Object.hasOwn(readers, type)) {
      const record = recordIn(type, bytes.subarray(at + OVERHEAD, next));
      if (!record || !fits(record, streams, count)) return { records, end, isDamaged: true };
      if (type === END) end = record;
      else records.push(record);
    }
    [at, count] = [next, count + 1];
  }
  return { records, end, isDamaged: false };
}

/** Whether a record may stand here. An index is announced once, before all else of its stream. */
function fits({ type, index, records }, streams, count) {
  if (type === 'end') return records === count;
  if (type === 'stream') return !streams.has(index) && Boolean(streams.add(index));
  return streams.has(index) || (index === ALL && (type === 'gap' || type === 'mark'));
}

/** The records of a segment as they are written: how many, and how many bytes. */
export class RecordList {
  #parts = [];
  /** How many bytes there are so far. */
  length = 0;

  get count() {
    return this.#parts.length;
  }

  add(record) {
    const bytes = encodeRecord(record);
    this.#parts.push(bytes);
    this.length += bytes.length;
  }

  /** All records, closed at `time`, µs since 1970. `why` is one of `ENDS`. */
  close(why, time) {
    this.add({ type: 'end', why, records: this.count, time });
    return concat(...this.#parts);
  }
}
