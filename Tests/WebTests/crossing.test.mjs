import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeServer, browser, callID, opened } from './fake-browser.mjs';
import { load, until } from './web.mjs';

browser();
const { Calls } = await load('call/calls.js');
const { Conclave } = await load('conclave.js');
const { encodeFrame } = await load('connection/stomp.js');
const { Identity } = await load('trust/identity.js');
const { MemoryStore } = await load('devices/store.js');
const { toBase64 } = await load('wire/bytes.js');
const { makeWord } = await load('trust/words.js');

console.warn = () => {};

const CROSSED = callID('crossed');
const crossing = (call = CROSSED) => ({ ending: 'calls/start', code: 'call.crossed', call });

/** Alice's laptop, which calls Bob, or `callees`. */
async function laptop(t) {
  const server = new FakeServer('alice', 'laptop');
  const calls = new Calls(await server.connection());
  t.after(() => [...calls.held, calls.current].forEach((call) => call?.giveUp()));
  const start = (callees = ['bob'], camera = false) => calls.add('start', { body: { callees, media: camera ? 'video' : 'audio' }, camera, isNew: true });
  return { server, calls, start };
}

test('a call that crosses another becomes the other one, keeps what the person pressed, and opens the microphone once', async (t) => {
  const { server, calls, start } = await laptop(t);
  server.running(CROSSED);
  server.failures.push(crossing());
  opened.length = 0;
  const call = await start(['bob'], true);
  assert.deepEqual([call.id, calls.current, call.state], [CROSSED, call, 'active']);
  assert.deepEqual([server.count('/accept'), server.count('/state')], [1, 1]);
  await until(() => call.local('microphone').isOn && call.local('camera').isOn);
  assert.equal(opened.length, 2);
});

for (const [place, options, kind] of [
  ['joined on another device', { elsewhere: 'phone' }, 'transfer'],
  ['disconnected', { state: 'disconnected' }, 'rejoin'],
  ['no longer in it', { state: 'left' }, 'rejoin'],
]) {
  test(`a call that crosses one in which this user is ${place} is entered by ${kind}`, async (t) => {
    const { server, start } = await laptop(t);
    server.running(CROSSED, options);
    server.failures.push(crossing());
    assert.equal((await start()).id, CROSSED);
    assert.equal(server.count(`/${kind}`), 1);
  });
}

test('a server cannot make this device answer people whom it does not call', async (t) => {
  const { server, calls, start } = await laptop(t);
  const state = server.running(CROSSED);
  for (const [members, callees] of [
    [[...state.members, { user: 'carol', state: 'ringing', participants: [] }], ['bob']],
    [[...state.members, { user: 'carol', state: 'left', participants: [] }], ['bob']],
    [state.members.filter(({ user }) => user === 'alice'), ['bob']],
    [state.members, ['carol']],
  ]) {
    server.calls.set(CROSSED, { ...state, members });
    server.failures.push(crossing());
    opened.length = 0;
    await assert.rejects(start(callees), { code: 'call.crossed' });
    assert.ok(!server.asked.some(({ path }) => /\/(accept|join|rejoin|transfer)$/.test(path)));
    assert.deepEqual([calls.current, calls.held], [undefined, []]);
    await until(() => opened.length > 0 && opened.every(({ isStopped }) => isStopped));
  }
});

test('a crossed call of fewer people than were called is entered', async (t) => {
  const { server, start } = await laptop(t);
  server.running(CROSSED);
  server.failures.push(crossing());
  assert.equal((await start(['bob', 'nobody'])).id, CROSSED);
});

for (const code of ['call.ended', 'call.not-found', 'call.not-ringing', 'call.not-joined']) {
  test(`a call that crosses one that has ended meanwhile (${code}) starts again`, async (t) => {
    const { server, calls, start } = await laptop(t);
    server.running(CROSSED);
    server.failures.push(crossing(), { ending: '/accept', code });
    const call = await start();
    assert.notEqual(call.id, CROSSED);
    assert.deepEqual([server.count('calls/start'), calls.current], [2, call]);
  });
}

