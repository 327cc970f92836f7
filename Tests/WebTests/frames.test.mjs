import assert from 'node:assert/strict';
import { test } from 'node:test';
import { load } from './web.mjs';

const { FrameKeys, clearBytes } = await load('frames/frames.js');
const { kidOf } = await load('wire/transcript.js');

const frame = Uint8Array.from({ length: 40 }, (_, i) => i * 3 + 1); // an odd first byte is not a VP8 key frame
const sender = (participant) => ({
  participant,
  fingerprint: new Uint8Array(32).fill(participant),
  joinId: new Uint8Array(16).fill(participant),
});

async function epoch(number, senders = [sender(1), sender(2)], fill = number % 256) {
  const secret = await crypto.subtle.importKey('raw', new Uint8Array(32).fill(fill), 'HKDF', false, ['deriveBits']);
  return { epoch: number, listHash: new Uint8Array(32), secret, senders };
}

function keysOf(participant) {
  const keys = new FrameKeys();
  keys.identify({ call: 'call', ...sender(participant) });
  return keys;
}

async function pair(number = 1) {
  const [alice, bob] = [keysOf(1), keysOf(2)];
  for (const keys of [alice, bob]) {
    keys.install(await epoch(number));
    keys.switchTo(number);
  }
  return { alice, bob };
}

test('a frame passes from sender to receiver with its clear bytes in front', async () => {
  const { alice, bob } = await pair();
  const sealed = await alice.seal(2, frame, 3);
  assert.deepEqual(sealed.subarray(0, 3), frame.subarray(0, 3));
  const found = bob.inspect(sealed, 3);
  assert.equal(found.kid, kidOf(1, 2, 1));
  assert.deepEqual(await bob.open(sealed, 3, found), frame);
});

test('no counter is used twice under one KID', async () => {
  const { alice, bob } = await pair();
  const sealed = await Promise.all(Array.from({ length: 20 }, () => alice.seal(1, frame, 0)));
  const counters = sealed.map((data) => bob.inspect(data, 0).header.counter);
  assert.equal(new Set(counters).size, 20);
});

test('a frame opens only once, in whatever slot it arrives', async () => {
  const { alice, bob } = await pair();
  const sealed = await alice.seal(1, frame, 0);
  const attempts = [0, 1].map(() => bob.open(sealed, 0, bob.inspect(sealed, 0)));
  const settled = await Promise.allSettled(attempts);
  assert.deepEqual(settled.map(({ status }) => status).sort(), ['fulfilled', 'rejected']);
  assert.equal(settled.find(({ reason }) => reason).reason.reason, 'replay');
});

test('a forged frame does not move the replay window', async () => {
  const { alice, bob } = await pair();
  const first = await alice.seal(1, frame, 0);
  for (let i = 0; i < 3; i += 1) await alice.seal(1, frame, 0);
  const forged = await alice.seal(1, frame, 0);
  forged[forged.length - 1] ^= 1;
  await assert.rejects(() => bob.open(forged, 0, bob.inspect(forged, 0)), { reason: 'authentication' });
  assert.deepEqual(await bob.open(first, 0, bob.inspect(first, 0)), frame);
});

test('without a key, a track number or its clear bytes nothing is sent', async () => {
  const { alice } = await pair();
  assert.equal(await keysOf(1).seal(1, frame, 0), undefined);
  for (const n of [0, 256, 257, -255, 1.5, '1', undefined]) assert.equal(await alice.seal(n, frame, 0), undefined, String(n));
  assert.equal(await alice.seal(1, frame.subarray(0, 2), 3), undefined);
});

test('another secret, or a list without the sender, opens nothing', async () => {
  const { alice } = await pair();
  const sealed = await alice.seal(1, frame, 0);
  const stranger = keysOf(3);
  stranger.install(await epoch(1, [sender(1)], 9));
  await assert.rejects(() => stranger.open(sealed, 0, stranger.inspect(sealed, 0)), { reason: 'authentication' });
  const other = keysOf(3);
  other.install(await epoch(1, [sender(2)]));
  assert.equal(other.inspect(sealed, 0).isKnown, false);
});

test('the previous epoch opens frames until it is forgotten', async () => {
  const { alice, bob } = await pair();
  const old = await Promise.all([alice.seal(1, frame, 0), alice.seal(1, frame, 0)]);
  bob.install(await epoch(2));
  bob.switchTo(2);
  assert.deepEqual(await bob.open(old[0], 0, bob.inspect(old[0], 0)), frame);
  bob.forgetBefore(2);
  assert.equal(bob.inspect(old[1], 0).isKnown, false);
});

