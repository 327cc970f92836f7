// The wrap algorithms of protocol section 5, on WebCrypto: how 32 bytes reach only the owner of one key pair.

import { concat, utf8 } from './bytes.js';

export const HPKE = 'HPKE-P256-SHA256-AES256GCM';
const INFO = utf8('conclave-envelope-v2');
const none = new Uint8Array(0);
const curve = { name: 'ECDH', namedCurve: 'P-256' };
const POINT_BYTES = 65;
const LEAST_RSA_BITS = 2_048;

async function hmac(key, data) {
  // An empty key and one of zero bytes are equivalent for HMAC; WebCrypto accepts only the latter.
  const raw = key.length > 0 ? key : new Uint8Array(32);
  const imported = await crypto.subtle.importKey('raw', raw, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign']);
  return new Uint8Array(await crypto.subtle.sign('HMAC', imported, data));
}

// RFC 9180 section 4: labels bind each derived value to the suite and the purpose.
const kemSuite = concat(utf8('KEM'), Uint8Array.of(0, 16));
// AES-256-GCM in the contract; AES-128-GCM only for the vectors of the RFC.
export const AES_256_GCM = { id: 2, keyBytes: 32 };
const hpkeSuiteOf = ({ id }) => concat(utf8('HPKE'), Uint8Array.of(0, 16, 0, 1, 0, id));
const extract = (suite, salt, label, ikm) => hmac(salt, concat(utf8('HPKE-v1'), suite, utf8(label), ikm));
async function expand(suite, key, label, info, length) {
  const block = await hmac(key, concat(Uint8Array.of(0, length), utf8('HPKE-v1'), suite, utf8(label), info, Uint8Array.of(1)));
  return block.slice(0, length); // at most 32 bytes are requested: one block of HKDF
}

const BASE = 0;
const AUTH = 2;

/** The AEAD's key and nonce of a context's first message (RFC 9180 sections 4.1 and 5.1). `sender` is the sender's point in auth mode. */
async function hpkeContext({ points, enc, recipient, sender = none, info, aead = AES_256_GCM }) {
  const suite = hpkeSuiteOf(aead);
  const eae = await extract(kemSuite, none, 'eae_prk', points);
  const shared = await expand(kemSuite, eae, 'shared_secret', concat(enc, recipient, sender), 32);
  const pskID = await extract(suite, none, 'psk_id_hash', none);
  const mode = Uint8Array.of(sender.length > 0 ? AUTH : BASE);
  const context = concat(mode, pskID, await extract(suite, none, 'info_hash', info));
  const secret = await extract(suite, shared, 'secret', none);
  const key = await expand(suite, secret, 'key', context, aead.keyBytes);
  return {
    key: await crypto.subtle.importKey('raw', key, 'AES-GCM', false, ['encrypt', 'decrypt']),
    iv: await expand(suite, secret, 'base_nonce', context, 12),
  };
}

async function agree(privateKey, publicKey) {
  return new Uint8Array(await crypto.subtle.deriveBits({ name: 'ECDH', public: publicKey }, privateKey, 256));
}

const rawPoint = async (publicKey) => new Uint8Array(await crypto.subtle.exportKey('raw', publicKey));
const importSPKI = (spki) => crypto.subtle.importKey('spki', spki, curve, true, []);
const importPoint = (point) => crypto.subtle.importKey('raw', point, curve, true, []);

/**
 * enc ‖ ct for the owner of `spki`. With `sender`, a key pair, in auth mode: the recipient knows that its owner has sealed it, but can prove that to nobody.
 * `ephemeral` and `aead` are passed only by tests.
 *
 * @param {Uint8Array} spki
 * @param {Uint8Array} plaintext
 * @param {{info?: Uint8Array, aad?: Uint8Array, sender?: any, ephemeral?: any, aead?: any}} options
 */
export async function hpkeSeal(spki, plaintext, { info = INFO, aad = none, sender = undefined, ephemeral = undefined, aead = undefined } = {}) {
  const recipient = await importSPKI(spki);
  const pair = ephemeral ?? (await crypto.subtle.generateKey(curve, false, ['deriveBits']));
  const enc = await rawPoint(pair.publicKey);
  const points = concat(await agree(pair.privateKey, recipient), sender ? await agree(sender.privateKey, recipient) : none);
  const from = sender && (await rawPoint(sender.publicKey));
  const { key, iv } = await hpkeContext({ points, enc, recipient: await rawPoint(recipient), sender: from, info, aead });
  const ciphertext = await crypto.subtle.encrypt({ name: 'AES-GCM', iv, additionalData: aad }, key, plaintext);
  return concat(enc, new Uint8Array(ciphertext));
}

/**
 * Opens what `hpkeSeal` made for `pair`, with `sender`, an SPKI, by its owner; throws when it was made for or by another, or was changed.
 *
 * @param {CryptoKeyPair} pair
 * @param {Uint8Array} message
 * @param {{info?: Uint8Array, aad?: Uint8Array, sender?: Uint8Array, aead?: any}} options
 */
export async function hpkeOpen(pair, message, { info = INFO, aad = none, sender = undefined, aead = undefined } = {}) {
  const enc = message.slice(0, POINT_BYTES);
  const from = sender && (await importSPKI(sender));
  const shared = await agree(pair.privateKey, await importPoint(enc));
  const points = concat(shared, from ? await agree(pair.privateKey, from) : none);
  const recipient = await rawPoint(pair.publicKey);
  const { key, iv } = await hpkeContext({ points, enc, recipient, sender: from && (await rawPoint(from)), info, aead });
  const parameters = { name: 'AES-GCM', iv, additionalData: aad };
  return new Uint8Array(await crypto.subtle.decrypt(parameters, key, message.slice(POINT_BYTES)));
}

async function rsaSeal(spki, plaintext) {
  const key = await crypto.subtle.importKey('spki', spki, { name: 'RSA-OAEP', hash: 'SHA-256' }, false, ['encrypt']);
  const { modulusLength } = /** @type {RsaHashedKeyAlgorithm} */ (key.algorithm);
  if (modulusLength < LEAST_RSA_BITS) throw new RangeError('an RSA key that is too short');
  return new Uint8Array(await crypto.subtle.encrypt({ name: 'RSA-OAEP' }, key, plaintext));
}

/** Seals for an iPhone's Secure Enclave: eph ‖ ct ‖ tag, AES-128-GCM with a 16-byte IV, both from X9.63 with SHA-256. */
async function eciesSeal(spki, plaintext) {
  const pair = await crypto.subtle.generateKey(curve, false, ['deriveBits']);
  const point = await rawPoint(pair.publicKey);
  const shared = await agree(pair.privateKey, await importSPKI(spki));
  const block = new Uint8Array(await crypto.subtle.digest('SHA-256', concat(shared, Uint8Array.of(0, 0, 0, 1), point)));
  const key = await crypto.subtle.importKey('raw', block.subarray(0, 16), 'AES-GCM', false, ['encrypt']);
  const ciphertext = await crypto.subtle.encrypt({ name: 'AES-GCM', iv: block.subarray(16) }, key, plaintext);
  return concat(point, new Uint8Array(ciphertext));
}

const algorithms = { [HPKE]: (spki, secret) => hpkeSeal(spki, secret), 'RSA-OAEP-256': rsaSeal, 'ECIES-P256-X963-SHA256-AESGCM': eciesSeal };

export const canWrap = (alg) => Object.hasOwn(algorithms, alg);

/** Wraps `secret` to a public key; throws for an algorithm that `canWrap` rejects. */
export const wrap = (alg, spki, secret) => algorithms[alg](spki, secret);
