import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeServer, PeerConnection, browser, callID, opened } from './fake-browser.mjs';
import { load, until } from './web.mjs';

browser();
const { toBase64 } = await load('wire/bytes.js');
const { Calls } = await load('call/calls.js');
const { Conclave } = await load('conclave.js');
const { Directory } = await load('trust/directory.js');
const { Identity } = await load('trust/identity.js');
const { MemoryStore } = await load('devices/store.js');

console.warn = () => {};

/** Alice's laptop; everything that runs ends with the test. */
async function laptop(t) {
  const server = new FakeServer('alice', 'laptop');
  const connection = await server.connection();
  const calls = new Calls(connection);
  t.after(() => [...calls.held, calls.current].forEach((call) => call?.giveUp()));
  const join = async (kind, id) => {
    server.running(id, { state: kind === 'rejoin' ? 'left' : 'ringing' });
    return calls.add(kind, { id, camera: false });
  };
  return { server, connection, calls, join };
}

const microphone = (call) => call.local('microphone');

test('answering during a call holds that call and closes its microphone', async (t) => {
  const { server, calls, join } = await laptop(t);
  const first = await join('accept', callID('first'));
  await until(() => microphone(first).isOn);
  const { track } = microphone(first);
  const second = await join('accept', callID('second'));
  assert.deepEqual([calls.current, calls.held], [second, [first]]);
  assert.deepEqual([first.isHeld, first.path, track.isStopped], [true, 'held', true]);
  assert.equal(server.member(callID('first')).participants[0].held, true);
  await until(() => microphone(second).isOn);
});

test('returning to a held call holds the other and opens the microphone again', async (t) => {
  const { server, calls, join } = await laptop(t);
  const first = await join('accept', callID('first'));
  await until(() => microphone(first).isOn);
  const second = await join('accept', callID('second'));
  await until(() => microphone(second).isOn);
  await calls.resume(first);
  assert.deepEqual([calls.current, calls.held, second.isHeld], [first, [second], true]);
  assert.deepEqual([microphone(first).isOn, microphone(second).isOn], [true, false]);
  assert.deepEqual([callID('first'), callID('second')].map((id) => server.member(id).participants[0].held), [false, true]);
});

test('a microphone that was off stays off after a hold', async (t) => {
  const { calls, join } = await laptop(t);
  const call = await join('accept', callID('first'));
  await until(() => microphone(call).isOn);
  await call.setMicrophone(false);
  await call.hold(true);
  await call.hold(false);
  assert.equal(microphone(call).isOn, false);
  assert.equal(calls.current, call);
});

test('a join that fails returns to the previous call', async (t) => {
  const { server, calls, join } = await laptop(t);
  const first = await join('accept', callID('first'));
  await until(() => microphone(first).isOn);
  server.failures.push({ ending: '/accept', code: 'call.answered-elsewhere' });
  await assert.rejects(join('accept', callID('second')), { code: 'call.answered-elsewhere' });
  assert.deepEqual([calls.current, calls.held, first.isHeld], [first, [], false]);
});

test('a call on another device of the user is shown as such, and can be moved here', async (t) => {
  const { server, calls } = await laptop(t);
  const state = server.running(callID('c'), { elsewhere: 'phone' });
  await calls.handle('call.member', { call: callID('c'), at: 0, cause: 'accepted', ...server.member(callID('c')) });
  assert.deepEqual([...calls.elsewhere.values()].map(({ id, elsewhere }) => [id, elsewhere]), [[callID('c'), 'phone']]);
  const open = await calls.sort([]);
  assert.equal(state.members.length, 2);
  assert.deepEqual([open, [...calls.elsewhere.keys()]], [[], [callID('c')]]);
  const call = await calls.add('transfer', { id: callID('c'), camera: false });
  assert.deepEqual([calls.elsewhere.size, call.members.get('alice').participants.length], [0, 2]);
  const participants = call.members.get('alice').participants.filter(({ device }) => device === 'laptop');
  await calls.handle('call.member', { call: callID('c'), at: 0, cause: 'transferred', user: 'alice', state: 'joined', participants });
  assert.equal(call.hasEnded, false);
});

