// A message from the first frame to the callee's player, over a server that stores (protocol section 13), and what goes wrong on the way.

import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { CALL, NOW, person } from './recorded.mjs';
import { Server, Tab, answer, asDevice, isStored, recordingsOf, refused } from './recording-server.mjs';
import { SOUND } from './reels.mjs';
import { aside, load, until } from './web.mjs';

const { makeStatement: vouchFor } = await load('trust/vouching.js');
const { Refusal } = await load('wire/checks.js');
const { toBase64 } = await load('wire/bytes.js');
const { streamsFor } = await load('recordings/device-recorder.js');

let server, alice, bob;
beforeEach(async () => {
  server = new Server();
  const [phone, laptop] = await Promise.all([person('alice', 'phone'), person('bob', 'laptop')]);
  server.devices = [phone, laptop].map(asDevice);
  [alice, bob] = [new Tab(server, phone), new Tab(server, laptop)];
});

/** The times of what Bob can play, in ms. */
async function played({ reels: [{ source }] }) {
  const times = [];
  for (let n = 0; n < source.length; n += 1) times.push(...(await source.segment(n)).frames.map(({ time }) => time / 1_000 - NOW));
  return times;
}

test('a message is recorded, uploaded meanwhile, sent, listed, played and deleted', async () => {
  const { id, upload } = await alice.record();
  await isStored(upload);
  assert.equal((await bob.recordings.list()).length, 0, 'nobody but Alice has it yet');
  assert.deepEqual(await alice.recordings.send(id), { alice: 1, bob: 1 });
  assert.deepEqual(await alice.recordings.unfinished(), []);
  assert.equal((await alice.store.all('segments')).length, 0, 'nothing is left here');
  const [entry] = await bob.recordings.list();
  assert.deepEqual(entry, { id, kind: 'message', role: 'reader', by: { user: 'alice', device: 'phone' }, call: CALL, startedAt: NOW, bytes: 3, state: 'finished', expiresAt: NOW + 1, isNew: true });
  assert.deepEqual(await bob.recordings.describe(id), { by: { user: 'alice', device: 'phone' }, name: 'Alice', readers: ['alice', 'bob'], users: ['alice'], length: 10_000 });
  assert.equal((await bob.recordings.list())[0].isNew, true, 'it was not opened yet');
  const opened = await bob.recordings.open(id);
  assert.deepEqual([opened.reader.statement.by.user, opened.reels[0].reel.state], ['alice', 'complete']);
  assert.deepEqual(await played(opened), Array.from({ length: 20 }, (_, n) => n * 500));
  assert.deepEqual(opened.reader.scalar, new Uint8Array(32), 'the private key is wiped');
  assert.equal((await bob.recordings.list())[0].isNew, false);
  assert.equal((await alice.recordings.open(id)).reels[0].reel.state, 'complete', 'Alice keeps a grant');
  assert.equal((await alice.recordings.list())[0].isNew, false, 'one’s own is never new');
  await bob.recordings.delete([id]);
  assert.equal((await bob.recordings.list()).length, 0);
  await assert.rejects(bob.recordings.open(id), { code: 'recording.not-found' });
});

test('it is not sent before everything is uploaded, and a lost answer to the grants does not lose it', async () => {
  server.fails = (path) => (path === 'recordings/start' ? refused('connection-lost') : undefined);
  const { id, upload } = await alice.record();
  await until(() => upload.state === 'waiting');
  await assert.rejects(alice.recordings.send(id), Refusal);
  server.fails = (path) => (path === 'recordings/share' ? refused('timeout') : undefined);
  await upload.hurry();
  await isStored(upload);
  await assert.rejects(alice.recordings.send(id), { code: 'timeout' });
  assert.equal((await alice.recordings.unfinished()).length, 1);
  server.fails = () => undefined;
  const tab = alice.reopened();
  await tab.recordings.send(id);
  assert.deepEqual(server.log.filter((line) => line === 'alice recordings/finish').length, 1);
  assert.equal((await bob.recordings.open(id)).reels[0].reel.state, 'complete');
});

