// Recording on a device and the upload: segments leave while it records, whatever the network, the server and the tab do.

import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { fakeIndexedDB } from './fake-indexed-db.mjs';
import { CALL, NOW, holder, person } from './recorded.mjs';
import { aside, fakeTimers, load, until } from './web.mjs';

const { concat, equal, sha256, toBase64 } = await load('wire/bytes.js');
const { isSignedBy } = await load('trust/identity.js');
const { makeGrant, openGrant, grantIn } = await load('consent/grants.js');
const { witnessBytes } = await load('consent/layouts.js');
const { manifestIn } = await load('recordings/manifest.js');
const { RecordingReader } = await load('recordings/recording-reader.js');
const { RecordingWriter, endWitness } = await load('recordings/recording-writer.js');
const { parseHeader } = await load('recordings/segment.js');
const { SegmentUploader } = await load('recordings/segment-uploader.js');
const { MemoryStore, openRecordings } = await load('recordings/store.js');
const { Upload } = await load('recordings/upload.js');

const STREAMS = [
  { index: 0, n: 1, source: 'microphone', codec: 'opus', clockRate: 48_000 },
  { index: 1, n: 2, source: 'camera', codec: 'vp8', clockRate: 90_000 },
];
const BASE = 'https://host/recordings';
let alice, bob;
before(async () => ([alice, bob] = await Promise.all([person('alice', 'phone'), person('bob', 'laptop')])));

const begin = (store, options = {}) =>
  RecordingWriter.begin(alice, store, { kind: 'message', call: CALL, media: ['audio', 'video'], readers: ['alice', 'bob'], streams: STREAMS, at: NOW, ...options });
const soundAt = (ms, data = Uint8Array.of(ms & 255, ms >> 8, 7)) => ({ index: 0, isKey: true, timestamp: ms * 48, time: (NOW + ms) * 1_000, data });
const pictureAt = (ms, isKey, data = Uint8Array.of(9, ms & 255)) => ({ index: 1, isKey, timestamp: ms * 90, time: (NOW + ms) * 1_000, data });
/** Records sound every 500 ms from `from` to `to`. */
const record = (writer, from, to) => {
  for (let ms = from; ms < to; ms += 500) writer.frame(soundAt(ms));
};

/** Until there are `count` segments. */
async function sealedIn(store, count) {
  let segments = [];
  store.all('segments').then((all) => (segments = all));
  await until(() => {
    store.all('segments').then((all) => (segments = all));
    return segments.length >= count;
  });
}

/** The server of section 10.3: it checks the chain and the witness, and answers idempotently. `fault(request)` is an answer in its place, or 'lost' after it has acted. */
class FakeServer {
  files = [];
  requests = [];
  inFlight = 0;
  #turn = Promise.resolve();
  fault = () => undefined;
  ticket = 'upload~1';

  constructor(row) {
    this.row = row;
  }

  async head() {
    return this.files.length === 0 ? new Uint8Array(32) : sha256(this.files.at(-1));
  }

  /** Until it has answered everything, and no further request follows. */
  async rests() {
    for (let count = -1; count !== this.requests.length; ) {
      count = this.requests.length;
      await until(() => this.inFlight === 0);
      await aside(10);
    }
  }

  async position() {
    return { next: this.files.length, head: toBase64(await this.head()) };
  }

  fetch = async (url, { method, headers, body, signal, ...rest }) => {
    assert.deepEqual(rest, { credentials: 'omit', cache: 'no-store', redirect: 'error' });
    const request = { method, path: url.slice(BASE.length), at: this.requests.length };
    this.requests.push(request);
    this.inFlight += 1;
    return this.#answered(request, { headers, body, signal }).finally(() => (this.inFlight -= 1));
  };

