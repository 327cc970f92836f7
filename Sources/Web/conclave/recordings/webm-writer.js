// Writes WebM (RFC 9559, EBML RFC 8794) for what was recorded: VP8 and Opus, clusters of five seconds, cues for seeking, the duration. Gaps stay gaps in time.

import { concat, utf8 } from '../wire/index.js';

const CLUSTER_MS = 5_000;
const SCALE = 1_000_000; // ns: times are in ms
const SEEK_PRE_ROLL = 80_000_000; // ns, of Opus (RFC 7845 section 4.6)
const APP = 'Conclave';

/** A whole number in as few bytes as it needs. */
function uint(number) {
  const bytes = [];
  for (let rest = number; rest > 0; rest = Math.floor(rest / 256)) bytes.unshift(rest % 256);
  return Uint8Array.from(bytes.length > 0 ? bytes : [0]);
}

function u64(number) {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(number));
  return bytes;
}

function float64(number) {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setFloat64(0, number);
  return bytes;
}

/** A size in 8 bytes, so that it can be written later. */
function sizeOf(length) {
  const bytes = u64(length);
  bytes[0] = 1;
  return bytes;
}

const element = (id, ...parts) => {
  const body = concat(...parts);
  return concat(uint(id), sizeOf(body.length), body);
};

const EBML = element(
  0x1a45dfa3,
  element(0x4286, uint(1)), element(0x42f7, uint(1)), element(0x42f2, uint(4)), element(0x42f3, uint(8)),
  element(0x4282, utf8('webm')), element(0x4287, uint(4)), element(0x4285, uint(2)),
);
const SEGMENT_HEAD = 12; // its id and size
const [INFO, TRACKS, CLUSTER, CUES] = [0x1549a966, 0x1654ae6b, 0x1f43b675, 0x1c53bb6b];

/** The width and height in pixels of a VP8 key frame (RFC 6386 section 9.1); undefined if it is none. */
export function vp8Size(frame) {
  if (frame.length < 10 || frame[0] & 1 || frame[3] !== 0x9d || frame[4] !== 0x01 || frame[5] !== 0x2a) return undefined;
  return { width: ((frame[7] << 8) | frame[6]) & 0x3fff, height: ((frame[9] << 8) | frame[8]) & 0x3fff };
}

/** 1 or 2 channels, by an Opus packet's first byte (RFC 6716 section 3.1). */
export const opusChannels = (packet) => (packet[0] & 4 ? 2 : 1);

function trackOf({ number, codec, width, height, channels, clockRate }) {
  const common = [element(0xd7, uint(number)), element(0x73c5, uint(number)), element(0x9c, uint(0))];
  if (codec === 'vp8') return element(0xae, ...common, element(0x83, uint(1)), element(0x86, utf8('V_VP8')), element(0xe0, element(0xb0, uint(width)), element(0xba, uint(height))));
  const head = concat(utf8('OpusHead'), Uint8Array.of(1, channels, 0, 0, 0x80, 0xbb, 0, 0, 0, 0, 0)); // 48,000 Hz, little-endian, no gain
  const audio = element(0xe1, element(0xb5, float64(clockRate)), element(0x9f, uint(channels)));
  return element(0xae, ...common, element(0x83, uint(2)), element(0x86, utf8('A_OPUS')), element(0x63a2, head), element(0x56bb, uint(SEEK_PRE_ROLL)), audio);
}

/** `tracks`: `{number, codec}` each, of `vp8` with `width` and `height`, of `opus` with `channels` and `clockRate`; `start` is the time of 0, µs since 1970. */
export class WebMWriter {
  #tracks;
  #start;
  #written; // bytes
  #frames = []; // of the cluster that is being made
  #clusterAt = 0; // ms
  #cues = [];
  #last = 0; // ms

  constructor(tracks, start) {
    this.#tracks = tracks;
    this.#start = start;
    this.#written = this.#head(0, 0).length;
  }

  /** The bytes before the first cluster. They are written again at the end, with what is not known before: see `finish`. */
  get head() {
    return this.#head(0, 0);
  }

  /** The bytes to write next, if a cluster is complete. `time` is µs since 1970; frames come in the order of their times, or nearly. */
  add({ number, isKey, time, data }) {
    const ms = Math.max(0, Math.round((time - this.#start) / 1_000));
    const done = this.#frames.length > 0 && ms >= this.#clusterAt + CLUSTER_MS ? this.#cluster() : new Uint8Array(0);
    if (this.#frames.length === 0) this.#clusterAt = ms;
    this.#frames.push({ number, isKey, ms, data });
    this.#last = Math.max(this.#last, ms);
    return done;
  }

  /** `{tail, head}`: the last bytes, and those that replace the first. `end` is when the recording ends, µs since 1970. */
  finish(end) {
    const last = this.#frames.length > 0 ? this.#cluster() : new Uint8Array(0);
    const cuesAt = this.#written;
    const cues = element(CUES, ...this.#cues.map(({ ms, number, at }) => element(0xbb, element(0xb3, uint(ms)), element(0xb7, element(0xf7, uint(number)), element(0xf1, uint(at))))));
    this.#written += cues.length;
    const duration = Math.max(this.#last, Math.round((end - this.#start) / 1_000));
    return { tail: concat(last, cues), head: this.#head(duration, cuesAt) };
  }

  /** All positions are relative to the first byte in the segment. */
  #head(duration, cuesAt) {
    const info = element(INFO, element(0x2ad7b1, uint(SCALE)), element(0x4489, float64(duration)), element(0x4d80, utf8(APP)), element(0x5741, utf8(APP)));
    const tracks = element(TRACKS, ...this.#tracks.map(trackOf));
    const base = EBML.length + SEGMENT_HEAD;
    const seek = (id, at) => element(0x4dbb, element(0x53ab, uint(id)), element(0x53ac, u64(at)));
    const lengthOfSeeks = element(0x114d9b74, seek(INFO, 0), seek(TRACKS, 0), seek(CUES, 0)).length;
    const seeks = element(0x114d9b74, seek(INFO, lengthOfSeeks), seek(TRACKS, lengthOfSeeks + info.length), seek(CUES, Math.max(0, cuesAt - base)));
    const size = cuesAt > 0 ? sizeOf(this.#written - base) : Uint8Array.of(1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff);
    return concat(EBML, uint(0x18538067), size, seeks, info, tracks);
  }

  #cluster() {
    const frames = this.#frames.sort((a, b) => a.ms - b.ms);
    const at = frames[0].ms;
    const key = frames.find(({ number, isKey }) => isKey && this.#isVideo(number)) ?? frames.find(() => !this.#tracks.some(({ number }) => this.#isVideo(number)));
    if (key) this.#cues.push({ ms: key.ms, number: key.number, at: this.#written - EBML.length - SEGMENT_HEAD });
    const blocks = frames.map(({ number, isKey, ms, data }) => {
      const relative = ms - at;
      return element(0xa3, Uint8Array.of(0x80 | number, relative >> 8, relative & 255, isKey ? 0x80 : 0), data);
    });
    const bytes = element(CLUSTER, element(0xe7, uint(at)), ...blocks);
    this.#written += bytes.length;
    this.#frames = [];
    return bytes;
  }

  #isVideo(number) {
    return this.#tracks.find((track) => track.number === number)?.codec === 'vp8';
  }
}
