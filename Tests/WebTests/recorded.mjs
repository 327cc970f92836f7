// An honest recording of one device, with the manifest and the files that a server keeps of it, for tests that let the server lie.

import { load } from './web.mjs';

const { MemoryStore } = await load('devices/store.js');
const { fromBase64, random, sha256, toBase64 } = await load('wire/bytes.js');
const { Identity } = await load('trust/identity.js');
const { ChainKey, sealReelKey } = await load('recordings/chain-key.js');
const { makeGrant, makeRecordingKey } = await load('consent/grants.js');
const { makeNote } = await load('recordings/notes.js');
const { RecordList } = await load('recordings/records.js');
const { NO_SEGMENT, sealSegment } = await load('recordings/segment.js');
const { makeStatement } = await load('consent/statement.js');
const { makeWitness } = await load('recordings/witnesses.js');

export const NOW = 1_790_000_000_000;
export const CALL = '7d1f0d6c-5a3e-4c0b-9b0e-2f64c1a8e3d5';
const SEGMENT_MS = 4_000;

export const person = (user, device) => Identity.open(new MemoryStore(), user, device);

/** A device as a holder of grants. */
export const holder = (identity) => ({ user: identity.user, device: identity.device, wrap: identity.wrap, publicKey: fromBase64(wrapKey(identity).publicKey) });
export const wrapKey = ({ keys }) => keys.find(({ use }) => use === 'wrap');

/** A recording by `starter`, readable by `readers`, with everything that the server has of it and, in `secrets`, what only the device had. */
export class Recorded {
  static async make(starter, readers, { kind = 'message', segments = 4, isEnd = true, id = crypto.randomUUID(), call = kind === 'own' ? undefined : CALL, at = NOW } = {}) {
    const recorded = new Recorded();
    const { publicKey, scalar } = await makeRecordingKey();
    const names = [...new Set([starter, ...readers].map(({ user }) => user))];
    const { statement, st } = await makeStatement(starter, { id, kind, call, publicKey, media: ['audio', 'video'], readers: names, at });
    const chain = random(32);
    const reelKey = await sealReelKey(starter, chain, { st, reel: 1, publicKey });
    Object.assign(recorded, { id, st, starter, publicKey, statement, files: [] });
    recorded.secrets = { scalar, chain: Uint8Array.from(chain) };
    await recorded.#record(await ChainKey.begin(chain, { id, reel: 1 }), { segments, isEnd });
    const grants = [];
    for (const reader of readers) grants.push(await recorded.grantTo(reader));
    const notes = [];
    for (const number of [0, 1, 2]) notes.push(await makeNote(starter, { kind: 'text', text: `note ${number}` }, { st, number, publicKey }));
    recorded.manifest = {
      statement,
      state: 'finished',
      people: [{ participant: 1, user: starter.user, device: starter.device, fingerprint: toBase64(starter.fingerprint), keys: starter.keys }],
      reelKeys: [{ reel: 1, ...reelKey }],
      reels: [{ participant: 1, from: 0, segments: await recorded.listed() }],
      grants,
      notes,
      witnesses: [await recorded.witness(segments, isEnd)],
    };
    return recorded;
  }

  grantTo(reader, { from = this.starter, scalar = this.secrets.scalar, st = this.st } = {}) {
    const to = { user: reader.user, device: reader.device };
    return makeGrant(from, scalar, { id: this.id, st, to, target: wrapKey(reader), at: NOW });
  }

  async witness(segments, isEnd, { by = this.starter } = {}) {
    return makeWitness(by, { st: this.st, reel: 1, segments, head: await sha256(this.files[segments - 1]), at: NOW, isEnd });
  }

  /** The files as the manifest lists them. */
  listed() {
    const start = (n) => (NOW + n * SEGMENT_MS) * 1_000;
    return Promise.all(this.files.map(async (file, n) => [file.length, toBase64(await sha256(file)), start(n)]));
  }

  async #record(chainKey, { segments, isEnd }) {
    let [key, previous] = [chainKey, NO_SEGMENT];
    for (let n = 0; n < segments; n += 1) {
      const sealed = await this.seal(key, { n, previous, isLast: isEnd && n === segments - 1 });
      this.files.push(sealed.file);
      [key, previous] = [await key.next(), sealed.hash];
    }
  }

  /** A segment of a microphone and a camera under `key`. */
  seal(key, { n, previous, isLast, start = (NOW + n * SEGMENT_MS) * 1_000 }) {
    const list = new RecordList();
    list.add({ type: 'stream', index: 0, n: 1, source: 'microphone', codec: 'opus', layer: 0, clockRate: 48_000, epoch: 0 });
    list.add({ type: 'clock', index: 0, how: 'device', timestamp: 0, time: start });
    for (let i = 0; i < 3; i += 1) list.add({ type: 'frame', index: 0, isKey: true, timestamp: i * 960, arrival: i * 20, data: Uint8Array.of(n, i, 1) });
    return sealSegment(key, list.close(isLast ? 'complete' : 'more', start + SEGMENT_MS * 1_000), { start, previous, nonce: random(12) });
  }

  /** The same recording for one test: what the server has may be changed. */
  copy() {
    const copy = Object.assign(new Recorded(), this);
    copy.manifest = structuredClone(this.manifest);
    copy.files = this.files.map((file) => Uint8Array.from(file));
    return copy;
  }
}