test('a call that was moved here is no longer offered, even if the answer about it comes late', async (t) => {
  const { server, connection, calls } = await laptop(t);
  const id = callID('c');
  server.running(id, { elsewhere: 'phone' });
  await calls.sort([], [id]);
  const offered = [];
  calls.addEventListener('change', () => offered.push([...calls.elsewhere.keys()].filter((other) => calls.find(other))));
  const { request } = connection;
  let answer;
  connection.request = async (path, body) => {
    const reply = await request(path, body);
    if (path.endsWith('/state')) await new Promise((resolve) => (answer = resolve));
    return reply;
  };
  const sorted = calls.sort([], [id]);
  await until(() => answer);
  await calls.add('transfer', { id, camera: false });
  assert.deepEqual(offered.at(-1), [], 'said at once');
  answer();
  await sorted;
  assert.deepEqual([calls.elsewhere.size, offered.at(-1)], [0, []]);
});

test('a call on a device that has lost its connection is offered as lost', async (t) => {
  const { server, calls } = await laptop(t);
  const id = callID('c');
  const tell = (cause, state, connected) => {
    const [participant] = server.member(id).participants;
    return calls.handle('call.member', { call: id, at: 0, cause, user: 'alice', state, participants: [{ ...participant, connected }] });
  };
  const isLost = () => calls.elsewhere.get(id)?.isLost;
  server.running(id, { elsewhere: 'phone' });
  server.member(id).participants[0].connected = false;
  await tell('accepted', 'joined', false);
  assert.equal(isLost(), false, 'it has just joined there');
  await tell('connected', 'joined', true);
  assert.equal(isLost(), false);
  await tell('disconnected', 'joined', false);
  assert.equal(isLost(), true, 'its media is gone');
  await tell('connected', 'joined', true);
  assert.equal(isLost(), false);
  await tell('disconnected', 'disconnected', false);
  assert.equal(isLost(), true);
  calls.elsewhere.clear();
  server.member(id).participants[0].connected = false;
  await calls.sort([structuredClone(server.calls.get(id))]);
  assert.equal(isLost(), true, 'a page that is opened later sees the same');
});

test('a call that ran on another device before the page was loaded is found, one that is over is not', async (t) => {
  const { server, calls } = await laptop(t);
  server.running(callID('c'), { elsewhere: 'phone' });
  const open = await calls.sort([], [callID('over'), callID('c')]);
  assert.deepEqual([open, [...calls.elsewhere.keys()]], [[], [callID('c')]]);
});

test('a call that another device has taken over is over here', async (t) => {
  const { calls, join } = await laptop(t);
  const call = await join('accept', callID('c'));
  let reason;
  call.addEventListener('ended', ({ detail }) => (reason = detail.reason));
  const phone = { participant: 9, device: 'phone', connected: true, held: false, tracks: [] };
  await calls.handle('call.member', { call: callID('c'), at: 0, cause: 'transferred', user: 'alice', state: 'joined', participants: [phone] });
  assert.deepEqual([reason, calls.current], ['elsewhere', undefined]);
  assert.deepEqual([...calls.elsewhere.keys()], [callID('c')], 'and can be taken back');
});

test('a device that was removed learns that, one that was lost comes back', async (t) => {
  const { server, calls, join } = await laptop(t);
  const call = await join('accept', callID('c'));
  const gone = (cause) => calls.handle('call.member', { call: callID('c'), at: 0, cause, user: 'alice', state: 'left', participants: [] });
  const first = call.participant;
  await gone('disconnected');
  await until(() => call.participant !== first);
  assert.equal(server.count('/rejoin'), 1);
  await until(() => call.path === 'connected');
  let reason;
  call.addEventListener('ended', ({ detail }) => (reason = detail.reason));
  await gone('left');
  assert.equal(reason, 'removed');
});