test('a server that reports crossings forever is asked three times', async (t) => {
  const { server, calls, start } = await laptop(t);
  for (let i = 0; i < 4; i += 1) server.failures.push(crossing());
  await assert.rejects(start(), { code: 'call.crossed' });
  assert.deepEqual([server.count('calls/start'), calls.current], [3, undefined]);
});

test('calling the people of a held call resumes that call', async (t) => {
  const { server, calls, start } = await laptop(t);
  server.running(CROSSED);
  const first = await calls.add('accept', { id: CROSSED, camera: false });
  await first.hold(true);
  server.failures.push(crossing());
  assert.equal(await start(), first);
  assert.deepEqual([calls.current, calls.held, first.isHeld], [first, [], false]);
});

// Rings

class Socket {
  static OPEN = 1;
  static last;

  constructor() {
    Socket.last = this;
  }

  close() {}
}
globalThis.WebSocket = Socket;

/** Alice's connection; a `FakeServer` answers requests, and `say` sends events. */
async function connected(t) {
  const server = new FakeServer('alice', 'laptop');
  const { identity, directory } = await server.connection();
  class Wired extends Conclave {
    request(path, body) {
      return server.request(path, body);
    }
  }
  const conclave = new Wired({ url: 'ws://h/', device: 'laptop', credentials: async () => ({ token: 't', user: 'alice' }) });
  Object.assign(conclave, { identity, directory, rings: { add: async () => true } });
  const told = [];
  conclave.addEventListener('ring', ({ detail }) => told.push(['ring', detail.call]));
  conclave.addEventListener('ring-over', ({ detail }) => told.push([detail.reason, detail.ring.call]));
  conclave.connect();
  const rung = new Set();
  t.after(() => {
    for (const call of rung) say('call.cancelled', { call }); // ends their timers
    [...conclave.held, conclave.current].forEach((call) => call?.giveUp());
    conclave.close();
  });
  let seq = 0;
  const say = (event, body) => {
    seq += 1;
    Socket.last.onmessage({ data: encodeFrame('MESSAGE', { subscription: 'events', event, seq, ack: seq }, JSON.stringify({ at: 0, ...body })) });
  };
  const ring = (call, users = ['bob']) => {
    const members = [...users, 'alice'].map((user, index) => ({ user, state: index === 0 ? 'joined' : 'ringing', participants: [] }));
    rung.add(call);
    say('call.ring', { call, from: users[0], media: 'audio', members, expiresAt: 30_000 });
  };
  return { server, conclave, told, say, ring };
}

const seen = (told, event) => until(() => told.some((each) => each.join() === event.join()));

test('a ring of the people who are being called is answered by that call, and never shown', async (t) => {
  const { server, conclave, told, ring } = await connected(t);
  server.running(CROSSED);
  const { request } = server;
  server.request = async (path, body) => {
    if (path !== 'calls/start') return request.call(server, path, body);
    server.failures.push(crossing());
    for (const id of [CROSSED, callID('later')]) ring(id);
    await new Promise(setImmediate);
    return request.call(server, path, body);
  };
  const call = await conclave.call(['bob'], { camera: false });
  assert.equal(call.id, CROSSED);
  assert.deepEqual(told, []);
  await seen(told, ['ring', callID('later')]);
  assert.deepEqual(told, [['ring', callID('later')]]);
});

test('a ring of other people, or one that continues after a call has started, is shown', async (t) => {
  const { server, conclave, told, ring, say } = await connected(t);
  const { request } = server;
  server.request = async (path, body) => {
    if (path === 'calls/start') {
      ring(callID('group'), ['bob', 'carol']);
      for (const id of ['over', 'pair']) ring(callID(id));
      await new Promise(setImmediate);
    }
    return request.call(server, path, body);
  };
  await conclave.call(['bob'], { camera: false });
  say('call.cancelled', { call: callID('over') });
  assert.deepEqual(told, [['ring', callID('group')]]);
  await seen(told, ['ring', callID('pair')]);
  assert.deepEqual(told, ['group', 'pair'].map((id) => ['ring', callID(id)]));
});

