// A recording of one's own that its contacts are told of and follow while it is made, over a server that stores, and over servers that lie.

import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { NOW, person } from './recorded.mjs';
import { Server, Tab, answer, asDevice, isStored, recordingsOf, refused } from './recording-server.mjs';
import { SOUND } from './reels.mjs';
import { aside, fakeTimers, load, until } from './web.mjs';

const { Contacts } = await load('recordings/contacts.js');
const { streamsFor } = await load('recordings/device-recorder.js');
const { makeNote } = await load('recordings/notes.js');
const { makeWitness } = await load('recordings/witnesses.js');
const { fromBase64 } = await load('wire/bytes.js');

const PLACE = { kind: 'place', lat: 50.08804, lon: 14.42076, accuracy: 12, at: NOW };
let server, alice, bob;
beforeEach(async () => {
  server = new Server();
  const [phone, laptop] = await Promise.all([person('alice', 'phone'), person('bob', 'laptop')]);
  server.devices = [phone, laptop].map(asDevice);
  [alice, bob] = [new Tab(server, phone), new Tab(server, laptop)];
});

/** A recording by Alice, for Bob; `record(from, to)` takes sound, in ms since it began. */
async function begun(t, { tab = alice, readers = ['bob'], ...options } = {}) {
  const tick = fakeTimers(t);
  const made = await tab.recordings.beginLive({ readers, hasPicture: false, streams: streamsFor(false), alerts: true, ...options });
  const pass = (ms) => {
    server.elapsed += ms;
    tick(ms);
  };
  return { ...made, ...recordingOn(made.writer), tick: pass };
}

function recordingOn(writer) {
  return {
    record(from, to) {
      for (let ms = from; ms < to; ms += 500) writer.frame({ index: 0, isKey: true, timestamp: ms * 48, time: (NOW + ms) * 1_000, data: SOUND });
    },
    stop: (ms) => writer.end((NOW + ms) * 1_000),
  };
}

const filesOf = (id) => server.recordings.get(id)?.files.length ?? 0;
const stateOf = (telling, user = 'bob') => telling.contacts.all.find((each) => each.user === user).state;

async function timesOf({ reels: [{ source }] }) {
  const times = [];
  for (let n = 0; n < source.length; n += 1) times.push(...(await source.segment(n)).frames.map(({ time }) => time / 1_000 - NOW));
  return times;
}

test('a contact is alerted, follows it while it is made, and the person sees what came of it', async (t) => {
  const { id, writer, upload, telling, record, stop } = await begun(t);
  const alarms = [];
  bob.recordings.close();
  bob = bob.reopened();
  const heard = server.connection(bob.identity, bob.directory);
  heard.addEventListener('recording', ({ detail }) => alarms.push(detail));
  const reading = recordingsOf(bob);
  assert.equal(stateOf(telling), 'waiting');
  await telling.note(PLACE);
  record(0, 4_500);
  await until(() => filesOf(id) === 2);
  assert.deepEqual([server.alerted, stateOf(telling)], [[`bob ${id}`], 'told']);
  const { by, at, isAlert, state } = await reading.announced(id);
  assert.deepEqual([by, at, isAlert, state], [{ user: 'alice', device: 'phone' }, NOW, true, 'running']);

  const opened = await reading.open(id);
  assert.deepEqual([opened.live.isRunning, opened.reels[0].source.isLive, await timesOf(opened)], [true, true, [0, 500, 1_000, 1_500, 2_000, 2_500, 3_000, 3_500]]);
  assert.deepEqual([...opened.notes.values()].map(({ kind }) => kind), ['alert', 'place']);
  await reading.tellSeen(id);
  await until(() => stateOf(telling) === 'seen');

  record(4_500, 9_000);
  await telling.note({ ...PLACE, lat: 50.1 });
  await until(() => filesOf(id) === 4 && server.recordings.get(id).notes.length === 3);
  let changes = 0;
  opened.live.addEventListener('change', () => (changes += 1));
  server.changed(id);
  await until(() => opened.reels[0].reel.length === 4);
  await until(() => opened.live.notes.size === 3);
  assert.deepEqual([opened.live.notes.get(2).lat, changes > 0, opened.reels[0].source.length], [50.1, true, 4]);
  assert.equal((await timesOf(opened)).at(-1), 7_500);

  await stop(9_000);
  await isStored(upload);
  assert.equal(writer.isOver, true);
  await alice.recordings.finish(id);
  server.changed(id);
  await until(() => !opened.live.isRunning);
  assert.deepEqual([opened.live.state, opened.reels[0].source.isLive, opened.reels[0].reel.state, opened.reels[0].reel.duration], ['finished', false, 'complete', 9_000]);
  assert.equal((await timesOf(opened)).at(-1), 8_500);
  assert.deepEqual(await alice.recordings.unfinished(), []);
  assert.equal((await alice.store.all('told')).length + (await alice.store.all('segments')).length, 0, 'nothing is left here');
  assert.equal((await alice.recordings.open(id)).reels[0].reel.state, 'complete', 'Alice has a copy');
  reading.close();
});

