import assert from 'node:assert/strict';
import { createECDH, createPrivateKey, privateDecrypt, constants, createHash, createDecipheriv } from 'node:crypto';
import { test } from 'node:test';
import { bytes, hex, load, vectors } from './web.mjs';

const { hpkeOpen, hpkeSeal, wrap } = await load('wire/wrap.js');
const vector = vectors('hpke.json');
const curve = { name: 'ECDH', namedCurve: 'P-256' };

/** A key pair from its private scalar, which WebCrypto imports as a JWK. */
async function pairOf(scalar) {
  const ecdh = createECDH('prime256v1');
  ecdh.setPrivateKey(Buffer.from(scalar, 'hex'));
  const point = ecdh.getPublicKey();
  const part = (from) => point.subarray(from, from + 32).toString('base64url');
  const jwk = { kty: 'EC', crv: 'P-256', x: part(1), y: part(33), d: Buffer.from(scalar, 'hex').toString('base64url') };
  return {
    privateKey: await crypto.subtle.importKey('jwk', jwk, curve, false, ['deriveBits']),
    publicKey: await crypto.subtle.importKey('raw', point, curve, true, []),
  };
}

const spkiOf = async (key) => new Uint8Array(await crypto.subtle.exportKey('spki', key));

test('the HPKE vector is sealed and opened', async () => {
  const recipient = await pairOf(vector.skR);
  const ephemeral = await pairOf(vector.skE);
  const [plaintext, info, aad] = [vector.pt, vector.info, vector.aad].map(bytes);
  const sealed = await hpkeSeal(await spkiOf(recipient.publicKey), plaintext, { info, aad, ephemeral });
  assert.equal(hex(sealed), vector.enc + vector.ct);
  assert.equal(hex(await hpkeOpen(recipient, sealed, { info, aad })), vector.pt);
});

test('an HPKE message that was changed, truncated or made for another key does not open', async () => {
  const [bob, carol] = await Promise.all([1, 2].map(() => crypto.subtle.generateKey(curve, false, ['deriveBits'])));
  const sealed = await hpkeSeal(await spkiOf(bob.publicKey), new Uint8Array(32));
  await assert.rejects(() => hpkeOpen(carol, sealed));
  for (const cut of [0, 64, 65, 80]) await assert.rejects(() => hpkeOpen(bob, sealed.slice(0, cut)));
  for (const at of [0, 40, 70, sealed.length - 1]) {
    const changed = Uint8Array.from(sealed);
    changed[at] ^= 1;
    await assert.rejects(() => hpkeOpen(bob, changed));
  }
});

test('OpenSSL opens a secret wrapped to an RSA key', async () => {
  const algorithm = { name: 'RSA-OAEP', modulusLength: 2048, publicExponent: bytes('010001'), hash: 'SHA-256' };
  const pair = await crypto.subtle.generateKey(algorithm, true, ['encrypt', 'decrypt']);
  const pkcs8 = Buffer.from(await crypto.subtle.exportKey('pkcs8', pair.privateKey));
  const key = createPrivateKey({ key: pkcs8, format: 'der', type: 'pkcs8' });
  const secret = new Uint8Array(32).fill(5);
  const sealed = await wrap('RSA-OAEP-256', await spkiOf(pair.publicKey), secret);
  const options = { key, padding: constants.RSA_PKCS1_OAEP_PADDING, oaepHash: 'sha256' };
  assert.deepEqual(new Uint8Array(privateDecrypt(options, sealed)), secret);
});

test('a key wrapped by ECIES opens as on an iPhone', async () => {
  const scalar = hex(new Uint8Array(32).fill(3));
  const pair = await pairOf(scalar);
  const sealed = Buffer.from(await wrap('ECIES-P256-X963-SHA256-AESGCM', await spkiOf(pair.publicKey), bytes('0102')));
  const ecdh = createECDH('prime256v1');
  ecdh.setPrivateKey(Buffer.from(scalar, 'hex'));
  const point = sealed.subarray(0, 65);
  const block = createHash('sha256').update(ecdh.computeSecret(point)).update(bytes('00000001')).update(point).digest();
  const cipher = createDecipheriv('aes-128-gcm', block.subarray(0, 16), block.subarray(16));
  cipher.setAuthTag(sealed.subarray(-16));
  assert.equal(hex(Buffer.concat([cipher.update(sealed.subarray(65, -16)), cipher.final()])), '0102');
});
