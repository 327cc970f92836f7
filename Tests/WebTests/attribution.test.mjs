import assert from 'node:assert/strict';
import { test } from 'node:test';
import { load } from './web.mjs';

const { Attribution } = await load('frames/attribution.js');
const { FrameReceiver } = await load('frames/frame-ends.js');
const { FrameKeys } = await load('frames/frames.js');
const { slotsIn } = await load('wire/checks.js');

const stay = (participant) => ({ participant, fingerprint: new Uint8Array(32).fill(participant), joinId: new Uint8Array(16).fill(participant) });

async function begin(keys, epoch) {
  const secret = await crypto.subtle.importKey('raw', new Uint8Array(32), 'HKDF', false, ['deriveBits']);
  keys.install({ epoch, listHash: new Uint8Array(32), secret, senders: [stay(1), stay(2), stay(3)] });
  keys.switchTo(epoch);
}

async function keysOf(participant) {
  const keys = new FrameKeys();
  keys.identify({ call: 'c', ...stay(participant) });
  await begin(keys, 1);
  return keys;
}

/** Alice's slot, with its own clock, and two senders. */
async function slot(t) {
  const [alice, bob, carol] = await Promise.all([1, 2, 3].map(keysOf));
  const real = performance.now;
  let now = 0;
  performance.now = () => now;
  t.after(() => (performance.now = real));
  const played = [];
  const receiver = new FrameReceiver({ keys: alice, name: 's', transformer: {}, isVideo: false, opened() {} });
  const give = async (sealed) => {
    const frame = { data: Uint8Array.from(sealed).buffer, getMetadata: () => ({}) };
    await receiver.transform(frame, { enqueue: ({ data }) => played.push(new Uint8Array(data)[0]) });
  };
  const frame = (keys, number, n = 1) => keys.seal(n, new Uint8Array(20).fill(number), 0);
  const show = async (track) => {
    receiver.show(track);
    await receiver.transform({ data: new ArrayBuffer(0), getMetadata: () => ({}) }, {}); // after the held frames
    receiver.failed -= 1;
  };
  return { bob, carol, receiver, played, give, frame, show, pass: (ms) => (now += ms) };
}

const BOB = { participant: 2, n: 1 };
const CAROL = { participant: 3, n: 1 };

test('a frame counts only for the track that its slot shows, by participant and by number', async (t) => {
  const { bob, carol, receiver, played, give, frame, show, pass } = await slot(t);
  await show(BOB);
  await give(await frame(bob, 1));
  await give(await frame(carol, 2));
  await give(await frame(bob, 3, 2));
  assert.deepEqual(played, [1]);
  pass(1_001);
  receiver.retryWaiting();
  await give(await frame(bob, 4));
  assert.deepEqual([played, receiver.foreign, receiver.failed], [[1, 4], 2, 0]);
});

test('frames that arrive before the slot’s change are held until then, and released in order', async (t) => {
  const { bob, carol, receiver, played, give, frame, show, pass } = await slot(t);
  await show(BOB);
  await give(await frame(bob, 1));
  for (const number of [2, 3, 4]) {
    await give(await frame(carol, number));
    pass(150);
  }
  await show(CAROL);
  await give(await frame(carol, 5));
  assert.deepEqual([played, receiver.foreign], [[1, 2, 3, 4, 5], 0]);
});

test('at most the newest 64 frames are held', async (t) => {
  const { carol, receiver, played, give, frame, show } = await slot(t);
  await show(BOB);
  for (let number = 0; number < 70; number += 1) await give(await frame(carol, number));
  await show(CAROL);
  await give(await frame(carol, 99));
  assert.deepEqual([played.length, played[0], receiver.foreign], [65, 6, 6]);
});

test('the former track still counts for one second after a change', async (t) => {
  const { bob, played, give, frame, show, pass } = await slot(t);
  await show(BOB);
  await show(CAROL);
  pass(900);
  await give(await frame(bob, 1));
  pass(200);
  await give(await frame(bob, 2));
  assert.deepEqual(played, [1]);
});

