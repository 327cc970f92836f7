import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fakeTimers, load, loadPage } from './web.mjs';

const { FrameKeys } = await load('frames/frames.js');
const { Inbox } = await load('connection/inbox.js');
const { decodeMessage, encodeMessage } = await load('keys/messages.js');
const { Presence } = await load('devices/presence.js');
const { QualityMeter } = await load('media/quality.js');
const { Rings } = await load('call/rings.js');
const { Recovery } = await load('call/recovery.js');
const { duration, outcomeOf, totalsOf, when } = await loadPage('history-words.js');
const { StompConnection } = await load('connection/stomp.js');

console.warn = () => {};

test('a gap in seq requests what was missed before the event is handled', async () => {
  const order = [];
  const inbox = new Inbox({ handle: async ({ seq }) => order.push(seq), missed: async () => order.push('missed') });
  for (const seq of [7, 8, 4294967297]) await inbox.take({ name: 'call.member', seq, redelivered: false });
  assert.deepEqual(order, [7, 8, 'missed', 4294967297]);
});

test('an event that fails is acknowledged; an envelope that fails is not, and may come again', async () => {
  const inbox = new Inbox({ handle: async () => { throw new Error('x'); }, missed: async () => {} });
  assert.equal(await inbox.take({ name: 'call.member', seq: 1, redelivered: false }), true);
  assert.equal(await inbox.take({ name: 'keys.envelope', seq: 2, redelivered: false }), false);
});

test('a ring that is repeated after a lost connection rings once, with its updates', () => {
  const said = [];
  const rings = new Rings({ rang: ({ call }) => said.push(call), ended: ({ ring, reason }) => said.push([ring.media, reason]) });
  const call = '00000000-0000-4000-8000-000000000001';
  const ring = { call, from: 'bob', members: [], at: 0, expiresAt: 9, media: 'audio' };
  rings.handle('call.ring', ring);
  rings.handle('call.ring', { ...ring, at: 1, media: 'video' });
  for (const bad of [{ call: 'c' }, { call: `${call}0` }, { from: '' }, { from: 7 }, { members: {} }]) rings.handle('call.ring', { ...ring, ...bad });
  rings.handle('call.cancelled', { call });
  rings.handle('call.ended', { call });
  assert.deepEqual(said, [call, ['video', 'cancelled']]);
});

test('messages are sealed once, with n = 0 and the metadata “message”, and count only for their sender', async () => {
  const stay = (participant) => ({ participant, fingerprint: new Uint8Array(32).fill(participant), joinId: new Uint8Array(16).fill(participant) });
  const [alice, bob] = await Promise.all([1, 2].map(async (participant) => {
    const keys = new FrameKeys();
    keys.identify({ call: 'c', ...stay(participant) });
    const secret = await crypto.subtle.importKey('raw', new Uint8Array(32), 'HKDF', false, ['deriveBits']);
    keys.install({ epoch: 1, listHash: new Uint8Array(32), secret, senders: [stay(1), stay(2)] });
    keys.switchTo(1);
    return keys;
  }));
  const sealed = await alice.sealMessage(encodeMessage({ text: 'hello' }));
  assert.equal(sealed[0], 0);
  await assert.rejects(bob.openMessage(sealed, 2), { reason: 'attribution' }, 'the server says that another sent it');
  const { participant, data } = await bob.openMessage(sealed, 1);
  assert.deepEqual([participant, decodeMessage(data)], [1, { text: 'hello' }]);
  await assert.rejects(bob.openMessage(sealed, 1), { reason: 'replay' });
  await assert.rejects(bob.openMessage(Uint8Array.of(0, ...(await alice.seal(1, new Uint8Array(20), 0))), 1), { reason: 'attribution' }, 'a frame is not a message');
  await assert.rejects(alice.openMessage(await alice.sealMessage(encodeMessage({ text: 'mine' })), 1), { reason: 'own' });
});

test('malformed messages are ignored', () => {
  const padded = (text) => Uint8Array.of(...new TextEncoder().encode(text), 0x80, ...new Uint8Array(63 - text.length));
  assert.deepEqual(decodeMessage(padded('{"text":"1"}')), { text: '1' });
  for (const text of ['', '[]', 'null', '{"text":1}', '{"reaction":"much too long for a reaction"}']) {
    assert.equal(decodeMessage(padded(text)), undefined, text);
  }
  assert.equal(encodeMessage({ text: 'x'.repeat(20_000) }), undefined);
});