test('without a network everything is made and kept, and leaves when there is one', async (t) => {
  server.fails = () => refused('connection-lost');
  const { id, upload, telling, record, stop, tick } = await begun(t);
  await telling.note(PLACE);
  record(0, 6_500);
  await until(() => upload.progress.sealed === 3 && upload.state === 'waiting');
  assert.deepEqual([filesOf(id), stateOf(telling)], [0, 'waiting']);
  server.fails = () => undefined;
  tick(60_000);
  await until(() => filesOf(id) === 3);
  assert.deepEqual([server.alerted.length, server.recordings.get(id).notes.length, stateOf(telling)], [1, 2, 'told']);
  await stop(6_500);
  await isStored(upload);
  await alice.recordings.finish(id);
});

test('a killed tab: the next one uploads the rest, tells who was not told, and records on', async (t) => {
  server.fails = () => refused('connection-lost');
  const first = await begun(t);
  first.record(0, 6_500);
  await until(() => first.upload.progress.sealed === 3);
  const tab = alice.reopened();
  server.fails = () => undefined;
  const [left] = await tab.recordings.unfinished();
  assert.deepEqual([left.id, left.isLive, left.length, left.readers], [first.id, true, 6_000, ['alice', 'bob']]);
  await tab.recordings.upload(first.id);
  await until(() => filesOf(first.id) === 3);
  assert.deepEqual(server.alerted, [`bob ${first.id}`], 'the alert of the killed tab leaves, too');

  const { writer, telling } = await tab.recordings.resume(first.id);
  const { record, stop } = recordingOn(writer);
  await telling.note(PLACE);
  record(20_000, 22_500);
  await stop(22_500);
  await until(() => filesOf(first.id) === 5);
  await isStored(await tab.recordings.upload(first.id));
  await tab.recordings.finish(first.id);
  const opened = await bob.recordings.open(first.id);
  assert.deepEqual([opened.reels[0].reel.state, (await timesOf(opened)).slice(11, 14)], ['complete', [5_500, 20_000, 20_500]]);
  assert.deepEqual([...opened.notes.keys()], [0, 1], 'no number twice');
  assert.equal(server.alerted.length, 1, 'once is enough');
});

test('not on this phone: segments are deleted when the server has them, and the key as soon as the contacts have it', async (t) => {
  const { id, upload, record, stop } = await begun(t, { keepsCopy: false });
  record(0, 8_500);
  await until(() => filesOf(id) === 4 && upload.progress.confirmed === 4);
  await aside();
  const kept = (await alice.store.all('segments')).filter(({ file }) => file);
  assert.equal(kept.length, 0);
  const [row] = await alice.store.all('recordings');
  assert.equal(row.grant, undefined);
  assert.ok(server.recordings.get(id).grants.every(({ to }) => to.user === 'bob'), 'no grant for this device');
  await assert.rejects(alice.recordings.open(id), { code: 'no-key' });
  await assert.rejects(alice.recordings.openDraft(id), /grant/);
  await stop(8_500);
  await isStored(upload);
  await alice.recordings.finish(id);
  assert.equal((await timesOf(await bob.recordings.open(id))).length, 17);
});

test('as long as no contact can play it the key stays: a recording that nobody could ever open is worth nothing', async (t) => {
  server.devices = [asDevice(alice.identity)];
  const { upload, telling, record, tick } = await begun(t, { keepsCopy: false });
  record(0, 2_500);
  await until(() => upload.state === 'stored');
  assert.equal(stateOf(telling), 'no-keys');
  assert.ok((await alice.store.all('recordings'))[0].grant);
  server.devices.push(asDevice(bob.identity));
  tick(30_000);
  await until(() => stateOf(telling) === 'told');
  await until(() => telling.contacts.isGranted());
  await aside();
  assert.equal((await alice.store.all('recordings'))[0].grant, undefined);
});