test('a former track moves its replay window by at most 64', async (t) => {
  const { bob, played, give, frame, show, receiver } = await slot(t);
  await show(BOB);
  await give(await frame(bob, 1));
  await show(CAROL);
  for (let i = 0; i < 70; i += 1) await frame(bob, 0); // lost
  await give(await frame(bob, 2));
  assert.deepEqual(played, [1]);
  await show(BOB);
  await give(await frame(bob, 3));
  assert.deepEqual([played, receiver.failed], [[1, 3], 0]);
});

test('one’s own frames are dropped at once, and counted', async (t) => {
  const { receiver, played, give, show } = await slot(t);
  await show({ participant: 1, n: 1 });
  const alice = await keysOf(1);
  await give(await alice.seal(1, new Uint8Array(20), 0));
  assert.deepEqual([played, receiver.foreign], [[], 1]);
});

test('an empty slot shows nobody', () => {
  const attribution = new Attribution();
  assert.equal(attribution.reach(BOB, 0), undefined);
  attribution.show(BOB, 0);
  attribution.show(undefined, 10);
  assert.equal(attribution.reach(BOB, 500), 64);
  assert.equal(attribution.reach(BOB, 1_010), undefined);
  assert.equal(attribution.reach({ participant: undefined, n: undefined }, 500), Infinity, 'what no KID says');
});

test('a map of slots with an invalid track is refused as a whole', () => {
  const good = { mid: '1', track: '2.1' };
  assert.deepEqual(slotsIn([good], 8).get('1'), BOB);
  for (const bad of [{ mid: '1', track: '2.257' }, { mid: '1', track: 'x' }, { mid: 1, track: '2.1' }, null, 'x']) assert.throws(() => slotsIn([good, bad], 8));
  assert.throws(() => slotsIn([good, { mid: '1', track: '3.1' }], 8), /twice/);
  assert.equal(slotsIn([{ ...good, picture: 'lower' }], 8).get('1').picture, 'lower');
  for (const picture of ['', 'whole', 1, null, {}]) assert.throws(() => slotsIn([{ ...good, picture }], 8), /picture/);
  assert.throws(() => slotsIn({}, 8));
  assert.throws(() => slotsIn(Array(9).fill(good), 8));
});

test('frames from before a newcomer’s join are not failures, frames of a key that never comes are', async (t) => {
  const { bob, receiver, played, give, frame, show, pass } = await slot(t);
  const newcomer = new FrameKeys();
  newcomer.identify({ call: 'c', ...stay(1) });
  const late = new FrameReceiver({ keys: newcomer, name: 's', transformer: {}, isVideo: false, opened() {} });
  const giveLate = async (sealed) => late.transform({ data: Uint8Array.from(sealed).buffer, getMetadata: () => ({}) }, { enqueue: ({ data }) => played.push(new Uint8Array(data)[0]) });
  late.show(BOB);
  await show(BOB);
  await begin(bob, 250);
  await giveLate(await frame(bob, 1)); // before the first key
  pass(1_001);
  await begin(newcomer, 251);
  late.retryWaiting();
  await giveLate(await frame(bob, 2)); // an epoch before the newcomer's first
  pass(1_001);
  await begin(bob, 258); // its low byte is 2
  await giveLate(await frame(bob, 3));
  pass(1_001);
  late.retryWaiting();
  await begin(bob, 259);
  await begin(newcomer, 259);
  await giveLate(await frame(bob, 4));
  assert.deepEqual([played, late.earlier, late.failed, late.foreign], [[4], 2, 1, 0]);
  await give(await frame(bob, 5)); // alice was there from epoch 1 on, and lacks 259
  pass(1_001);
  receiver.retryWaiting();
  await show(BOB);
  assert.deepEqual([receiver.earlier, receiver.failed], [0, 1]);
});