  async #answered(request, { headers, body, signal }) {
    const fault = this.fault(request);
    if (fault === 'hangs') await new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('aborted'))));
    if (fault === 'offline') throw new TypeError('Failed to fetch');
    const answer = fault && fault !== 'lost' ? fault : await this.inTurn(() => this.answer(request, headers, body));
    if (fault === 'lost') throw new TypeError('the answer is lost');
    return answerOf(answer);
  }

  /** One upload of a reel at a time. */
  inTurn(action) {
    return (this.#turn = this.#turn.then(action));
  }

  async answer({ method, path }, headers, body) {
    if (headers.authorization !== `Bearer ${this.ticket}`) return { status: 401 };
    const [, id, reel, n] = path.split('/');
    if (id !== this.row.id) return { status: 404 };
    if (method === 'GET') return { status: 200, body: { reels: this.files.length > 0 ? { 1: await this.position() } : {} } };
    if (Number(n) < this.files.length) return equal(this.files[n], body) ? { status: 200 } : { status: 409, body: await this.position() };
    const header = parseHeader(body);
    if (Number(n) !== this.files.length || header.n !== Number(n) || !equal(header.previous, await this.head())) return { status: 409, body: await this.position() };
    const [at, sigAlg, signature] = headers['conclave-witness'].split(':');
    const witness = { st: this.row.st, reel: Number(reel), segments: Number(n) + 1, head: await sha256(body), at: Number(at), isEnd: false };
    assert.ok(await isSignedBy(alice.keys, sigAlg, Uint8Array.from(Buffer.from(signature, 'base64')), witnessBytes(witness)), 'a witness that is not signed');
    this.files.push(Uint8Array.from(body));
    return { status: 201 };
  }
}

const answerOf = ({ status, body, retryAfter }) => ({
  status,
  headers: { get: (name) => (name === 'retry-after' && retryAfter !== undefined ? String(retryAfter) : null) },
  json: async () => structuredClone(body),
});

function uploaderOf(store, server, options = {}) {
  const register = async () => ({ ticket: server.ticket });
  return new SegmentUploader({ store, row: server.row, register, base: BASE, fetch: server.fetch, jitter: () => 0, ...options });
}

/** Bob's reading of the server's files, after Alice has granted him the recording. */
async function readBy(store, server) {
  const { row } = server;
  const { scalar } = await openGrant(grantIn(row.grant), { id: row.id, st: row.st, publicKey: Uint8Array.from(Buffer.from(row.statement.publicKey, 'base64')), own: holder(alice), keys: alice.keys });
  const grant = await makeGrant(alice, scalar, { id: row.id, st: row.st, to: { user: 'bob', device: 'laptop' }, target: bob.keys[0], at: NOW });
  const segments = await Promise.all(server.files.map(async (file) => [file.length, toBase64(await sha256(file)), parseHeader(file).start]));
  const manifest = manifestIn({
    statement: row.statement,
    people: [{ participant: 1, user: 'alice', device: 'phone', fingerprint: toBase64(alice.fingerprint), keys: alice.keys }],
    reels: [{ participant: 1, from: 0, segments }],
    reelKeys: [{ reel: 1, ...row.reelKey }],
    grants: [grant],
    witnesses: [await endWitness(alice, store, row.id, NOW)],
  });
  const reader = await RecordingReader.open(manifest, { trusted: async () => ({ keys: alice.keys, level: 'verified' }), own: holder(bob), now: NOW });
  const reel = reader.reels.get(1);
  const opened = [];
  for (let n = 0; n < server.files.length; n += 1) opened.push(await reel.open(n, server.files[n]));
  return { state: reel.state, frames: opened.flatMap(({ frames }) => frames), records: opened.flatMap(({ records }) => records), ends: opened.map(({ end }) => end?.why), opened };
}

test('frames of ten seconds become three sealed segments that a reader opens, with their times', async () => {
  const store = new MemoryStore();
  const writer = await begin(store);
  const server = new FakeServer(writer.row);
  for (let ms = 0; ms < 10_000; ms += 500) {
    writer.frame(soundAt(ms));
    writer.frame(pictureAt(ms + 7, ms % 2_000 === 0));
  }
  await writer.end((NOW + 10_000) * 1_000);
  const uploader = uploaderOf(store, server);
  await uploader.start();
  assert.deepEqual(uploader.progress, { sealed: 3, stored: 3, confirmed: 3 });
  assert.equal(uploader.state, 'stored');
  const { state, frames, ends } = await readBy(store, server);
  assert.equal(state, 'complete');
  assert.deepEqual(ends, ['more', 'more', 'complete']);
  const sound = frames.filter(({ stream }) => stream.source === 'microphone');
  assert.deepEqual(sound.map(({ time }) => time / 1_000 - NOW), Array.from({ length: 20 }, (_, n) => n * 500));
  const pictures = frames.filter(({ stream }) => stream.codec === 'vp8');
  assert.deepEqual(pictures.map(({ isKey, time }) => [isKey, time / 1_000 - NOW]), Array.from({ length: 20 }, (_, n) => [n % 4 === 0, n * 500 + 7]));
});

