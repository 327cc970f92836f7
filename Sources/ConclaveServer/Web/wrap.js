// The wrap algorithms of protocol section 5, on WebCrypto: how 32 bytes reach one key pair's owner and nobody else.

import { concat, utf8 } from './bytes.js';

export const HPKE = 'HPKE-P256-SHA256-AES256GCM';
const INFO = utf8('conclave-envelope-v1');
const none = new Uint8Array(0);
const curve = { name: 'ECDH', namedCurve: 'P-256' };
const POINT_BYTES = 65;

async function hmac(key, data) {
  // An empty key and one of zero bytes are the same to HMAC; WebCrypto takes only the latter.
  const raw = key.length > 0 ? key : new Uint8Array(32);
  const imported = await crypto.subtle.importKey('raw', raw, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign']);
  return new Uint8Array(await crypto.subtle.sign('HMAC', imported, data));
}

// RFC 9180 section 4: labels bind each derived value to the suite and the purpose.
const kemSuite = concat(utf8('KEM'), Uint8Array.of(0, 16));
const hpkeSuite = concat(utf8('HPKE'), Uint8Array.of(0, 16, 0, 1, 0, 2));
const extract = (suite, salt, label, ikm) => hmac(salt, concat(utf8('HPKE-v1'), suite, utf8(label), ikm));
async function expand(suite, key, label, info, length) {
  const block = await hmac(key, concat(Uint8Array.of(0, length), utf8('HPKE-v1'), suite, utf8(label), info, Uint8Array.of(1)));
  return block.slice(0, length); // 32 bytes at most are asked for: one block of HKDF
}

/** AES-256-GCM parameters of an HPKE base-mode context for its first message (RFC 9180 sections 4.1 and 5.1). */
async function hpkeContext(sharedPoint, enc, recipient, info) {
  const eae = await extract(kemSuite, none, 'eae_prk', sharedPoint);
  const shared = await expand(kemSuite, eae, 'shared_secret', concat(enc, recipient), 32);
  const pskID = await extract(hpkeSuite, none, 'psk_id_hash', none);
  const context = concat(Uint8Array.of(0), pskID, await extract(hpkeSuite, none, 'info_hash', info));
  const secret = await extract(hpkeSuite, shared, 'secret', none);
  const key = await expand(hpkeSuite, secret, 'key', context, 32);
  return {
    key: await crypto.subtle.importKey('raw', key, 'AES-GCM', false, ['encrypt', 'decrypt']),
    iv: await expand(hpkeSuite, secret, 'base_nonce', context, 12),
  };
}

async function agree(privateKey, publicKey) {
  return new Uint8Array(await crypto.subtle.deriveBits({ name: 'ECDH', public: publicKey }, privateKey, 256));
}

const rawPoint = async (publicKey) => new Uint8Array(await crypto.subtle.exportKey('raw', publicKey));
const importSPKI = (spki) => crypto.subtle.importKey('spki', spki, curve, true, []);
const importPoint = (point) => crypto.subtle.importKey('raw', point, curve, true, []);

/** enc ‖ ct; `ephemeral` is given by tests alone. */
export async function hpkeSeal(spki, plaintext, info = INFO, aad = none, ephemeral = undefined) {
  const recipient = await importSPKI(spki);
  const pair = ephemeral ?? (await crypto.subtle.generateKey(curve, false, ['deriveBits']));
  const enc = await rawPoint(pair.publicKey);
  const { key, iv } = await hpkeContext(await agree(pair.privateKey, recipient), enc, await rawPoint(recipient), info);
  const ciphertext = await crypto.subtle.encrypt({ name: 'AES-GCM', iv, additionalData: aad }, key, plaintext);
  return concat(enc, new Uint8Array(ciphertext));
}

/** Opens what `hpkeSeal` made for `pair`; throws when it was made for another or was changed. */
export async function hpkeOpen(pair, message, info = INFO, aad = none) {
  const enc = message.slice(0, POINT_BYTES);
  const shared = await agree(pair.privateKey, await importPoint(enc));
  const { key, iv } = await hpkeContext(shared, enc, await rawPoint(pair.publicKey), info);
  const parameters = { name: 'AES-GCM', iv, additionalData: aad };
  return new Uint8Array(await crypto.subtle.decrypt(parameters, key, message.slice(POINT_BYTES)));
}

async function rsaSeal(spki, plaintext) {
  const key = await crypto.subtle.importKey('spki', spki, { name: 'RSA-OAEP', hash: 'SHA-256' }, false, ['encrypt']);
  return new Uint8Array(await crypto.subtle.encrypt({ name: 'RSA-OAEP' }, key, plaintext));
}

/** What an iPhone's Secure Enclave opens: eph ‖ ct ‖ tag, AES-128-GCM with a 16-byte IV, both from X9.63 with SHA-256. */
async function eciesSeal(spki, plaintext) {
  const pair = await crypto.subtle.generateKey(curve, false, ['deriveBits']);
  const point = await rawPoint(pair.publicKey);
  const shared = await agree(pair.privateKey, await importSPKI(spki));
  const block = new Uint8Array(await crypto.subtle.digest('SHA-256', concat(shared, Uint8Array.of(0, 0, 0, 1), point)));
  const key = await crypto.subtle.importKey('raw', block.subarray(0, 16), 'AES-GCM', false, ['encrypt']);
  const ciphertext = await crypto.subtle.encrypt({ name: 'AES-GCM', iv: block.subarray(16) }, key, plaintext);
  return concat(point, new Uint8Array(ciphertext));
}

const algorithms = { [HPKE]: hpkeSeal, 'RSA-OAEP-256': rsaSeal, 'ECIES-P256-X963-SHA256-AESGCM': eciesSeal };

export const canWrap = (alg) => Object.hasOwn(algorithms, alg);

/** Wraps `secret` to a public key; throws for an algorithm that `canWrap` denies. */
export const wrap = (alg, spki, secret) => algorithms[alg](spki, secret);
