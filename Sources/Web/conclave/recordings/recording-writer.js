// A device records: frames come in, sealed segments go into the store, and from there to the server. A number is sealed once: the file and the next chain key are
// stored together, and only then may the file leave.

import { makeGrant, makeRecordingKey, makeStatement } from '../consent/index.js';
import { random } from '../wire/index.js';
import { ChainKey, sealReelKey } from './chain-key.js';
import { SegmentBuilder } from './segment-builder.js';
import { NO_SEGMENT, REEL, sealSegment } from './segment.js';
import { makeWitness } from './witnesses.js';

const CHAIN_BYTES = 32;
const NONCE_BYTES = 12;
/** How long a segment of each kind is, in µs: what is lost with a device at the most. */
const SEGMENT_US = { message: 4_000_000, own: 2_000_000 };
const SEGMENT_BYTES = 4 * 1_048_576;
/** How many bytes may wait for the store. Beyond that frames are dropped: a slow disk must not fill the memory. */
const WAITING_BYTES = 16 * 1_048_576;
const NO_ROOM = 'QuotaExceededError';

/** The row of a device's recording in the store belongs to this device. */
export const ownerOf = ({ user, device }) => `${user}/${device}`;

/** The 16 bytes of `random` as a UUID (RFC 9562 section 5.4). */
function uuidOf(bytes) {
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}

/**
 * Events: `sealed` with `{n, bytes, end}`, `end` in µs, when a segment is in the store; `trouble` with `{reason}`, `no-room` or `store`: nothing more is recorded, and what was
 * sealed stays.
 */
export class RecordingWriter extends EventTarget {
  row;
  /** Whether there is room for another segment of so many bytes. */
  hasRoomFor = (_bytes) => true;
  #identity;
  #store;
  #builder;
  #chainKey;
  #head;
  #bytes; // of all segments
  #end; // of what was added
  #sealing = Promise.resolve();
  #waiting = 0; // bytes
  #dropping; // since when, µs
  #needsKey = new Set(); // video streams whose frames refer to one that was dropped
  #isOver = false;

  /**
   * Begins a recording of `kind`, `message` or `own`, by this device: `streams` are those of `SegmentBuilder`, `readers` are users, `at` is in ms. Its key is
   * made here, and kept only as a grant to this device. `more` are further members of its row.
   */
  static async begin(identity, store, { kind, call = undefined, media, readers, streams, at, more = {} }) {
    const id = uuidOf(random(16));
    const { publicKey, scalar } = await makeRecordingKey();
    const { statement, st } = await makeStatement(identity, { id, kind, call, publicKey, media, readers, at });
    const chain = random(CHAIN_BYTES);
    const reelKey = await sealReelKey(identity, chain, { st, reel: REEL, publicKey });
    const target = identity.keys.find(({ use }) => use === 'wrap');
    const grant = await makeGrant(identity, scalar, { id, st, to: { user: identity.user, device: identity.device }, target, at });
    scalar.fill(0);
    const chainKey = await ChainKey.begin(chain, { id, reel: REEL });
    const row = { id, owner: ownerOf(identity), kind, statement, st, reelKey, grant, streams, startedAt: at, ...more };
    await store.put(['recordings', id, row], ['chains', id, chainRow(chainKey, NO_SEGMENT, 0)], ['uploads', id, { stored: 0, confirmed: 0 }]);
    return new RecordingWriter(identity, store, { row, chainKey, head: NO_SEGMENT });
  }

  /** Goes on with a recording that a killed tab has left, at `time`: what was missed is a gap. */
  static async resume(identity, store, id, time) {
    const [row, chain] = [await store.get('recordings', id), await store.get('chains', id)];
    const chainKey = new ChainKey({ id, reel: REEL, n: chain.n, key: chain.key });
    const writer = new RecordingWriter(identity, store, { row, chainKey, head: chain.head, bytes: chain.bytes });
    if (chain.end !== undefined && chain.end < time) writer.#builder.gap('away', chain.end, time);
    return writer;
  }

  constructor(identity, store, { row, chainKey, head, bytes = 0 }) {
    super();
    this.#identity = identity;
    this.#store = store;
    this.row = row;
    this.#chainKey = chainKey;
    this.#head = head;
    this.#bytes = bytes;
    this.#builder = new SegmentBuilder(row.streams);
  }