test('somebody who was not told is told later, and what is shown follows the server’s answers', async (t) => {
  server.strangers = ['carol'];
  const { id, upload, telling, record, tick } = await begun(t, { readers: ['bob', 'carol'] });
  record(0, 2_500);
  await isStored(upload);
  assert.deepEqual([stateOf(telling), stateOf(telling, 'carol')], ['told', 'unavailable']);
  server.strangers = [];
  const carol = await person('carol', 'tablet');
  server.devices.push(asDevice(carol));
  tick(30_000);
  await until(() => stateOf(telling, 'carol') === 'told');
  assert.deepEqual(server.alerted, [`bob ${id}`, `carol ${id}`]);
  assert.equal(server.recordings.get(id).grants.filter(({ to }) => to.user === 'bob').length, 1, 'nobody is granted it twice');
});

test('with too many alerts the recording begins without one, and people are alerted later', async (t) => {
  const request = server.request(alice.identity);
  let isHeld = true;
  const limited = async (path, body) => {
    if (path === 'recordings/start' && body.alert && isHeld) throw Object.assign(refused('rate.limited'), { details: { retryAfterMs: 20_000 } });
    return request(path, body);
  };
  const tab = { recordings: recordingsOf(alice, { request: limited }) };
  const { id, upload, telling, record, tick } = await begun(t, { tab });
  record(0, 2_500);
  await isStored(upload);
  assert.deepEqual([server.alerted, stateOf(telling)], [[], 'waiting']);
  isHeld = false;
  tick(30_000);
  await until(() => stateOf(telling) === 'told');
  assert.deepEqual(server.alerted, [`bob ${id}`]);
});

test('a clock that is wrong is noticed when it is registered, and a reader says so in place of accusing the sender', async (t) => {
  server.now = () => NOW - 2 * 3_600_000;
  const { id, upload, telling, record } = await begun(t);
  record(0, 2_500);
  await isStored(upload);
  await until(() => telling.clockAhead !== undefined);
  assert.equal(telling.clockAhead, 2 * 3_600_000);
  const { now } = Date;
  t.after(() => (Date.now = now));
  const slow = new Tab(server, bob.identity, bob);
  slow.recordings.close();
  const { Recordings } = await load('recordings/recordings.js');
  const reading = new Recordings({ connection: server.connection(bob.identity, bob.directory), store: bob.store, base: 'https://host/recordings', token: () => 'token', fetch: server.fetch, now: () => NOW - 3_600_000 });
  await assert.rejects(reading.announced(id), { code: 'too-early' });
});

// The server lies

test('the results of contacts count only as far as they fit what was sent', () => {
  const granted = new Map([['bob', ['laptop']]]);
  const make = () => new Contacts(['bob', 'carol'], { alerts: true });
  const states = (contacts) => contacts.all.map(({ state }) => state).join(' ');

  const early = make();
  early.reached('bob', 1);
  early.seen('bob', 1, 'laptop');
  early.listed([{ user: 'bob', alertedAt: 1, reachedAt: 1, seenAt: 1 }]);
  assert.equal(states(early), 'waiting waiting', 'before anything was sent');

  const told = make();
  told.asking({ isAlert: true });
  told.answered({ bob: 'shared', carol: 'shared', mallory: 'shared' }, { granted, isAlert: true }, 0);
  assert.equal(states(told), 'told no-keys', 'Carol was granted nothing');
  told.seen('carol', 1, 'phone');
  told.seen('bob', 1, 'tablet');
  told.reached('mallory', 1);
  told.seen('mallory', 1);
  told.listed([{ user: 'mallory', alertedAt: 1, seenAt: 1 }, { user: 'carol', seenAt: 1 }]);
  assert.equal(states(told), 'told no-keys', 'a device without a grant cannot have seen it, and strangers are no contacts');
  told.reached('carol', 5);
  told.seen('bob', 6, 'laptop');
  told.reached('bob', 7);
  told.listed([{ user: 'bob', alertedAt: 9, seenAt: 9 }]);
  assert.deepEqual(told.all, [{ user: 'bob', state: 'seen', at: 6 }, { user: 'carol', state: 'reached', at: 5 }], 'the first word stays');

  const refusing = make();
  refusing.asking({ isAlert: true });
  refusing.answered({ bob: 'unavailable', carol: 'no-keys' }, { granted, isAlert: true }, 0);
  refusing.reached('bob', 1);
  refusing.seen('bob', 1, 'laptop');
  assert.equal(states(refusing), 'unavailable no-keys', 'a server that contradicts itself');

  for (const results of [undefined, null, 7, 'shared', [], { __proto__: { bob: 'shared' } }, { bob: { toString: () => 'shared' } }]) {
    const odd = make();
    odd.asking({ isAlert: true });
    odd.answered(results, { granted, isAlert: true }, 0);
    assert.equal(states(odd), 'no-keys no-keys', String(results));
  }

  const unalerted = make();
  unalerted.asking({ isAlert: false });
  unalerted.answered({ bob: 'shared' }, { granted, isAlert: false }, 0);
  unalerted.reached('bob', 1);
  unalerted.listed([{ user: 'bob', alertedAt: 1, reachedAt: 1 }]);
  assert.equal(states(unalerted), 'waiting waiting', 'no alert was sent');
});