test('a sealed message reveals only its length in blocks of 64 bytes', () => {
  const length = (message) => encodeMessage(message).length;
  const short = [{ hand: true }, { hand: false }, { reaction: '👍' }, { reaction: '❤️' }, { text: 'yes' }, { text: 'no' }, { text: 'I have to tell you something' }];
  assert.deepEqual(new Set(short.map(length)), new Set([64]));
  const least = '{"text":""}'.length;
  for (let count = 0; count < 300; count += 1) {
    const text = 'x'.repeat(count);
    assert.equal(length({ text }), 64 * (Math.floor((least + count) / 64) + 1), `${count}`);
    assert.deepEqual(decodeMessage(encodeMessage({ text })), { text });
  }
});

test('presence follows the reply and the events, and is requested again on a new connection', async () => {
  const asked = [];
  const presence = new Presence(async (path, body) => {
    asked.push([path, body]);
    return path === 'presence/watch' ? { users: body.users.map((user) => ({ user, state: 'offline' })) } : {};
  });
  await presence.watch(['bob', 'carol', 'bob']);
  presence.take({ user: 'bob', state: 'in-call' });
  assert.deepEqual(['bob', 'carol', 'dave'].map((user) => presence.of(user)), ['in-call', 'offline', undefined]);
  await presence.watch(['bob', 'carol']);
  assert.equal(asked.length, 1, 'the same people are not asked for twice');
  await presence.set('unavailable');
  await presence.connectionReady('alice');
  assert.deepEqual(asked.slice(1).map(([path]) => path), ['presence/set', 'presence/set', 'presence/watch']);
});

test('a setting from before a reload or from another device is read, and a call does not hide it', async () => {
  let own = 'unavailable';
  const presence = new Presence(async (path, body) => ({ users: body.users?.map((user) => ({ user, state: own })) }));
  await presence.connectionReady('alice');
  assert.equal(presence.own, 'unavailable');
  presence.take({ user: 'alice', state: 'in-call' });
  assert.equal(presence.own, 'unavailable');
  presence.take({ user: 'alice', state: 'available' });
  assert.equal(presence.own, 'available');
});

test('the quality report covers the time since the last one, and only what was measured', () => {
  const meter = new QualityMeter();
  const report = (packetsReceived, packetsLost, freezeCount) => ({ type: 'inbound-rtp', packetsReceived, packetsLost, freezeCount, jitter: 0.004 });
  assert.deepEqual(meter.numbers([], undefined), { freezes: 0 });
  const pair = { type: 'candidate-pair', nominated: true, currentRoundTripTime: 0.02 };
  assert.deepEqual(meter.numbers([pair, report(90, 10, 1)], 350), { rtt: 20, loss: 0.1, jitter: 4, freezes: 1, firstFrameMs: 350 });
  assert.deepEqual(meter.numbers([report(190, 10, 1)], 350), { loss: 0, jitter: 4, freezes: 0, firstFrameMs: 350 });
});

test('a past call is described in words', () => {
  const now = new Date(2026, 10, 21, 15).getTime();
  const call = { direction: 'incoming', outcome: 'missed', seconds: 0, startedAt: new Date(2026, 10, 21, 9, 5).getTime() };
  assert.match(outcomeOf(call, now), /^Missed ·\stoday\s.*9:05/);
  assert.match(outcomeOf({ ...call, direction: 'outgoing', outcome: 'answered', seconds: 720 }, now), /^Outgoing ·\s.* ·\s12\smin$/);
  assert.match(when(now - 86_400_000, now), /^yesterday\s/);
  assert.match(when(new Date(2026, 9, 3, 9, 5).getTime(), now), /^Oct\s3,\s0?9:05\s?AM$/);
  assert.match(when(new Date(2025, 11, 24, 17, 30).getTime(), now), /^Dec\s24,\s2025,\s0?5:30\s?PM$/);
  assert.deepEqual([8, 3_600, 12_000].map(duration), ['8 sec', '1 hr', '3 hr 20 min']);
  assert.deepEqual([totalsOf({ calls: 1, seconds: 60 }), totalsOf({ calls: 2, seconds: 60 })], ['1 call, 1 min', '2 calls, 1 min']);
});

