import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bytes, hex, load, vectors } from './web.mjs';

const { ReplayWindow, deriveKey, encodeHeader, open, parseHeader, seal } = await load('frames/sframe.js');
const { header: headers, sframe: frames } = vectors('sframe.json');

test('headers of RFC 9605 are written and read', () => {
  assert.equal(headers.length, 289);
  for (const { kid, ctr, encoded } of headers) {
    assert.equal(hex(encodeHeader(BigInt(kid), BigInt(ctr))), encoded);
    const parsed = parseHeader(bytes(encoded));
    assert.deepEqual(parsed, { kid: BigInt(kid), counter: BigInt(ctr), length: encoded.length / 2 });
  }
});

test('a truncated header, or one in a longer form than needed, is refused', () => {
  for (const text of ['', '80', '8005', '800700', '900001', '0805', '080001', '9901', '99012345']) {
    assert.throws(() => parseHeader(bytes(text)), { reason: 'header' }, text);
  }
});

for (const vector of frames.filter(({ cipher_suite: suite }) => suite === 4 || suite === 5)) {
  test(`frames of suite ${vector.cipher_suite} in RFC 9605 are sealed and opened`, async () => {
    const key = await deriveKey(bytes(vector.base_key), BigInt(vector.kid), { suite: vector.cipher_suite });
    const metadata = bytes(vector.metadata);
    assert.equal(hex(key.salt), vector.sframe_salt);
    const sealed = await seal(key, BigInt(vector.ctr), metadata, bytes(vector.pt));
    assert.equal(hex(sealed), vector.ct);
    assert.equal(hex(await open(key, parseHeader(sealed), metadata, sealed)), vector.pt);
  });
}

test('a frame with any flipped bit does not open', async () => {
  const key = await deriveKey(new Uint8Array(64).fill(7), 0x10203n);
  const metadata = bytes('0a0b0c');
  const sealed = await seal(key, 300n, metadata, bytes('00112233'));
  for (let i = 0; i < (sealed.length + metadata.length) * 8; i += 1) {
    const whole = Uint8Array.from([...metadata, ...sealed]);
    whole[i >> 3] ^= 1 << (i & 7);
    const attempt = async () => {
      const sframe = whole.subarray(3);
      return open(key, parseHeader(sframe), whole.subarray(0, 3), sframe);
    };
    await assert.rejects(attempt, { name: 'Error' }, `bit ${i}`);
  }
});

test('the replay window accepts each counter once, and none older than 1,024', () => {
  const seen = new ReplayWindow();
  for (const counter of [0, 5, 3, 2000, 977]) {
    assert.ok(seen.accepts(counter), `${counter} is new`);
    seen.mark(counter);
    assert.ok(!seen.accepts(counter), `${counter} was seen`);
  }
  assert.ok(!seen.accepts(976));
  assert.ok(!seen.accepts(5));
  assert.ok(seen.accepts(978));
  seen.mark(1_000_000);
  assert.ok(seen.accepts(999_999));
});