test('contacts are the same after a killed tab, and an answer that was lost with it is made up for by the manifest', () => {
  const contacts = new Contacts(['bob'], { alerts: true });
  contacts.asking({ isAlert: true });
  const again = new Contacts(['bob'], { alerts: true, saved: structuredClone(contacts.toSave()) });
  again.listed([{ user: 'bob', alertedAt: 3, reachedAt: 4 }]);
  assert.deepEqual(again.all, [{ user: 'bob', state: 'reached', at: 4 }]);
  assert.equal(again.wantsAlert, false);
  assert.notEqual(again.dueAt, undefined, 'it was not granted yet');
});

test('people who were not told are told again, less and less often', () => {
  const contacts = new Contacts(['bob'], { alerts: true });
  const waits = [];
  for (let now = 0, n = 0; n < 7; n += 1) {
    contacts.answered({ bob: 'unavailable' }, { granted: new Map(), isAlert: true }, now);
    waits.push(contacts.dueAt - now);
    now = contacts.dueAt;
  }
  assert.deepEqual(waits, [30_000, 60_000, 120_000, 240_000, 480_000, 600_000, 600_000]);
  contacts.answered({ bob: 'shared' }, { granted: new Map([['bob', ['laptop']]]), isAlert: true }, 0);
  assert.equal(contacts.dueAt, undefined);
});

/** A recording that Bob follows, with two segments. */
async function followed(t) {
  const made = await begun(t);
  made.record(0, 4_500);
  await until(() => filesOf(made.id) === 2);
  const opened = await bob.recordings.open(made.id);
  made.record(4_500, 9_000);
  await until(() => filesOf(made.id) === 4);
  return { ...made, opened };
}

test('while it is followed: a page that was there before, of another recording, or with another segment at a place that is known', async (t) => {
  const { id, opened } = await followed(t);
  const other = await begun(t);
  const honest = server.changes;
  const looks = async (changes) => {
    server.changes = async (path, reply) => (path === 'recordings/get' ? changes(await reply) : reply);
    await opened.live.look();
    server.changes = honest;
    return opened.reels[0].reel.length;
  };
  const first = await server.request(bob.identity)('recordings/get', { id });
  assert.equal(await looks(() => structuredClone(first)), 2, 'a page that is replayed');
  assert.equal(await looks((reply) => ({ ...reply, statement: other.writer.row.statement })), 2, 'the statement of another');
  assert.equal(await looks((reply) => ({ ...reply, reels: 7 })), 2, 'no page at all');
  assert.equal(await looks((reply) => ({ ...reply, state: 'finished', reels: [] })), 2);
  assert.equal(opened.reels[0].reel.state, 'not-finished', 'the server says that it is finished, its device does not');
});

test('while it is followed: a segment that the server drops or exchanges is a hole, and the rest plays', async (t) => {
  const { opened, id } = await followed(t);
  const { files } = server.recordings.get(id);
  await opened.live.look();
  assert.equal(opened.reels[0].reel.length, 4);
  files[2] = files[3];
  assert.deepEqual((await opened.reels[0].source.segment(2)).gaps.map(({ why }) => why), ['refused']);
  assert.equal((await opened.reels[0].source.segment(3)).frames.length, 4);
  assert.equal(opened.reels[0].reel.state, 'changed');
});

