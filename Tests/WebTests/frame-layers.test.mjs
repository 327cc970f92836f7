// Frames of a camera's layers in the worker: all share a key and a counter, each needs key frames, and a receiver gets one layer.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { load } from './web.mjs';

const { FrameWorker } = await load('frames/frame-worker.js');
const { parseHeader } = await load('frames/sframe.js');

const stay = (participant) => ({ participant, fingerprint: new Uint8Array(32).fill(participant), joinId: new Uint8Array(16).fill(participant) });

/** The worker's side of a device, and what it requested from its encoder. */
async function device(participant) {
  const worker = new FrameWorker(() => {});
  worker.take({ type: 'self', call: 'c', ...stay(participant) });
  const install = async (epoch) => {
    const secret = await crypto.subtle.importKey('raw', new Uint8Array(32).fill(epoch), 'HKDF', false, ['deriveBits']);
    worker.take({ type: 'epoch', epoch, listHash: new Uint8Array(32), secret, senders: [stay(1), stay(2)] });
  };
  await install(1);
  worker.take({ type: 'switch', epoch: 1, isSilent: false });
  return { worker, install };
}

const KEY = 0x10;
const DELTA = 0x11;

/** An encoded VP8 frame of the layer with that SSRC; its last byte is `number`. */
function frameOf(ssrc, type, number) {
  const data = new Uint8Array(40).fill(ssrc);
  data[0] = type === 'key' ? KEY : DELTA;
  data[39] = number;
  return { type, data: data.buffer, ssrc, getMetadata: () => ({ mimeType: 'video/VP8', synchronizationSource: ssrc }) };
}

async function through(end, frame) {
  const passed = [];
  await end.transform(frame, { enqueue: (other) => passed.push(other) });
  return passed[0];
}

/** Alice's camera in three layers, and Bob's slot that shows it. */
async function aliceToBob(t) {
  const { setTimeout } = globalThis;
  globalThis.setTimeout = (action, ms) => setTimeout(action, ms).unref(); // of the worker, which forgets former keys after 10 s
  t.after(() => Object.assign(globalThis, { setTimeout }));
  const [alice, bob] = [await device(1), await device(2)];
  const asked = [];
  const generateKeyFrame = async (...rids) => void asked.push(...(rids.length > 0 ? rids : ['']));
  const camera = alice.worker.attach({ options: { operation: 'seal', name: 'camera', isVideo: true, rids: ['q', 'h', 'f'] }, generateKeyFrame });
  alice.worker.take({ type: 'track', name: 'camera', n: 3 });
  const slot = bob.worker.attach({ options: { operation: 'open', name: 'slot-0', isVideo: true } });
  bob.worker.take({ type: 'slots', slots: [{ name: 'slot-0', participant: 1, n: 3 }] });
  return { alice, bob, camera, slot, asked };
}

/** The KID and counter of a sealed frame: if two are equal, a key was used twice with the same nonce. */
function nonceOf({ data }) {
  const sealed = new Uint8Array(data);
  const { kid, counter } = parseHeader(sealed.subarray(sealed[0] === KEY ? 10 : 3).subarray(0, 17));
  return { kid, counter };
}

test('no counter is used twice across the layers of a camera, even when frames are sealed concurrently', async (t) => {
  const { camera } = await aliceToBob(t);
  const frames = [];
  for (let number = 0; number < 60; number += 1) for (const ssrc of [11, 12, 13]) frames.push(frameOf(ssrc, number % 20 === 0 ? 'key' : 'delta', number));
  const sealed = await Promise.all(frames.map((frame) => through(camera, frame)));
  assert.ok(sealed.every(Boolean));
  const nonces = sealed.map(nonceOf);
  assert.equal(new Set(nonces.map(({ counter }) => counter)).size, 180);
  assert.equal(new Set(nonces.map(({ kid }) => kid)).size, 1, 'under one key');
});

test('an AV1 frame is sealed whole, and travels as one OBU', async (t) => {
  const { camera, slot } = await aliceToBob(t);
  const frame = (type) => ({ ...frameOf(11, type, 7), getMetadata: () => ({ mimeType: 'video/AV1', synchronizationSource: 11 }) });
  for (const type of ['key', 'delta']) {
    const plain = new Uint8Array(frame(type).data);
    const sealed = await through(camera, frame(type));
    const wire = new Uint8Array(sealed.data);
    assert.deepEqual([...wire.subarray(0, type === 'key' ? 4 : 1)], type === 'key' ? [0x0a, 1, 0, 0x30] : [0x30]);
    assert.ok(!wire.some((_, place) => plain.every((byte, index) => wire[place + index] === byte)), 'nothing is in the clear');
    assert.deepEqual(new Uint8Array((await through(slot, sealed)).data), plain);
  }
});

test('a receiver opens the layer that it gets, also after a switch to another one', async (t) => {
  const { camera, slot } = await aliceToBob(t);
  let opened = 0;
  let sent = 0;
  for (let number = 0; number < 240; number += 1) {
    const layers = number % 120 < 60 ? [11, 12, 13] : [11, 13]; // a layer is off at times
    const shown = number < 80 ? 11 : number < 160 ? 13 : 11;
    for (const ssrc of layers) {
      const sealed = await through(camera, frameOf(ssrc, number % 20 === 0 ? 'key' : 'delta', number));
      if (ssrc !== shown) continue;
      sent += 1;
      const frame = await through(slot, sealed);
      assert.equal(new Uint8Array(frame.data)[39], number);
      opened += 1;
    }
  }
  assert.deepEqual([opened, slot.opened, slot.failed, slot.foreign], [sent, sent, 0, 0]);
});

test('in a new epoch each layer is asked for its own key frame', async (t) => {
  const { alice, camera, asked } = await aliceToBob(t);
  for (const ssrc of [11, 12, 13]) assert.ok(await through(camera, frameOf(ssrc, 'key', 0)));
  assert.ok(await through(camera, frameOf(12, 'delta', 1)));
  assert.deepEqual(asked, ['', 'h', 'f'], 'a new track: the first layer without its id');
  await alice.install(2);
  alice.worker.take({ type: 'switch', epoch: 2, isSilent: false });
  assert.ok(await through(camera, frameOf(11, 'key', 2)));
  assert.equal(await through(camera, frameOf(12, 'delta', 2)), undefined, 'a picture that its receivers could not decode');
  assert.ok(await through(camera, frameOf(11, 'delta', 3)));
  assert.ok(await through(camera, frameOf(12, 'key', 3)));
  assert.ok(await through(camera, frameOf(12, 'delta', 4)));
  assert.equal(await through(camera, frameOf(13, 'delta', 4)), undefined);
});