test('during a call the client reconnects at least every 2 s, otherwise with growing pauses', async (t) => {
  const waits = async (isUrgent) => {
    const opened = [];
    globalThis.WebSocket = class {
      constructor() {
        opened.push(this);
      }

      close() {}
    };
    const tick = fakeTimers(t);
    const stomp = new StompConnection({ url: 'ws://h/', credentials: async () => ({ token: 't' }), onEvent: async () => true, isUrgent: () => isUrgent, findObstacle: async () => undefined });
    stomp.connect();
    let longest = 0;
    for (let i = 0; i < 8; i += 1) {
      const { length } = opened;
      opened.at(-1).onclose();
      let waited = 0;
      for (; opened.length === length && waited < 60_000; waited += 100) tick(100);
      longest = Math.max(longest, waited);
    }
    stomp.close();
    return longest;
  };
  assert.ok((await waits(true)) <= 2_000);
  assert.ok((await waits(false)) > 10_000);
});

test('the server’s state decides once per connection whether a call that lost it stays, rejoins or is over', () => {
  const connection = { connectionNumber: 1, status: 'ready', identity: { user: 'alice' } };
  const recovery = new Recovery(connection);
  const factsWith = (found, elsewhere = undefined) => ({ elsewhere, participant: () => found });
  const afterConnect = (...state) => {
    connection.connectionNumber += 1;
    return recovery.afterState(...state);
  };
  recovery.joined();
  assert.equal(recovery.afterState(7, factsWith(undefined)), undefined, 'the connection of the join');
  assert.equal(afterConnect(7, factsWith({ connected: true })), 'stay');
  assert.equal(recovery.afterState(7, factsWith({ connected: false })), undefined, 'judged before');
  assert.deepEqual([afterConnect(7, factsWith({ connected: false })), afterConnect(7, factsWith(undefined))], ['rejoin', 'rejoin']);
  assert.equal(afterConnect(7, factsWith(undefined, 'phone')), 'elsewhere');
  assert.equal(afterConnect(0, factsWith(undefined)), undefined, 'not joined yet');
  const after = (cause, ...facts) => recovery.afterOwnChange({ cause }, 7, factsWith(...facts));
  assert.deepEqual(['left', 'disconnected', 'failed'].map((cause) => after(cause, undefined)), ['removed', 'rejoin', 'rejoin']);
  assert.equal(after('removed', undefined), 'rejoin', 'a server cannot remove a member');
  connection.identity.user = 'guest~1';
  assert.equal(after('removed', undefined), 'removed');
  assert.deepEqual([after('transferred', undefined, 'phone'), after('held', {})], ['elsewhere', 'stay']);
  assert.deepEqual([recovery.takeTurnForKeys(), recovery.takeTurnForKeys()], [true, false]);
});

test('a call that is rejoining does not rejoin twice, and nothing is judged meanwhile', async () => {
  const recovery = new Recovery({ connectionNumber: 1, status: 'ready' });
  const joining = [];
  recovery.addEventListener('change', () => joining.push(recovery.isJoining));
  let end = () => {};
  const action = () => new Promise((resolve) => (end = () => resolve('done')));
  const under = [recovery.during(action), recovery.during(() => assert.fail('a second one'))];
  assert.equal(recovery.afterOwnChange({ cause: 'failed' }, 7, { participant: () => undefined }), undefined);
  end();
  assert.deepEqual(await Promise.all(under), ['done', 'done']);
  assert.deepEqual([joining.at(0), joining.at(-1), recovery.isJoining], [true, false, false]);
});

test('rejoining stops when it is pointless, and says why', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const outcome = async (codes, status = 'ready') => {
    const recovery = new Recovery({ connectionNumber: 1, status });
    let tries = 0;
    const join = async () => {
      const code = codes[tries];
      tries += 1;
      if (code) throw Object.assign(new Error(code), { code });
    };
    const verdict = recovery.repeat(join);
    for (let turn = 0; turn < 60; turn += 1) {
      await undefined;
      t.mock.timers.tick(1_000);
    }
    return [await verdict, tries];
  };
  assert.deepEqual(await outcome(['timeout', 'server.busy']), ['stay', 3]);
  assert.deepEqual(await outcome(['call.ended']), ['lost', 1]);
  assert.deepEqual(await outcome(['call.answered-elsewhere']), ['elsewhere', 1]);
  assert.deepEqual(await outcome(['connection-lost'], 'replaced'), ['lost', 1]);
  assert.deepEqual(await outcome(Array(9).fill('media.unsupported')), ['lost', 5]);
});