test('a statement is bound to the recording, and the recording key stays on the device only as its own grant', async () => {
  const store = new MemoryStore();
  const { row } = await begin(store, { kind: 'own', call: undefined, readers: ['alice'] });
  assert.match(row.id, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  assert.deepEqual([row.grant.to, row.owner], [{ user: 'alice', device: 'phone' }, 'alice/phone']);
  const { key } = await store.get('chains', row.id);
  assert.equal(key.extractable, false);
  assert.deepEqual(Object.keys(row).sort(), ['grant', 'id', 'kind', 'owner', 'reelKey', 'st', 'startedAt', 'statement', 'streams']);
});

test('a pause is left out of the timestamps and kept in the times', async () => {
  const store = new MemoryStore();
  const writer = await begin(store);
  const server = new FakeServer(writer.row);
  writer.frame(soundAt(0));
  writer.mark('paused', (NOW + 100) * 1_000);
  writer.mark('continued', (NOW + 2_100) * 1_000);
  writer.frame({ ...soundAt(100), time: (NOW + 2_100) * 1_000 });
  await writer.end((NOW + 2_200) * 1_000);
  await uploaderOf(store, server).start();
  const { frames, records } = await readBy(store, server);
  assert.deepEqual(frames.map(({ time, timestamp }) => [time / 1_000 - NOW, timestamp]), [[0, 0], [2_100, 4_800]]);
  assert.deepEqual(records.filter(({ type }) => type === 'mark').map(({ what, at }) => [what, at]), [['paused', 100], ['continued', 2_100]]);
});

test('a segment ends with its size, too', async () => {
  const writer = await begin(new MemoryStore());
  const sealed = [];
  writer.addEventListener('sealed', ({ detail }) => sealed.push(detail.bytes));
  for (let n = 0; n < 5; n += 1) writer.frame(pictureAt(n, n === 0, new Uint8Array(1_500_000)));
  await writer.end((NOW + 10) * 1_000);
  assert.equal(sealed.length, 3);
  assert.ok(sealed.every((bytes) => bytes < 4 * 1_048_576 + 1_000), sealed.join());
});

test('a store that is slow makes a gap and a key frame is waited for: the memory is bounded', async () => {
  const store = new MemoryStore();
  const writer = await begin(store);
  const server = new FakeServer(writer.row);
  const { put } = store;
  let free;
  store.put = (...rows) => new Promise((resolve) => (free = () => resolve(put.apply(store, rows))));
  const large = new Uint8Array(2_000_000);
  for (let n = 0; n < 20; n += 1) writer.frame(pictureAt(n * 100, n === 0, large));
  await until(() => free);
  store.put = put;
  free();
  await sealedIn(store, 3);
  writer.frame(pictureAt(2_000, false));
  writer.frame(soundAt(2_010));
  writer.frame(pictureAt(2_100, true));
  writer.frame(pictureAt(2_200, false));
  await writer.end((NOW + 2_300) * 1_000);
  await uploaderOf(store, server).start();
  const { frames, records } = await readBy(store, server);
  const large1 = frames.filter(({ data }) => data.length > 100);
  assert.ok(large1.length >= 7 && large1.length * 2_000_000 <= 17 * 1_048_576, `${large1.length} frames were kept`);
  const [gap] = records.filter(({ type }) => type === 'gap');
  assert.equal(gap.why, 'disk');
  assert.deepEqual(frames.slice(large1.length).map(({ time }) => time / 1_000 - NOW), [2_010, 2_100, 2_200]);
});

test('without room the recording ends, what was sealed stays, and no number is sealed again', async (t) => {
  t.after(() => delete globalThis.indexedDB);
  let error;
  fakeIndexedDB({ fault: () => error });
  const store = await openRecordings();
  const writer = await begin(store);
  const troubles = [];
  writer.addEventListener('trouble', ({ detail }) => troubles.push(detail.reason));
  record(writer, 0, 4_500);
  await sealedIn(store, 1);
  error = Object.assign(new Error('full'), { name: 'QuotaExceededError' });
  record(writer, 4_500, 13_000);
  await writer.end((NOW + 13_000) * 1_000);
  error = undefined;
  assert.deepEqual(troubles, ['no-room']);
  assert.equal(writer.isOver, true);
  record(writer, 13_000, 20_000);
  assert.equal((await store.all('segments')).length, 1);
  assert.equal((await store.get('chains', writer.row.id)).n, 1);
});

test('the store is a database: file and next key are one strict transaction, and a recording is forgotten as a whole', async (t) => {
  t.after(() => delete globalThis.indexedDB);
  const { transactions, disk } = fakeIndexedDB();
  const store = await openRecordings();
  assert.equal(store.isLasting, true);
  const writer = await begin(store);
  const other = await begin(store);
  record(writer, 0, 9_000);
  await writer.end((NOW + 9_000) * 1_000);
  const seals = transactions.filter(({ names, durability }) => names.includes('segments') && names.includes('chains') && durability === 'strict');
  assert.equal(seals.length, 3);
  assert.equal((await store.get('segments', [writer.row.id, 2])).hash.length, 32);
  await store.forget(writer.row.id);
  assert.deepEqual([...disk.get('conclave-recordings').rows.values()].map((rows) => rows.size), [1, 1, 1, 0, 0, 0]);
  assert.deepEqual((await store.all('recordings')).map(({ id }) => id), [other.row.id]);
});

test('a browser without a database records for this visit', async () => {
  const store = await openRecordings();
  assert.equal(store.isLasting, false);
  const writer = await begin(store);
  record(writer, 0, 1_000);
  await writer.end((NOW + 1_000) * 1_000);
  await store.forget(writer.row.id);
  assert.deepEqual([(await store.all('segments')).length, (await store.all('recordings')).length, await store.get('chains', writer.row.id)], [0, 0, undefined]);
});

test('a segment that is sealed while an upload begins is not forgotten', async () => {
  const store = new MemoryStore();
  const writer = await begin(store);
  record(writer, 0, 4_500);
  await writer.end((NOW + 4_500) * 1_000);
  const server = new FakeServer(writer.row);
  const uploader = uploaderOf(store, server);
  const { get } = store;
  store.get = async (name, key) => {
    const row = await get.call(store, name, key);
    if (name !== 'chains') return row;
    await uploader.add(1);
    return { ...row, n: 1 };
  };
  await uploader.start();
  assert.deepEqual([uploader.state, server.files.length], ['stored', 2]);
});

test('segments leave while it records', async () => {
  const store = new MemoryStore();
  const writer = await begin(store);
  const server = new FakeServer(writer.row);
  const uploader = uploaderOf(store, server);
  writer.addEventListener('sealed', ({ detail }) => uploader.add(detail.n));
  await uploader.start();
  record(writer, 0, 4_500);
  await until(() => server.files.length === 1);
  record(writer, 4_500, 8_500);
  await until(() => server.files.length === 2);
  uploader.close();
  await writer.end((NOW + 9_000) * 1_000);
  assert.equal(server.files.length, 2);
});

test('a lost answer, a server that is down or busy, and a network that is off are tried again with growing pauses', async (t) => {
  const tick = fakeTimers(t);
  let now = 0;
  const pass = async (ms) => {
    now += ms;
    tick(ms);
  };
  const store = new MemoryStore();
  const writer = await begin(store);
  record(writer, 0, 12_500);
  await writer.end((NOW + 12_500) * 1_000);
  const server = new FakeServer(writer.row);
  const uploader = uploaderOf(store, server, { now: () => now });
  const faults = ['offline', 'offline', 'offline', undefined, 'lost', undefined, { status: 503, retryAfter: 7 }, { status: 500 }];
  server.fault = ({ at }) => faults[at];
  await uploader.start();
  const waits = [];
  while (uploader.state !== 'stored' && waits.length < 30) {
    assert.equal(uploader.state, 'waiting');
    const count = server.requests.length;
    let ms = 0;
    for (; server.requests.length === count; ms += 250) {
      await pass(250);
      await aside(10);
    }
    waits.push(ms);
    await server.rests();
  }
  assert.deepEqual(waits, [250, 500, 1_000, 250, 7_000, 500]);
  assert.deepEqual(server.requests.map(({ method, path }) => `${method} ${path.split('/').slice(3).join('/')}`.trim()), ['GET', 'GET', 'GET', 'GET', 'PUT 0', 'PUT 0', 'PUT 1', 'PUT 1', 'PUT 1', 'PUT 2', 'PUT 3', 'GET']);
  assert.equal((await readBy(store, server)).state, 'complete');
});

test('an attempt that hangs is given up when the network changes, and the next is made at once', async () => {
  let now = 0;
  const store = new MemoryStore();
  const writer = await begin(store);
  record(writer, 0, 1_000);
  await writer.end((NOW + 1_000) * 1_000);
  const server = new FakeServer(writer.row);
  const uploader = uploaderOf(store, server, { now: () => now });
  server.fault = ({ at }) => (at === 1 ? 'hangs' : undefined);
  const done = uploader.start();
  await until(() => server.requests.length === 2);
  now += 2_000;
  uploader.hurry();
  await aside(20);
  assert.deepEqual([server.requests.length, server.inFlight], [2, 1], 'it has not hung for long');
  now += 2_000;
  uploader.hurry();
  await done;
  await until(() => uploader.state === 'waiting');
  await uploader.hurry();
  assert.equal(uploader.state, 'stored');
  assert.equal(server.files.length, 1);
});

test('a killed tab goes on: everything that was sealed is uploaded, what was missed is a gap, and the reel is one chain', async () => {
  const store = new MemoryStore();
  const first = await begin(store);
  record(first, 0, 9_000);
  await sealedIn(store, 2);
  // The tab is gone, with what was not sealed.
  const server = new FakeServer(first.row);
  await uploaderOf(store, server).start();
  assert.equal(server.files.length, 2);
  const second = await RecordingWriter.resume(alice, store, first.row.id, (NOW + 60_000) * 1_000);
  record(second, 60_000, 62_000);
  await second.end((NOW + 62_000) * 1_000);
  await uploaderOf(store, server).start();
  const { state, records, frames } = await readBy(store, server);
  assert.equal(state, 'complete');
  assert.deepEqual(records.filter(({ type }) => type === 'gap').map(({ why, from, to }) => [why, from, to]), [['away', 0, 52_000]]);
  assert.deepEqual(frames.map(({ time }) => time / 1_000 - NOW).filter((ms) => ms >= 8_000), [60_000, 60_500, 61_000, 61_500]);
});

test('a server’s word is judged: it lost segments, it has others, it has more than there are, it lies about its head', async () => {
  const store = new MemoryStore();
  const writer = await begin(store);
  record(writer, 0, 12_500);
  await writer.end((NOW + 12_500) * 1_000);
  const server = new FakeServer(writer.row);
  await uploaderOf(store, server).start();
  assert.equal(server.files.length, 4);
  const kept = [...server.files];
  server.files.length = 1; // it was restored from a backup
  await uploaderOf(store, server).start();
  assert.deepEqual(server.files, kept, 'the kept bytes were sent again');
  server.position = async () => ({ next: 2, head: toBase64(new Uint8Array(32).fill(1)) });
  const lied = uploaderOf(store, server);
  await lied.start();
  assert.equal(lied.state, 'lost');
  server.position = async () => ({ next: 5, head: toBase64(await sha256(concat(...kept))) });
  const more = uploaderOf(store, server);
  await more.start();
  assert.equal(more.state, 'lost');
});

test('a server that answers 201 and stores nothing gets everything again, and a number is never sealed twice', async () => {
  const store = new MemoryStore();
  const writer = await begin(store);
  record(writer, 0, 8_500);
  await writer.end((NOW + 8_500) * 1_000);
  const server = new FakeServer(writer.row);
  server.fault = ({ method }) => (method === 'PUT' ? { status: 201 } : undefined);
  const bodies = new Map();
  const { fetch } = server;
  server.fetch = async (url, options) => {
    if (options.method === 'PUT') {
      const known = bodies.get(url);
      if (known) assert.deepEqual(options.body, known);
      bodies.set(url, Uint8Array.from(options.body));
      if (known) server.fault = () => undefined;
    }
    return fetch(url, options);
  };
  const again = uploaderOf(store, server);
  await again.start();
  assert.equal(again.state, 'stored');
  assert.equal(server.files.length, 3);
});

test('confirmed segments are kept up to 64 MiB, the newest of them', async () => {
  const store = new MemoryStore();
  const hash = (n) => new Uint8Array(32).fill(n + 1);
  const row = { id: 'r' };
  for (let n = 0; n < 10; n += 1) await store.put(['segments', ['r', n], { file: new Uint8Array(8 * 1_048_576), hash: hash(n), witness: { at: 1, sigAlg: 'ES256', signature: '' } }]);
  await store.put(['chains', 'r', { n: 10 }], ['uploads', 'r', { stored: 0, confirmed: 0, ticket: 'upload~1' }]);
  let next = 0;
  const fetch = async (url, { method }) => {
    if (method === 'PUT') return answerOf({ status: ((next = Number(url.split('/').at(-1)) + 1), 201) });
    return answerOf({ status: 200, body: { reels: next ? { 1: { next, head: toBase64(hash(next - 1)) } } : {} } });
  };
  const uploader = new SegmentUploader({ store, row, register: undefined, base: BASE, fetch, jitter: () => 0 });
  await uploader.start();
  assert.equal(uploader.state, 'stored');
  const kept = await Promise.all(Array.from({ length: 10 }, async (_, n) => Boolean((await store.get('segments', ['r', n])).file)));
  assert.deepEqual(kept, [false, false, ...Array(8).fill(true)]);
  assert.deepEqual(await store.get('uploads', 'r'), { stored: 10, confirmed: 10, kept: 2, ticket: 'upload~1', bytes: 10 * 8 * 1_048_576 });
  next = 1;
  const again = new SegmentUploader({ store, row, register: undefined, base: BASE, fetch, jitter: () => 0 });
  await again.start();
  assert.equal(again.state, 'lost', 'the server wants what is not here any more');
});

test('a segment that the browser has deleted cannot be sent', async () => {
  const store = new MemoryStore();
  const writer = await begin(store);
  record(writer, 0, 1_000);
  await writer.end((NOW + 1_000) * 1_000);
  await store.put(['segments', [writer.row.id, 0], undefined]);
  const uploader = uploaderOf(store, new FakeServer(writer.row));
  await uploader.start();
  assert.equal(uploader.state, 'lost');
});

test('a ticket that does not count is asked for again, three times', async () => {
  const store = new MemoryStore();
  const writer = await begin(store);
  record(writer, 0, 1_000);
  await writer.end((NOW + 1_000) * 1_000);
  const server = new FakeServer(writer.row);
  let asked = 0;
  const uploader = uploaderOf(store, server, { register: async () => ({ ticket: ++asked === 2 ? server.ticket : 'upload~old' }) });
  await uploader.start();
  await uploader.hurry();
  assert.deepEqual([asked, uploader.state], [2, 'stored']);
  server.ticket = 'upload~2';
  const refused = uploaderOf(store, server, { register: async () => ({ ticket: 'upload~old' }) });
  await refused.start();
  for (let n = 0; n < 5; n += 1) await refused.hurry();
  assert.equal(refused.state, 'refused');
});

test('a recording that was begun offline is registered when there is a network, and an end of it is final', async () => {
  const store = new MemoryStore();
  const writer = await begin(store);
  record(writer, 0, 1_000);
  await writer.end((NOW + 1_000) * 1_000);
  const server = new FakeServer(writer.row);
  const failing = (code) => async () => {
    throw Object.assign(new Error(code), { code });
  };
  const offline = uploaderOf(store, server, { register: failing('connection-lost') });
  await offline.start();
  assert.deepEqual([offline.state, server.requests.length], ['waiting', 0]);
  offline.close();
  const ended = uploaderOf(store, server, { register: failing('recording.ended') });
  await ended.start();
  assert.equal(ended.state, 'ended');
  const keyless = uploaderOf(store, server, { register: failing('keys.not-allowed') });
  await keyless.start();
  assert.deepEqual([keyless.state, keyless.error.code], ['refused', 'keys.not-allowed'], 'a device without keys is told');
  const full = uploaderOf(store, server, { register: failing('recording.full') });
  await full.start();
  assert.equal(full.state, 'full');
  full.close();
  const malformed = uploaderOf(store, server, { register: async () => ({ ticket: 7 }) });
  await malformed.start();
  assert.equal(malformed.state, 'waiting');
  malformed.close();
  const online = uploaderOf(store, server);
  await online.start();
  assert.equal(online.state, 'stored');
});

test('30 random courses of network, server and killed tabs end with the same bytes at the server, and with no number sealed twice', async (t) => {
  const tick = fakeTimers(t);
  let state = Number(process.env.CONCLAVE_SEED ?? 5);
  const random = (most) => ((state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0) >>> 8) % most;
  for (let round = 0; round < 30; round += 1) {
    const seed = state;
    let now = 0;
    const store = new MemoryStore();
    const sealed = new Map();
    const put = store.put.bind(store);
    store.put = async (...rows) => {
      for (const [name, key, { file }] of rows) {
        if (name !== 'segments' || !file) continue;
        assert.ok(!sealed.has(key[1]) || equal(sealed.get(key[1]), file), `seed ${seed}: ${key[1]} was sealed twice`);
        sealed.set(key[1], file);
      }
      return put(...rows);
    };
    /** The store as a tab sees it; a killed tab sees and does nothing. */
    const tab = () => {
      const handle = { isDead: false };
      const alive = (action) => (...options) => (handle.isDead ? new Promise(() => {}) : action(...options));
      return Object.assign(handle, { get: alive((...key) => store.get(...key)), put: alive((...rows) => store.put(...rows)) });
    };
    let handle = tab();
    let writer = await begin(handle);
    const server = new FakeServer(writer.row);
    const faults = ['offline', 'lost', { status: 503 }, { status: 429, retryAfter: 1 }, { status: 507 }, { status: 500 }];
    server.fault = ({ at }) => (at < 40 && random(3) === 0 ? faults[random(faults.length)] : undefined);
    const open = () => {
      const next = uploaderOf(handle, server, { now: () => now });
      writer.addEventListener('sealed', ({ detail }) => next.add(detail.n));
      next.start();
      return next;
    };
    let uploader = open();
    let ms = 0;
    for (let step = 0; step < 8; step += 1) {
      record(writer, ms, (ms += 500 * random(12)));
      await aside(random(40));
      if (random(4) === 0) {
        uploader.close();
        handle.isDead = true;
        handle = tab();
        writer = await RecordingWriter.resume(alice, handle, writer.row.id, (NOW + (ms += 10_000)) * 1_000);
        uploader = open();
      }
      if (random(3) === 0) {
        await server.inTurn(() => void server.files.pop()); // restored from a backup
        if (random(2)) uploader.hurry();
      }
      now += 1_000;
      tick(1_000);
    }
    await writer.end((NOW + ms) * 1_000);
    for (let step = 0; uploader.state !== 'stored' && step < 400; step += 1) {
      now += 10_000;
      tick(10_000);
      await server.rests();
    }
    assert.equal(uploader.state, 'stored', `seed ${seed}`);
    assert.deepEqual(server.files, Array.from({ length: sealed.size }, (_, n) => sealed.get(n)), `seed ${seed}`);
    uploader.close();
    if (round % 10 === 0) assert.equal((await readBy(store, server)).state, 'complete', `seed ${seed}`);
  }
});

const fresh = (options) => new Upload({ sealed: 3, stored: 0, confirmed: 0, hasTicket: true, jitter: () => 1, ...options });
const asked = (upload, next = 0) => {
  assert.equal(upload.next(0).act, 'ask');
  upload.ask({ status: 200, position: { next, isOurs: true } }, 0);
  return upload;
};

test('each answer of the server has its meaning', () => {
  const meanings = [
    [{ status: 201 }, 'uploading'], [{ status: 200 }, 'uploading'], [{ status: 0 }, 'waiting'], [{ status: 408 }, 'waiting'], [{ status: 429, retryAfter: 5_000 }, 'waiting'],
    [{ status: 503 }, 'waiting'], [{ status: 507 }, 'full'], [{ status: 410 }, 'ended'], [{ status: 413 }, 'refused'], [{ status: 400 }, 'refused'], [{ status: 409 }, 'waiting'],
    [{ status: 409, position: { next: 2, isOurs: true } }, 'uploading'], [{ status: 409, position: { next: 2, isOurs: false } }, 'lost'], [{ status: 409, position: { next: 4, isOurs: true } }, 'lost'],
  ];
  for (const [answer, state] of meanings) {
    const upload = asked(fresh());
    assert.deepEqual(upload.next(0), { act: 'put', n: 0 });
    upload.put(answer, 0);
    assert.equal(upload.state, state, JSON.stringify(answer));
  }
});

test('pauses grow to half a minute, a server that says more is obeyed up to five, and a full server is not hurried', () => {
  const upload = asked(fresh());
  const [waits, acts] = [[], []];
  let now = 0;
  for (let n = 0; n < 9; n += 1) {
    const { act } = upload.next(now);
    acts.push(act);
    if (act === 'put') upload.put({ status: 0 }, now);
    else upload.ask({ status: 0 }, now);
    const { ms } = upload.next(now);
    waits.push(ms);
    now += ms;
  }
  assert.deepEqual(waits, [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000]);
  assert.deepEqual(acts, ['put', 'put', 'put', 'ask', 'ask', 'ask', 'ask', 'ask', 'ask'], 'after three failures the server is asked how far it is');
  const patient = asked(fresh());
  patient.put({ status: 429, retryAfter: 3_600_000 }, 0);
  assert.deepEqual(patient.next(0), { act: 'wait', ms: 300_000 });
  patient.hurry();
  assert.equal(patient.next(0).act, 'put');
  const full = asked(fresh());
  full.put({ status: 507 }, 0);
  full.hurry();
  assert.deepEqual(full.next(0), { act: 'wait', ms: 30_000 });
});

test('the server is asked every eight segments and at the end, and segments that were dropped here cannot be sent again', () => {
  const upload = asked(fresh({ sealed: 10 }));
  const acts = [];
  for (let n = 0; n < 14; n += 1) {
    const { act, n: number } = upload.next(0);
    acts.push(act === 'put' ? number : act);
    if (act === 'put') upload.put({ status: 201 }, 0);
    if (act === 'ask') upload.ask({ status: 200, position: { next: upload.stored, isOurs: true } }, 0);
  }
  assert.deepEqual(acts, [0, 1, 2, 3, 4, 5, 6, 7, 'ask', 8, 9, 'ask', 'rest', 'rest']);
  assert.equal(upload.state, 'stored');
  upload.add(10);
  assert.deepEqual([upload.state, upload.next(0).act], ['uploading', 'put']);
  upload.kept = 5;
  upload.put({ status: 409, position: { next: 4, isOurs: true } }, 0);
  assert.equal(upload.state, 'lost');
});

test('a server that refuses the segment that it asks for is given up after three times', () => {
  const upload = asked(fresh());
  for (let n = 0; n < 3; n += 1) {
    upload.hurry();
    if (upload.next(0).act === 'ask') upload.ask({ status: 200, position: { next: 0, isOurs: true } }, 0);
    upload.put({ status: 409, position: { next: 0, isOurs: true } }, 0);
  }
  assert.equal(upload.state, 'refused');
});