test('a ring of somebody who is not being called is not answered, whoever the server says is in the call', async (t) => {
  const { server, conclave, told, ring } = await connected(t);
  server.running(CROSSED);
  ring(CROSSED, ['mallory']);
  await seen(told, ['ring', CROSSED]);
  server.failures.push(crossing());
  await assert.rejects(conclave.call(['bob'], { camera: false }), { code: 'call.crossed' });
  assert.equal(server.count('/accept'), 0);
});

test('answering a ring that its caller has replaced answers the new one', async (t) => {
  const { server, conclave, told, ring } = await connected(t);
  const [first, second] = [callID('first'), callID('second')];
  server.running(second);
  ring(first);
  await seen(told, ['ring', first]);
  server.failures.push({ ending: `${first}/accept`, code: 'call.ended' });
  ring(callID('group'), ['bob', 'carol']);
  ring(second);
  await seen(told, ['ring', second]);
  const call = await conclave.accept({ call: first, from: 'bob', members: [{ user: 'bob' }, { user: 'alice' }] }, { camera: false });
  assert.equal(call.id, second);
  assert.deepEqual(told.at(-1), ['answered', second]);
});

test('answering a ring that is over and was not replaced fails', async (t) => {
  const { server, conclave, told, ring } = await connected(t);
  ring(callID('first'));
  await seen(told, ['ring', callID('first')]);
  ring(callID('other'), ['carol']);
  server.failures.push({ ending: '/accept', code: 'call.ended' });
  await assert.rejects(conclave.accept({ call: callID('first'), from: 'bob', members: [{ user: 'bob' }, { user: 'alice' }] }), { code: 'call.ended' });
  assert.equal(server.count('/accept'), 1);
});

/** Whether `call` accepts the word of `user`, who started the call and let this user in, as its own invitation. */
async function isLetInBy(user, call) {
  const identity = await Identity.open(new MemoryStore(), user, 'd');
  const words = await Promise.all([user, 'alice'].map((each) => makeWord(identity, call.id, each)));
  const { device, keys, fingerprint } = identity;
  await call.admissions.take({ admissions: words, signers: [{ user, device, keys, fingerprint: toBase64(fingerprint) }] }, { isList: true });
  await call.admissions.judge();
  return !call.isByService;
}

test('a ring by somebody else during the entry into a crossed call makes nobody an inviter', async (t) => {
  const { server, conclave, ring } = await connected(t);
  server.running(CROSSED, { state: 'left' });
  const { request } = server;
  server.request = async (path, body) => {
    const reply = await request.call(server, path, body);
    // After the answer, while the join's keys are made.
    if (path.endsWith('/state')) for (const ms of [0, 1, 5]) setTimeout(() => ring(CROSSED, ['mallory']), ms);
    return reply;
  };
  server.failures.push(crossing());
  const call = await conclave.call(['bob'], { camera: false });
  assert.equal(await isLetInBy('mallory', call), false);
  assert.equal(await isLetInBy('bob', call), true);
});

test('after a rejoin, a crossed call counts the words of the same people as before', async (t) => {
  const { server, conclave } = await connected(t);
  server.running(CROSSED, { state: 'left' });
  server.failures.push(crossing());
  const call = await conclave.call(['bob'], { camera: false });
  await call.rejoin();
  assert.equal(await isLetInBy('mallory', call), false);
  assert.equal(await isLetInBy('bob', call), true);
});

test('the ring that the person answers determines who let this user in, whoever rings for the call later', async (t) => {
  const { server, conclave, told, ring } = await connected(t);
  server.running(CROSSED);
  ring(CROSSED);
  await seen(told, ['ring', CROSSED]);
  const shown = { call: CROSSED, from: 'bob', members: [{ user: 'bob' }, { user: 'alice' }] };
  ring(CROSSED, ['mallory']);
  await seen(told, ['cancelled', CROSSED]);
  assert.deepEqual(told, [['ring', CROSSED], ['cancelled', CROSSED], ['ring', CROSSED]], 'and is shown');
  const call = await conclave.accept(shown, { camera: false });
  assert.equal(await isLetInBy('mallory', call), false);
  await call.rejoin();
  assert.equal(await isLetInBy('mallory', call), false);
  assert.equal(await isLetInBy('bob', call), true);
});
