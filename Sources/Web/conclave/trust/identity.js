// This device's keys, and the signatures and fingerprints of any device (protocol section 5, "Device").

import { HPKE, concat, fromBase64, lp, sha256, toBase64, toHex, utf8 } from '../wire/index.js';

const SIGN = 'ES256';
const FORGET_AFTER_MS = 60 * 24 * 3_600_000; // a device that was not used for 60 days
const ecdh = { name: 'ECDH', namedCurve: 'P-256' };
const ecdsa = { name: 'ECDSA', namedCurve: 'P-256' };

/** `keys` as in the protocol: one entry for `wrap`, one for `sign`, base64. */
export function fingerprintOf(user, device, keys) {
  const wrap = keys.find((key) => key.use === 'wrap');
  const sign = keys.find((key) => key.use === 'sign');
  if (!wrap || !sign) throw new TypeError('a device has a wrap and a sign key');
  const fields = [user, device, wrap.alg, fromBase64(wrap.publicKey), sign.alg, fromBase64(sign.publicKey)];
  return sha256(concat(utf8('conclave-device-v1'), ...fields.map(lp)));
}

export const spkiOf = async (pair) => new Uint8Array(await crypto.subtle.exportKey('spki', pair.publicKey));

const verifiers = {
  ES256: [ecdsa, { name: 'ECDSA', hash: 'SHA-256' }],
  PS256: [{ name: 'RSA-PSS', hash: 'SHA-256' }, { name: 'RSA-PSS', saltLength: 32 }],
  EdDSA: [{ name: 'Ed25519' }, { name: 'Ed25519' }],
};

/** Whether `signature` over `data` was made by the `sign` key among `keys`; an unknown algorithm verifies nothing. */
export async function isSignedBy(keys, sigAlg, signature, data) {
  const sign = keys.find((key) => key.use === 'sign');
  const verifier = verifiers[sigAlg];
  if (!sign || !verifier || sign.alg !== sigAlg) return false;
  try {
    const key = await crypto.subtle.importKey('spki', fromBase64(sign.publicKey), verifier[0], false, ['verify']);
    return await crypto.subtle.verify(verifier[1], key, signature, data);
  } catch {
    return false;
  }
}

/** This device. Its private keys never leave WebCrypto. */
export class Identity {
  user;
  device;
  wrap;
  keys;
  fingerprint;
  /** The keys were just created. */
  isNew = false;
  #sign;

  static async open(store, user, device) {
    const name = `${user}/${device}`;
    let kept = await store.get('identities', name);
    const isNew = !kept;
    if (!kept) {
      kept = {
        wrap: await crypto.subtle.generateKey(ecdh, false, ['deriveBits']),
        sign: await crypto.subtle.generateKey(ecdsa, false, ['sign', 'verify']),
      };
    }
    await store.put('identities', name, { ...kept, lastUsed: Date.now() });
    store.prune('identities', Date.now() - FORGET_AFTER_MS);
    const identity = new Identity();
    identity.isNew = isNew;
    identity.user = user;
    identity.device = device;
    identity.wrap = kept.wrap;
    identity.#sign = kept.sign;
    identity.keys = [
      { use: 'wrap', alg: HPKE, publicKey: toBase64(await spkiOf(kept.wrap)) },
      { use: 'sign', alg: SIGN, publicKey: toBase64(await spkiOf(kept.sign)) },
    ];
    identity.fingerprint = await fingerprintOf(user, device, identity.keys);
    return identity;
  }

  /** `{sigAlg, signature}` over `data`. */
  async sign(data) {
    const signature = await crypto.subtle.sign({ name: 'ECDSA', hash: 'SHA-256' }, this.#sign.privateKey, data);
    return { sigAlg: SIGN, signature: new Uint8Array(signature) };
  }
}

/** A fingerprint, base64, in a form for people: 8 groups of 8 hexadecimal digits. */
export const readable = (fingerprint) => toHex(fromBase64(fingerprint)).replace(/.{8}(?=.)/g, '$& ');

export const sameDevice = (a, b) => a.user === b.user && a.device === b.device;