test('after a reconnect, a disconnected participant rejoins with a new PeerConnection', async (t) => {
  const { server, connection, calls, join } = await laptop(t);
  const call = await join('accept', callID('c'));
  await until(() => server.count('/media') > 0);
  const [old, before] = [PeerConnection.all.at(-1), call.participant];
  server.member(callID('c')).participants[0].connected = false; // as after a restart of the server
  connection.connectionNumber = 2;
  await calls.handle('call.state', { call: callID('c'), at: 0, ...structuredClone(server.calls.get(callID('c'))) });
  await until(() => call.participant !== before && call.path === 'connected');
  const joins = server.asked.filter(({ path }) => /accept|rejoin/.test(path)).map(({ body }) => body.joinId);
  assert.equal(new Set(joins).size, 2);
  assert.deepEqual([old.isClosed, PeerConnection.all.at(-1).isClosed, call.hasEnded], [true, false, false]);
  assert.equal(server.member(callID('c')).participants.length, 1, 'no ghost');
});

test('the loss of only the STOMP connection causes no rejoin', async (t) => {
  const { server, connection, calls, join } = await laptop(t);
  const call = await join('accept', callID('c'));
  connection.connectionNumber = 2;
  await calls.handle('call.state', { call: callID('c'), at: 0, ...structuredClone(server.calls.get(callID('c'))) });
  await calls.connectionReady();
  assert.deepEqual([server.count('/rejoin'), server.count('/keys/list'), call.hasEnded], [0, 1, false]);
});

test('attempts to rejoin count when the server refuses them, not when it is unreachable', async (t) => {
  const { server, join } = await laptop(t);
  const call = await join('rejoin', callID('c'));
  const { setTimeout } = globalThis;
  t.after(() => (globalThis.setTimeout = setTimeout));
  globalThis.setTimeout = (action) => setTimeout(action, 0);
  for (let i = 0; i < 20; i += 1) server.failures.push({ ending: '/rejoin', code: 'timeout' });
  await call.rejoin();
  assert.equal(call.hasEnded, false);
  for (let i = 0; i < 20; i += 1) server.failures.push({ ending: '/rejoin', code: 'request.invalid' });
  await call.rejoin();
  assert.equal(call.hasEnded, true);
});

test('a held call that comes back is held again', async (t) => {
  const { server, join } = await laptop(t);
  const call = await join('accept', callID('c'));
  await until(() => microphone(call).isOn);
  await call.hold(true);
  await call.rejoin();
  assert.equal(server.member(callID('c')).participants[0].held, true);
  assert.equal(opened.filter((track) => !track.isStopped && track === microphone(call).track).length, 0);
});

test('a call that the server holds but the user does not is resumed', async (t) => {
  const { server, calls, join } = await laptop(t);
  const call = await join('accept', callID('c'));
  server.member(callID('c')).participants[0].held = true; // as after a rejoin of a held call
  const told = () => calls.handle('call.member', { call: callID('c'), at: 0, cause: 'held', ...structuredClone(server.member(callID('c'))) });
  await told();
  assert.equal(server.member(callID('c')).participants[0].held, false);
  await call.hold(true);
  await told();
  assert.equal(server.member(callID('c')).participants[0].held, true);
});

test('events of a call are handled only after its start', async (t) => {
  const { server, calls } = await laptop(t);
  const started = calls.add('start', { body: { callees: ['bob'], media: 'audio' }, camera: false, isNew: true });
  await until(() => server.count('calls/start') > 0);
  const [id] = server.calls.keys();
  const carol = { call: id, at: 0, cause: 'invited', user: 'carol', state: 'ringing', participants: [] };
  await calls.handle('call.member', carol);
  assert.equal((await started).members.get('carol').state, 'ringing');
});

