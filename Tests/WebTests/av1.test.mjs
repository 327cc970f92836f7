// AV1: a sealed frame travels as one OBU, which arrives with size fields.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { load } from './web.mjs';

const { envelopeOf, sealedIn } = await load('frames/av1.js');
const { SFrameError } = await load('frames/sframe.js');

const leb128 = (size) => (size < 128 ? [size] : [0x80 | (size & 0x7f), ...leb128(size >> 7)]);

/** The envelope as a depacketizer writes it, with a size field in every OBU. */
function arrived(envelope) {
  const isKeyFrame = envelope[0] === 0x0a;
  const sealed = envelope.subarray(isKeyFrame ? 4 : 1);
  return Uint8Array.of(...(isKeyFrame ? [0x0a, 1, 0] : []), 0x32, ...leb128(sealed.length), ...sealed);
}

test('a sealed frame comes out of its envelope unchanged, with size fields and without', () => {
  for (const length of [1, 30, 127, 128, 1_000, 20_000]) {
    const sealed = new Uint8Array(length).map((_, index) => index * 7);
    for (const isKeyFrame of [true, false]) {
      const envelope = envelopeOf(sealed, isKeyFrame);
      assert.deepEqual([...envelope.subarray(0, isKeyFrame ? 4 : 1)], isKeyFrame ? [0x0a, 1, 0, 0x30] : [0x30]);
      assert.deepEqual(sealedIn(envelope), sealed);
      assert.deepEqual(sealedIn(arrived(envelope)), sealed);
      // Behind a temporal delimiter, and with an extension byte.
      assert.deepEqual(sealedIn(Uint8Array.of(0x12, 0, 0x36, 8, ...leb128(length), ...sealed)), sealed);
    }
  }
});

test('anything else that arrives is refused as a frame that does not open', () => {
  const bad = [[], [0x0a, 1, 0], [0x32], [0x32, 5, 1], [0x32, 0xff, 0xff, 0xff, 0xff, 0x0f], [0x36], [0x32, 0x80], [0x12, 0]];
  for (const bytes of bad) assert.throws(() => sealedIn(Uint8Array.from(bytes)), SFrameError, bytes.join(' '));
  let seed = 42;
  const random = (limit) => {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0;
    return (seed >>> 8) % limit;
  };
  for (let round = 0; round < 20_000; round += 1) {
    const data = Uint8Array.from({ length: random(12) }, () => random(256));
    try {
      assert.ok(sealedIn(data).length <= data.length);
    } catch (error) {
      if (!(error instanceof SFrameError)) throw error;
    }
  }
});