test('sending never goes back to a lower epoch, nor to one without a key', async () => {
  const { alice } = await pair();
  alice.install(await epoch(2));
  alice.switchTo(2);
  alice.switchTo(1);
  alice.switchTo(3);
  assert.equal(alice.sendingEpoch, 2);
});

test('VP8 leaves 10 bytes of a key frame and 3 of other frames in the clear; Opus and VP9 none', () => {
  assert.equal(clearBytes(Uint8Array.of(0x10), true, 'video/VP8'), 10);
  assert.equal(clearBytes(Uint8Array.of(0x11), true, 'video/VP8'), 3);
  assert.equal(clearBytes(Uint8Array.of(0x10), true, 'video/VP9'), 0);
  assert.equal(clearBytes(Uint8Array.of(0x10), false, 'audio/opus'), 0);
});

test('random bytes are refused, without any other exception', async () => {
  const { bob } = await pair();
  let seed = 0x2545f491;
  const next = () => (seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0);
  for (let i = 0; i < 5_000; i += 1) {
    const data = Uint8Array.from({ length: next() % 60 }, () => next() >>> 24);
    try {
      const found = bob.inspect(data, i % 2 ? 3 : 0);
      if (found.isKnown) await bob.open(data, i % 2 ? 3 : 0, found);
    } catch (error) {
      assert.ok(['header', 'own', 'replay', 'authentication', 'unknown-key'].includes(error.reason), String(error));
    }
  }
});

test('no key opens one’s own frames, which the server may send back', async () => {
  const { alice } = await pair();
  const sealed = await alice.seal(1, frame, 0);
  assert.throws(() => alice.inspect(sealed, 0), { reason: 'own' });
});

test('a stay has one number: a second one is refused, and so are invalid epochs', async () => {
  const keys = keysOf(1);
  assert.throws(() => keys.identify({ call: 'call', ...sender(2) }));
  for (const number of [0, -1, 1.5, '2', 2 ** 32, 2 ** 32 + 2]) assert.throws(() => kidOf(1, 1, number), RangeError);
  for (const participant of [0, -1, 1.5, '2', 2 ** 32, 2 ** 53]) assert.throws(() => kidOf(participant, 1, 1), RangeError);
  for (const n of [-1, 256, 257, -255, 0.5]) assert.throws(() => kidOf(1, n, 1), RangeError);
  assert.throws(() => keys.install({ epoch: 2 ** 32 + 1, senders: [] }), RangeError);
});

test('three epochs are kept, and never two with the same low byte', async () => {
  const { alice, bob } = await pair(2);
  const old = await alice.seal(1, frame, 0);
  for (const number of [3, 4]) bob.install(await epoch(number));
  assert.equal(bob.inspect(old, 0).isKnown, true);
  bob.install(await epoch(5));
  assert.equal(bob.inspect(old, 0).isKnown, false, 'the fourth');
  const { alice: carol, bob: dave } = await pair(2);
  const older = await carol.seal(1, frame, 0);
  dave.install(await epoch(258));
  await assert.rejects(() => dave.open(older, 0, dave.inspect(older, 0)), { reason: 'authentication' });
});

test('sealing keeps the first secret of an epoch', async () => {
  const { alice, bob } = await pair();
  alice.install(await epoch(1, [sender(2)], 9));
  const sealed = await alice.seal(1, frame, 0);
  assert.deepEqual(await bob.open(sealed, 0, bob.inspect(sealed, 0)), frame);
});

test('keys derived for a former sender do not open frames of a new one', async () => {
  const { alice, bob } = await pair();
  const [first, second] = [await alice.seal(1, frame, 0), await alice.seal(1, frame, 0)];
  await bob.open(first, 0, bob.inspect(first, 0));
  bob.install(await epoch(1, [{ ...sender(1), joinId: new Uint8Array(16).fill(7) }]));
  await assert.rejects(() => bob.open(second, 0, bob.inspect(second, 0)), { reason: 'authentication' });
});

test('one’s own sending key is not among the receiving keys', async () => {
  const { alice } = await pair();
  await alice.seal(1, frame, 0);
  alice.install(await epoch(1, [sender(1), sender(2)]));
  assert.throws(() => alice.inspect(Uint8Array.from({ length: 40 }), 0), { reason: 'own' }, 'participant 0 is nobody');
});