test('a recording that a killed tab left is offered, uploaded as far as it was sealed, and sent', async () => {
  const { id } = await alice.record({ isKilled: true });
  await until(() => server.recordings.get(id)?.files.length === 2);
  const tab = alice.reopened();
  assert.deepEqual(await tab.recordings.unfinished(), [{ id, kind: 'message', call: CALL, readers: ['alice', 'bob'], startedAt: NOW, length: 8_000, isLive: false, hasPicture: false }]);
  const stranger = new Tab(server, bob.identity, { store: alice.store });
  assert.deepEqual(await stranger.recordings.unfinished(), [], 'it is not another device’s');
  await assert.rejects(stranger.recordings.upload(id), Refusal);
  await isStored(await tab.recordings.upload(id));
  await tab.recordings.send(id);
  const opened = await bob.recordings.open(id);
  assert.deepEqual([opened.reels[0].reel.state, (await played(opened)).length], ['complete', 16]);
});

test('a store that fails ends the recording with its reason, and nothing else breaks', async () => {
  const { get } = alice.store;
  alice.store.get = (name, key) => (name === 'uploads' ? Promise.reject(new Error('the disk')) : get.call(alice.store, name, key));
  const { writer, upload } = await alice.recordings.begin({ kind: 'own', hasPicture: false, streams: streamsFor(false) });
  const troubles = [];
  writer.addEventListener('trouble', ({ detail }) => troubles.push(detail.reason));
  alice.store.put = () => Promise.reject(new Error('the disk'));
  writer.frame({ index: 0, isKey: true, timestamp: 0, time: NOW * 1_000, data: SOUND });
  await writer.end((NOW + 100) * 1_000);
  assert.deepEqual([troubles, upload.state], [['store'], undefined]);
});

test('it goes on after a killed tab, with a gap', async () => {
  const { id } = await alice.record({ isKilled: true });
  await until(() => server.recordings.get(id)?.files.length === 2);
  const tab = alice.reopened();
  const { writer, upload } = await tab.recordings.resume(id);
  writer.frame({ index: 0, isKey: true, timestamp: 0, time: (NOW + 20_000) * 1_000, data: SOUND });
  await writer.end((NOW + 21_000) * 1_000);
  await isStored(upload);
  await tab.recordings.send(id);
  assert.deepEqual((await played(await bob.recordings.open(id))).slice(15), [7_500, 20_000]);
});

test('grants go to trusted devices of the readers, and of one’s own only to those that were paired', async () => {
  const [ghost, tablet] = await Promise.all([person('alice', 'ghost'), person('bob', 'tablet')]);
  server.devices.push(asDevice(tablet));
  assert.deepEqual(await alice.recordings.reachable(['bob', 'carol']), { alice: 1, bob: 2 });
  const late = await person('bob', 'late');
  server.devices.push(asDevice(ghost), asDevice(late));
  await alice.directory.acquaint(); // Alice's other device is known, and was not paired
  assert.deepEqual(await alice.recordings.reachable(['bob']), { alice: 1, bob: 2 }, 'a new device of somebody known is told to the person first');
  const { device, fingerprint, at, sigAlg, signature } = await vouchFor('vouch', alice.identity, { device: 'ghost', fingerprint: toBase64(ghost.fingerprint) }, Date.now());
  const vouch = { device, fingerprint, by: 'phone', byFingerprint: toBase64(alice.identity.fingerprint), at, sigAlg, signature };
  Object.assign(server.devices.find((each) => each.device === 'ghost'), { vouches: [vouch] });
  await alice.directory.devicesOf(['alice']);
  assert.deepEqual(await alice.recordings.reachable(['bob']), { alice: 2, bob: 2 });
});

test('a message to somebody without a device is known before it is recorded', async () => {
  server.devices = [asDevice(alice.identity)];
  assert.deepEqual(await alice.recordings.reachable(['bob']), { alice: 1 });
});

test('a save keeps it for oneself, and an own recording has no other readers', async () => {
  const { id, upload } = await alice.record();
  await isStored(upload);
  assert.deepEqual(await alice.recordings.send(id, { onlyOwn: true }), { alice: 1 });
  await assert.rejects(bob.recordings.open(id), { code: 'recording.not-found' });
  const own = await alice.record({ kind: 'own', readers: [] });
  assert.deepEqual((await alice.recordings.unfinished()).map(({ kind, readers }) => [kind, readers]), [['own', ['alice']]]);
  await isStored(own.upload);
  await alice.recordings.send(own.id);
  assert.equal((await alice.recordings.open(own.id)).reels[0].reel.state, 'complete');
});