  /** Whether it records on. */
  get isOver() {
    return this.#isOver;
  }

  /** A frame, as `SegmentBuilder.frame` takes it. */
  frame(frame) {
    if (this.#isOver || this.#drops(frame)) return;
    const { start, length } = this.#builder;
    if (start !== undefined && (frame.time - start >= SEGMENT_US[this.row.kind] || length + frame.data.length > SEGMENT_BYTES)) this.#cut('more', frame.time);
    this.#builder.frame(frame);
    this.#end = Math.max(this.#end ?? 0, frame.time);
  }

  mark(what, time) {
    if (!this.#isOver) this.#builder.mark(what, time);
  }

  /** Nothing more is recorded, `time` being behind the last frame. Resolves when everything is in the store. */
  async end(time) {
    if (!this.#isOver) {
      const end = Math.max(time, this.#end ?? 0);
      this.#endGap(end);
      this.#cut('complete', end);
    }
    this.#isOver = true;
    await this.#sealing;
  }

  /** Whether there is no room for a frame; the person is told by the gap. */
  #drops({ index, isKey, time, data }) {
    if (this.#waiting + this.#builder.length + data.length > WAITING_BYTES) {
      this.#dropping ??= time;
      for (const stream of this.row.streams) if (stream.source === 'camera') this.#needsKey.add(stream.index);
      return true;
    }
    this.#endGap(time);
    if (isKey) this.#needsKey.delete(index);
    return this.#needsKey.has(index);
  }

  #endGap(time) {
    if (this.#dropping === undefined) return;
    this.#builder.gap('disk', this.#dropping, Math.max(time, this.#dropping));
    this.#dropping = undefined;
  }

  #cut(why, time) {
    const segment = this.#builder.close(why, time);
    this.#waiting += segment.records.length;
    this.#sealing = this.#sealing.then(() => this.#seal(segment)).catch((error) => this.#failed(error)).finally(() => (this.#waiting -= segment.records.length));
  }

  async #seal({ start, end, records }) {
    if (!this.#chainKey) return; // it has failed
    const { id } = this.row;
    const { n } = this.#chainKey;
    const { file, hash } = await sealSegment(this.#chainKey, records, { start, previous: this.#head, nonce: random(NONCE_BYTES) });
    if (!this.hasRoomFor(file.length)) throw Object.assign(new Error('too much waits'), { name: NO_ROOM });
    const witness = await makeWitness(this.#identity, { st: this.row.st, reel: REEL, segments: n + 1, head: hash, at: endOf({ end }), isEnd: false });
    const next = await this.#chainKey.next();
    await this.#store.put(['segments', [id, n], { file, hash, witness }], ['chains', id, chainRow(next, hash, this.#bytes + file.length, end)]);
    [this.#chainKey, this.#head] = [next, hash];
    this.#bytes += file.length;
    this.dispatchEvent(new CustomEvent('sealed', { detail: { n, bytes: file.length, end } }));
  }

  /** The number may have been sealed: it is not sealed again under this key, so nothing more is recorded. */
  #failed(error) {
    if (!this.#chainKey) return;
    this.#chainKey = undefined;
    this.#isOver = true;
    this.dispatchEvent(new CustomEvent('trouble', { detail: { reason: error?.name === NO_ROOM ? 'no-room' : 'store' } }));
  }
}

const chainRow = (chainKey, head, bytes, end = undefined) => ({ n: chainKey.n, key: chainKey.key, head, bytes, end });

/** The witness that a recording ends with what was sealed, as `recordings/finish` takes it. `now` (ms) is its time if nothing was. */
export async function endWitness(identity, store, id, now) {
  const [row, chain] = [await store.get('recordings', id), await store.get('chains', id)];
  return makeWitness(identity, { st: row.st, reel: REEL, segments: chain.n, head: chain.head, at: endOf(chain) ?? now, isEnd: true });
}

/** When a segment ends, in ms, as its witness says. */
const endOf = ({ end }) => (end === undefined ? undefined : Math.round(end / 1_000));