test('the request has the policy, metadata and media that an app chooses, and omits those that it leaves out', async (t) => {
  const server = new FakeServer('alice', 'laptop');
  class Wired extends Conclave {
    request(path, body) {
      return server.request(path, body);
    }
  }
  const conclave = new Wired({ url: 'ws://h/', device: 'laptop', credentials: async () => ({ token: 't', user: 'alice' }) });
  const { identity, directory } = await server.connection();
  Object.assign(conclave, { identity, directory });
  t.after(() => [...conclave.held, conclave.current].forEach((call) => call?.giveUp()));
  const asked = (ending) => {
    const { callees, media, policy, metadata } = server.asked.findLast(({ path }) => path.endsWith(ending)).body;
    return { callees, media, policy, metadata };
  };
  const left = { callees: ['bob'], policy: undefined, metadata: undefined };
  await conclave.call(['bob']);
  assert.deepEqual(asked('calls/start'), { ...left, media: 'video' });
  await conclave.call(['bob'], { camera: false });
  assert.deepEqual(asked('calls/start'), { ...left, media: 'audio' });
  const policy = { invite: 'initiator', ringSeconds: 20 };
  const call = await conclave.call(['bob'], { camera: false, media: 'video', policy, metadata: 'YQ==' });
  assert.deepEqual(asked('calls/start'), { callees: ['bob'], media: 'video', policy, metadata: 'YQ==' });
  await call.invite(['carol'], { metadata: 'Yg==' });
  assert.deepEqual(asked('/invite'), { callees: ['carol'], media: undefined, policy: undefined, metadata: 'Yg==' });
  await call.invite(['dave']);
  assert.ok(!('metadata' in server.asked.findLast(({ path }) => path.endsWith('/invite')).body));
});

test('a device that disappears between the look-up and the ring does not take the key from the others', async (t) => {
  const { server, connection, calls } = await laptop(t);
  const devices = await Promise.all(['phone', 'tablet'].map((device) => Identity.open(new MemoryStore(), 'bob', device)));
  const listed = devices.map(({ user, device, fingerprint, keys }) => ({ user, device, fingerprint: toBase64(fingerprint), keys, name: device, registeredAt: 0 }));
  const lists = [listed, listed.slice(0, 1)];
  connection.directory = new Directory({ store: new MemoryStore(), owner: 'alice', fetchDevices: async () => ({ devices: lists.length > 1 ? lists.shift() : lists[0] }) });
  server.failures.push({ ending: 'calls/start', code: 'keys.not-allowed' });
  await calls.add('start', { body: { callees: ['bob'], media: 'audio' }, camera: false, isNew: true });
  const rung = server.asked.filter(({ path }) => path === 'calls/start').map(({ body }) => body.envelopes?.map(({ to }) => to.device));
  assert.deepEqual(rung, [['phone', 'tablet'], ['phone']]);
});

test('callees ring without a key when the server refuses every list of them', async (t) => {
  const { server, connection, calls } = await laptop(t);
  const { user, device, fingerprint, keys } = await Identity.open(new MemoryStore(), 'bob', 'phone');
  const listed = [{ user, device, fingerprint: toBase64(fingerprint), keys, name: device, registeredAt: 0 }];
  connection.directory = new Directory({ store: new MemoryStore(), owner: 'alice', fetchDevices: async () => ({ devices: listed }) });
  for (let i = 0; i < 3; i += 1) server.failures.push({ ending: 'calls/start', code: 'keys.not-allowed' });
  const call = await calls.add('start', { body: { callees: ['bob'], media: 'audio' }, camera: false, isNew: true });
  const rung = server.asked.filter(({ path }) => path === 'calls/start').map(({ body }) => body.envelopes?.length ?? 0);
  assert.deepEqual([rung, call.hasEnded], [[1, 1, 1, 0], false]);
});

test('an invitation never has a word for this user, since that would be a root', async (t) => {
  const { server, join } = await laptop(t);
  const call = await join('accept', callID('first'));
  assert.deepEqual(await call.invite(['alice', 'carol']), { alice: 'already-joined' });
  assert.deepEqual(await call.invite(['alice']), { alice: 'already-joined' });
  const invitations = server.asked.filter(({ path }) => path.endsWith('/invite')).map(({ body }) => [body.callees, body.admissions.map(({ user }) => user)]);
  assert.deepEqual(invitations, [[['carol'], ['carol']]]);
});