test('retake: a draft is deleted at the server if it is there, and here', async () => {
  const { id, upload } = await alice.record();
  await isStored(upload);
  await alice.recordings.delete([id]);
  assert.deepEqual([server.recordings.size, (await alice.recordings.unfinished()).length, (await alice.store.all('segments')).length], [0, 0, 0]);
  server.fails = () => refused('connection-lost');
  const offline = await alice.record();
  await until(() => offline.upload.state === 'waiting');
  await alice.recordings.delete([offline.id]);
  assert.deepEqual(await alice.recordings.unfinished(), [], 'nothing has left the device');
  await aside(5);
});

test('the server’s words about a message do not count: another sender, another recording, a shorter one', async () => {
  const { id, upload } = await alice.record();
  await isStored(upload);
  await alice.recordings.send(id);
  const mallory = await person('mallory', 'd');
  server.devices.push(asDevice(mallory));
  const lies = [
    [(reply) => ({ ...reply, statement: { ...reply.statement, by: { user: 'mallory', device: 'd' } } }), { code: 'not-signed' }],
    [(reply) => ({ ...reply, people: [{ ...reply.people[0], ...asDevice(mallory), user: 'alice', device: 'phone' }] }), { code: 'not-signed' }],
    [(reply) => ({ ...reply, statement: { ...reply.statement, id: id.replace(/^./, (digit) => (digit === '0' ? '1' : '0')) } }), { code: 'not-signed' }],
    [(reply) => ({ ...reply, grants: [] }), { code: 'no-key' }],
    [(reply) => ({ ...reply, reelKeys: [] }), { code: 'no-key' }],
    [(reply) => ({ ...reply, reels: 7 }), Refusal],
  ];
  for (const [change, error] of lies) {
    server.changes = (path, reply) => (path === 'recordings/get' ? change(reply) : reply);
    await assert.rejects(bob.recordings.open(id), error);
  }
  server.changes = (_, reply) => reply;
  assert.equal((await bob.recordings.open(id)).reels[0].reel.state, 'complete');
  server.changes = (path, reply) => (path === 'recordings/get' ? { ...reply, witnesses: [], reels: [{ ...reply.reels[0], segments: reply.reels[0].segments.slice(0, 2) }] } : reply);
  const shorter = await bob.reopened().recordings.open(id);
  assert.deepEqual([shorter.reels[0].reel.state, shorter.reels[0].reel.knownLength], ['cut-off', 3]);
  assert.equal((await bob.reopened().recordings.open(id)).reels[0].reel.state, 'cut-off', 'the longest is remembered');
});

test('another message than the one that was asked for is refused, although all of it is honest', async () => {
  const ids = [];
  for (const made of [await alice.record(), await alice.record()]) {
    await isStored(made.upload);
    await alice.recordings.send(made.id);
    ids.push(made.id);
  }
  const other = server.recordings.get(ids[1]);
  server.changes = (path, reply) => (path === 'recordings/get' ? server.manifest(other, bob.identity, 0) : reply);
  await assert.rejects(bob.recordings.open(ids[0]), { code: 'not-signed' });
  assert.equal((await bob.recordings.open(ids[1])).reels[0].reel.state, 'complete');
});

test('a reader may share it with others, and somebody without a device is not counted', async () => {
  const { id, upload } = await alice.record();
  assert.equal(await isStored(upload).then(() => upload.longest), 180);
  await alice.recordings.send(id);
  const carol = new Tab(server, await person('carol', 'phone'));
  server.devices.push(asDevice(carol.identity));
  assert.deepEqual(await bob.recordings.share(id, ['carol', 'dora']), { carol: 1 });
  assert.equal((await carol.recordings.open(id)).reader.statement.by.user, 'alice', 'it is still Alice’s');
  const before = server.log.length;
  assert.deepEqual(await bob.recordings.share(id, ['dora']), {});
  assert.deepEqual(server.log.slice(before), ['bob recordings/get'], 'nothing is granted to nobody');
  await assert.rejects(new Tab(server, await person('mallory', 'd')).recordings.share(id, ['carol']), { code: 'recording.not-found' });
});

