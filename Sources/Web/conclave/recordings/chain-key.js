// The keys of a reel that a device writes. Each segment has its own, and the key from which the next are made replaces the one before: whoever takes the device
// cannot open the segments that it has sealed.

import { REEL_KEY_INFO, idBytes, nextKeyInfo, reelKeyBytes, reelKeyData, segmentKeyInfo } from '../consent/index.js';
import { isSignedBy } from '../trust/index.js';
import { Refusal, hpkeOpen, hpkeSeal, toBase64 } from '../wire/index.js';

const KEY_BYTES = 32;

/** A key from which the key of segment `n` and the next chain key are made. `key` is a WebCrypto key that only derives, and can be stored as it is. */
export class ChainKey {
  constructor({ id, reel, n, key }) {
    this.id = id;
    this.reel = reel;
    this.n = n;
    this.key = key;
  }

  /** The chain key of segment 0. `bytes` are wiped. */
  static async begin(bytes, { id, reel }) {
    return new ChainKey({ id, reel, n: 0, key: await importChainKey(bytes) });
  }

  #parameters(info) {
    return { name: 'HKDF', hash: 'SHA-512', salt: idBytes(this.id), info };
  }

  /** The AES key of segment `n`. `usage` is `encrypt` or `decrypt`. */
  segmentKey(usage) {
    const aes = { name: 'AES-GCM', length: KEY_BYTES * 8 };
    return crypto.subtle.deriveKey(this.#parameters(segmentKeyInfo(this)), this.key, aes, false, [usage]);
  }

  /** The chain key of segment `n` + 1. */
  async next() {
    const bytes = new Uint8Array(await crypto.subtle.deriveBits(this.#parameters(nextKeyInfo(this)), this.key, KEY_BYTES * 8));
    return new ChainKey({ id: this.id, reel: this.reel, n: this.n + 1, key: await importChainKey(bytes) });
  }
}

async function importChainKey(bytes) {
  const key = await crypto.subtle.importKey('raw', bytes, 'HKDF', false, ['deriveKey', 'deriveBits']);
  bytes.fill(0);
  return key;
}

/** The chain key `bytes` of segment 0, sealed to the recording key `publicKey` and signed by this device. */
export async function sealReelKey(identity, bytes, { st, reel, publicKey }) {
  const scope = { st, reel, fingerprint: identity.fingerprint };
  const ciphertext = await hpkeSeal(publicKey, bytes, { info: REEL_KEY_INFO, aad: reelKeyData(scope) });
  const { sigAlg, signature } = await identity.sign(await reelKeyBytes({ ...scope, ciphertext }));
  return { ciphertext: toBase64(ciphertext), sigAlg, signature: toBase64(signature) };
}

/**
 * The chain key of segment 0 of a reel, whose device has `keys` and `fingerprint`, and has signed it. `ciphertext` and `signature` are bytes, `pair` is the
 * recording's key pair.
 */
export async function openReelKey({ ciphertext, sigAlg, signature }, { id, st, reel, pair, keys, fingerprint }) {
  const scope = { st, reel, fingerprint };
  if (!(await isSignedBy(keys, sigAlg, signature, await reelKeyBytes({ ...scope, ciphertext })))) throw new Refusal('a reel key with a wrong signature');
  const bytes = await hpkeOpen(pair, ciphertext, { info: REEL_KEY_INFO, aad: reelKeyData(scope) }).catch(() => undefined);
  if (bytes?.length !== KEY_BYTES) throw new Refusal('a reel key that does not open');
  return ChainKey.begin(bytes, { id, reel });
}