test('a server that shows less than before is caught, also in the next tab', async (t) => {
  const { opened, id } = await followed(t);
  await opened.live.look();
  const recording = server.recordings.get(id);
  recording.files.splice(2);
  recording.witnesses = [];
  const again = await bob.reopened().recordings.open(id);
  assert.equal(again.reels[0].reel.state, 'cut-off');
});

test('a note and a witness of a stranger count nothing: neither a place, nor an alert, nor an end', async (t) => {
  const { id, writer, record } = await begun(t, { alerts: false });
  record(0, 4_500);
  await until(() => filesOf(id) === 2);
  const mallory = await person('mallory', 'phone');
  const { st, statement } = writer.row;
  const recording = server.recordings.get(id);
  const forged = await makeNote(mallory, { kind: 'alert', at: NOW }, { st, number: 0, publicKey: fromBase64(statement.publicKey) });
  recording.notes = [forged, { ...forged, number: 1 }];
  const opened = await bob.recordings.open(id);
  const end = await makeWitness(mallory, { st, reel: 1, segments: 2, head: opened.reels[0].reel.seen.head, at: NOW, isEnd: true });
  recording.witnesses = [{ ...end, by: statement.by }];
  await opened.live.look();
  assert.deepEqual([opened.notes.size, opened.live.notes.size, opened.reels[0].reel.state], [0, 0, 'not-finished']);
  assert.equal((await bob.recordings.announced(id)).isAlert, false, 'the server says that it is an alert, and nobody has signed that');
});

test('a note of another recording, or under another number, is not taken for one of this', async (t) => {
  const one = await begun(t);
  const other = await begun(t, { alerts: false });
  await one.telling.note(PLACE);
  for (const { record, id } of [one, other]) {
    record(0, 2_500);
    await until(() => filesOf(id) === 1);
  }
  const [alert, place] = server.recordings.get(one.id).notes;
  server.recordings.get(other.id).notes = [alert, place];
  assert.deepEqual([(await bob.recordings.announced(other.id)).isAlert, (await bob.recordings.open(other.id)).notes.size], [false, 0]);
  server.recordings.get(one.id).notes = [{ ...place, number: 0 }, { ...alert, number: 1 }];
  assert.equal((await bob.recordings.open(one.id)).notes.size, 0);
});

test('a server that answers with an old ticket, or with none that it takes, ends the attempts with a reason', async (t) => {
  const request = server.request(alice.identity);
  let first;
  const stale = async (path, body) => {
    const reply = await request(path, body);
    if (path !== 'recordings/start') return reply;
    first ??= reply;
    return { ...reply, ticket: first.ticket };
  };
  const fetch = async (url, options) => (options.method === 'PUT' ? answer(403) : server.fetch(url, options));
  const tab = { recordings: recordingsOf(alice, { request: stale, fetch }) };
  const { upload, record, tick } = await begun(t, { tab });
  record(0, 2_500);
  await until(() => {
    tick(60_000);
    return upload.state === 'refused';
  });
});

test('an alert that was put aside, or opened, is known: the server may send it again as often as it likes', async (t) => {
  const { id, record } = await begun(t);
  record(0, 2_500);
  await until(() => filesOf(id) === 1);
  assert.equal(await bob.recordings.isKnown(id), false);
  await bob.recordings.putAside(id);
  assert.equal(await bob.reopened().recordings.isKnown(id), true);
  assert.equal((await bob.recordings.open(id)).reels[0].reel.state, 'not-finished', 'it can be opened later');
});

test('a recording that is deleted while it is followed ends there', async (t) => {
  const { opened, id } = await followed(t);
  await alice.recordings.delete([id]);
  await opened.live.look();
  assert.deepEqual([opened.live.state, opened.live.isRunning], ['gone', false]);
});

test('at most 2 GiB wait on a device', async (t) => {
  server.fails = () => refused('connection-lost');
  const { writer, upload, record } = await begun(t);
  const troubles = [];
  writer.addEventListener('trouble', ({ detail }) => troubles.push(detail.reason));
  record(0, 4_500);
  await until(() => upload.progress.sealed === 2);
  upload.add(1, 2 ** 31);
  record(4_500, 7_000);
  await until(() => troubles.length === 1);
  assert.deepEqual([troubles, upload.progress.sealed, writer.isOver], [['no-room'], 2, true]);
});