test('a draft plays without the server, also in the next tab, and segments that are not here any more are gaps', async () => {
  server.fails = () => refused('connection-lost');
  const { id } = await alice.record();
  const tab = alice.reopened();
  const draft = await tab.recordings.openDraft(id);
  assert.deepEqual(await played(draft), Array.from({ length: 20 }, (_, n) => n * 500));
  assert.equal(draft.reels[0].source.end, (NOW + 10_000) * 1_000);
  const { file: _, ...dropped } = await tab.store.get('segments', [id, 0]);
  await tab.store.put(['segments', [id, 0], dropped]);
  const rest = await tab.recordings.openDraft(id);
  assert.deepEqual([(await played(rest)).length, (await rest.reels[0].source.segment(0)).gaps[0].why, (await tab.recordings.unfinished())[0].length], [12, 'missing', 10_000]);
  await assert.rejects(new Tab(server, bob.identity, { store: tab.store }).recordings.openDraft(id), Refusal);
});

test('a token that has expired is replaced, and one that stays refused is an error', async () => {
  const { id, upload } = await alice.record();
  await isStored(upload);
  await alice.recordings.send(id);
  const asked = [];
  const token = async (wasRefused) => (asked.push(wasRefused), wasRefused ? 'token 2' : 'token 1');
  const fetch = (url, options) => (options.headers.authorization === 'Bearer token 1' ? answer(401) : server.fetch(url, options));
  const { reels: [{ source }] } = await recordingsOf(bob, { token, fetch }).open(id);
  assert.equal((await source.segment(0)).frames.length, 8);
  assert.deepEqual(asked, [false, true]);
  const refusing = await recordingsOf(bob, { token, fetch: async () => answer(401) }).open(id);
  await assert.rejects(refusing.reels[0].source.segment(0), /401/);
});

test('to forget everything removes what all of the user’s devices here have made, and nothing of another user', async () => {
  const { id } = await alice.record();
  const other = new Tab(server, await person('alice', 'web-2'), { store: alice.store });
  await other.record();
  const strangers = await new Tab(server, bob.identity, { store: alice.store }).record();
  await alice.store.put(['seen', id, []], ['seen', 'another', []]);
  await alice.recordings.forgetAll();
  assert.deepEqual((await alice.store.all('recordings')).map((row) => row.id), [strangers.id]);
  assert.deepEqual(await alice.store.keys('seen'), []);
});

test('a segment that the server has no more is a hole, and one that cannot be fetched now is asked for again', async () => {
  const { id, upload } = await alice.record();
  await isStored(upload);
  await alice.recordings.send(id);
  const busy = recordingsOf(bob, { fetch: async () => answer(503) });
  const later = await busy.open(id);
  await assert.rejects(later.reels[0].source.segment(0), /503/);
  assert.deepEqual(later.reels[0].reel.holes, []);
  const { reels: [{ source, reel }] } = await bob.recordings.open(id);
  server.recordings.get(id).files[1] = undefined;
  assert.equal((await source.segment(1)).gaps[0].why, 'missing');
  assert.deepEqual([reel.state, reel.holes], ['changed', [1]], 'a witness has it');
});

test('a list of many pages is read whole', async () => {
  const { id, upload } = await alice.record();
  await isStored(upload);
  await alice.recordings.send(id);
  const asked = [];
  const row = [200, toBase64(new Uint8Array(32)), NOW * 1_000];
  const request = async (path, body) => {
    const reply = await server.request(bob.identity)(path, body);
    if (path !== 'recordings/get') return reply;
    asked.push(body.from ?? 0);
    const count = [1_000, 1_000, 7][asked.length - 1];
    return { ...reply, reels: [{ participant: 1, from: body.from ?? 0, segments: Array(count).fill(row) }] };
  };
  const recordings = recordingsOf(bob, { request });
  assert.equal((await recordings.open(id)).reels[0].source.length, 2_007);
  assert.deepEqual(asked, [0, 1_000, 2_000]);
  const again = (path, body) => request(path, { ...body, from: 0 });
  asked.length = 0;
  await assert.rejects(recordingsOf(bob, { request: again }).open(id), Refusal);
});
