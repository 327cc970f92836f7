// An honest recording of a call, with the manifest and the files that a server keeps of it, for tests that let the server lie.

import { NOW, wrapKey } from './recorded.mjs';
import { load } from './web.mjs';

const { makeGrant, makeRecordingKey } = await load('consent/grants.js');
const { makeStatement } = await load('consent/statement.js');
const { signTrackKeys } = await load('consent/track-keys.js');
const { FrameKeys } = await load('frames/frames.js');
const { RecordList } = await load('recordings/records.js');
const { concat, random, sha256, toBase64, u32, u64 } = await load('wire/bytes.js');
const { importSecret } = await load('wire/transcript.js');
const { idBytes } = await load('consent/layouts.js');

const CALL = '7d1f0d6c-5a3e-4c0b-9b0e-2f64c1a8e3d5';
export const SEGMENT_MS = 4_000;
const [MICROPHONE, CAMERA] = [1, 2];
const NAMES = { [MICROPHONE]: ['microphone', 'opus', 48_000], [CAMERA]: ['camera', 'vp8', 90_000] };

/** A device's stay in the call: what its worker has, and what it has sealed. */
class Stay {
  static async make(identity, participant, secret) {
    const stay = new Stay();
    Object.assign(stay, { identity, participant, joinId: random(16), keys: new FrameKeys() });
    stay.keys.identify({ call: CALL, participant, fingerprint: identity.fingerprint, joinId: stay.joinId });
    for (const [epoch, { bytes, listHash }] of secret) stay.keys.install({ epoch, listHash, secret: await importSecret(bytes), senders: [] });
    return stay;
  }

  get person() {
    const { user, device, fingerprint, keys } = this.identity;
    return { participant: this.participant, user, device, name: user, fingerprint: toBase64(fingerprint), joinId: toBase64(this.joinId), keys };
  }

  seal(n, text) {
    const data = n === CAMERA ? concat(Uint8Array.of(0x10, 2, 0, 0x9d, 1, 0x2a, 0x80, 2, 0x68, 1), text) : text;
    return this.keys.seal(n, data, n === CAMERA ? 10 : 0);
  }
}

/** The bytes of a file that is not sealed, whose records are closed with `why`. */
async function fileOf({ id, reel, n, start = (NOW + n * SEGMENT_MS) * 1_000, previous, records, why = 'more', end = start + SEGMENT_MS * 1_000 }) {
  const list = new RecordList();
  for (const record of records) list.add(record);
  const header = concat(Uint8Array.of(0x43, 0x52, 0x45, 0x43, 1, 0, 0, 96), idBytes(id), u32(reel), u32(n), u64(start), previous, new Uint8Array(24));
  return concat(header, list.close(why, end));
}

const streamOf = (index, n, epoch, layer = 0) => {
  const [source, codec, clockRate] = NAMES[n];
  return { type: 'stream', index, n, source, codec, layer, clockRate, epoch };
};

export class RecordedCall {
  /** `starter` has recorded a call of `people`, identities; each has a reel of `segments[index]` segments of a microphone and a camera, under epoch 5, then 6. */
  static async make(starter, people, { readers = people, segments = people.map(() => 3), id = crypto.randomUUID() } = {}) {
    const recorded = new RecordedCall();
    const { publicKey, scalar } = await makeRecordingKey();
    const { statement, st } = await makeStatement(starter, { id, kind: 'call', call: CALL, publicKey, media: ['audio', 'video'], readers: [...new Set(readers.map(({ user }) => user))], at: NOW });
    const secrets = new Map([5, 6].map((epoch) => [epoch, { bytes: random(32), listHash: random(32) }]));
    Object.assign(recorded, { id, st, starter, publicKey, statement, scalar, secrets, files: new Map(), stays: [] });
    for (const [index, identity] of people.entries()) recorded.stays.push(await Stay.make(identity, index + 1, secrets));
    const grants = [];
    for (const reader of readers) grants.push(await makeGrant(starter, scalar, { id, st, to: { user: reader.user, device: reader.device }, target: wrapKey(reader), at: NOW }));
    const trackKeys = [];
    for (const stay of recorded.stays) for (const epoch of secrets.keys()) trackKeys.push(await recorded.export(stay, epoch));
    for (const [index, stay] of recorded.stays.entries()) await recorded.#record(stay, segments[index]);
    const reels = [];
    for (const { participant } of recorded.stays) reels.push({ participant, from: 0, segments: await recorded.listed(participant) });
    recorded.manifest = { statement, state: 'finished', people: recorded.stays.map(({ person }) => person), reels, grants, trackKeys };
    return recorded;
  }

  /** The keys that a device hands out for its two tracks in an epoch. */
  async export(stay, epoch, { by = stay.identity, tracks = [MICROPHONE, CAMERA], st = this.st } = {}) {
    const exported = { tracks, ...(await stay.keys.exported({ epoch, tracks, st, publicKey: this.publicKey })) };
    const { recording: _, ...keys } = await signTrackKeys(by, { recording: this.id, epoch, exported });
    return { participant: stay.participant, listHash: toBase64(this.secrets.get(epoch).listHash), ...keys };
  }

  /** The files of a reel as the manifest lists them. */
  listed(participant) {
    const start = (file) => Number(new DataView(file.buffer, file.byteOffset).getBigUint64(32));
    return Promise.all(this.files.get(participant).map(async (file) => [file.length, toBase64(await sha256(file)), start(file)]));
  }

  async #record(stay, count) {
    this.records ??= new Map();
    const files = [];
    const all = [];
    for (let n = 0; n < count; n += 1) {
      const epoch = n === 0 ? 5 : 6;
      stay.keys.switchTo(epoch);
      const records = [streamOf(0, MICROPHONE, epoch), streamOf(1, CAMERA, epoch)];
      for (const index of [0, 1]) records.push({ type: 'clock', index, how: 'report', timestamp: 0, time: (NOW + n * SEGMENT_MS) * 1_000 });
      for (let i = 0; i < 3; i += 1) {
        for (const index of [0, 1]) {
          const data = await stay.seal(index + 1, Uint8Array.of(stay.participant, n, index, i));
          records.push({ type: 'frame', index, isKey: true, timestamp: i * (index === 0 ? 48_000 : 90_000), arrival: i * 1_000, data });
        }
      }
      all.push(records);
      files.push(await fileOf({ id: this.id, reel: stay.participant, n, previous: n === 0 ? new Uint8Array(32) : await sha256(files[n - 1]), records, why: n === count - 1 ? 'complete' : 'more' }));
    }
    this.files.set(stay.participant, files);
    this.records.set(stay.participant, all);
  }

  /** The server writes a reel again from its changed records, and lists it. */
  async rewrite(participant, { starts = [] } = {}) {
    const all = this.records.get(participant);
    const files = [];
    for (const [n, records] of all.entries()) {
      files.push(await fileOf({ id: this.id, reel: participant, n, start: starts[n], previous: n === 0 ? new Uint8Array(32) : await sha256(files[n - 1]), records, why: n === all.length - 1 ? 'complete' : 'more' }));
    }
    this.files.set(participant, files);
    this.manifest.reels.find((reel) => reel.participant === participant).segments = await this.listed(participant);
  }

  /** The same recording for one test: what the server has may be changed. */
  copy() {
    const copy = Object.assign(new RecordedCall(), this);
    copy.manifest = structuredClone(this.manifest);
    copy.records = structuredClone(this.records);
    copy.files = new Map([...this.files].map(([number, files]) => [number, files.map((file) => Uint8Array.from(file))]));
    return copy;
  }
}

