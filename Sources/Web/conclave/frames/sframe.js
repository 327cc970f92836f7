// SFrame (RFC 9605): header, keys and AEAD of suites 4 and 5, on WebCrypto.

import { concat, u64, utf8 } from '../wire/index.js';

const suites = {
  4: { hash: 'SHA-256', keyBytes: 16 }, // AES_128_GCM_SHA256_128
  5: { hash: 'SHA-512', keyBytes: 32 }, // AES_256_GCM_SHA512_128
};
export const SUITE = 5;
export const TAG_BYTES = 16;

/** Not an SFrame, or one that does not open. `reason` is one of: header, own, attribution, unknown-key, replay, authentication. */
export class SFrameError extends Error {
  constructor(reason) {
    super(`SFrame: ${reason}`);
    this.reason = reason;
  }
}

function minimalBytes(number) {
  const bytes = [];
  for (let rest = number; rest > 0n; rest >>= 8n) bytes.unshift(Number(rest & 255n));
  return bytes;
}

/** Writes the header of RFC 9605 section 4.3. Both numbers are BigInts below 2^64. */
export function encodeHeader(kid, counter) {
  const kidBytes = kid < 8n ? [] : minimalBytes(kid);
  const counterBytes = counter < 8n ? [] : minimalBytes(counter);
  const config =
    (kid < 8n ? Number(kid) << 4 : 0x80 | ((kidBytes.length - 1) << 4)) |
    (counter < 8n ? Number(counter) : 0x08 | (counterBytes.length - 1));
  return Uint8Array.from([config, ...kidBytes, ...counterBytes]);
}

/** Reads a header; numbers in a longer form than necessary are refused, so that each has only one form. */
export function parseHeader(bytes) {
  if (bytes.length === 0) throw new SFrameError('header');
  const config = bytes[0];
  let offset = 1;
  const read = (isExtended, value) => {
    if (!isExtended) return BigInt(value);
    const length = value + 1;
    if (bytes.length < offset + length || bytes[offset] === 0) throw new SFrameError('header');
    let number = 0n;
    for (let i = 0; i < length; i += 1) number = (number << 8n) | BigInt(bytes[offset + i]);
    offset += length;
    if (number < 8n) throw new SFrameError('header');
    return number;
  };
  const kid = read(config & 0x80, (config >> 4) & 7);
  const counter = read(config & 0x08, config & 7);
  return { kid, counter, length: offset };
}

/**
 * The bytes of the key and the salt of one KID (RFC 9605 section 4.4.2).
 * @param {BufferSource} baseKey
 * @param {number | bigint} kid
 */
export async function keyBytesOf(baseKey, kid, suite = SUITE) {
  const { hash, keyBytes } = suites[suite];
  const source = await crypto.subtle.importKey('raw', baseKey, 'HKDF', false, ['deriveBits']);
  const expand = async (label, length) => {
    const info = concat(utf8(label), u64(Number(kid)), Uint8Array.of(suite >> 8, suite & 255));
    const parameters = { name: 'HKDF', hash, salt: new Uint8Array(0), info };
    return new Uint8Array(await crypto.subtle.deriveBits(parameters, source, length * 8));
  };
  return { key: await expand('SFrame 1.0 Secret key ', keyBytes), salt: await expand('SFrame 1.0 Secret salt ', 12) };
}

/**
 * The key and salt of one KID. `usages`: a key that seals does not open.
 * @param {BufferSource} baseKey
 * @param {number | bigint} kid
 * @param {{ suite?: number, usages?: KeyUsage[] }} options
 */
export async function deriveKey(baseKey, kid, { suite = SUITE, usages = ['encrypt', 'decrypt'] } = {}) {
  const bytes = await keyBytesOf(baseKey, kid, suite);
  const key = await crypto.subtle.importKey('raw', bytes.key, 'AES-GCM', false, usages);
  bytes.key.fill(0);
  return { kid, key, salt: bytes.salt };
}

function gcm(salt, counter, header, metadata) {
  const iv = Uint8Array.from(salt);
  for (let i = 11, rest = counter; rest > 0n; i -= 1, rest >>= 8n) iv[i] ^= Number(rest & 255n);
  return { name: 'AES-GCM', iv, additionalData: concat(header, metadata), tagLength: TAG_BYTES * 8 };
}

/** header ‖ ciphertext ‖ tag. The caller never uses a counter twice. */
export async function seal({ kid, key, salt }, counter, metadata, plaintext) {
  const header = encodeHeader(kid, counter);
  const ciphertext = await crypto.subtle.encrypt(gcm(salt, counter, header, metadata), key, plaintext);
  return concat(header, new Uint8Array(ciphertext));
}

/** The plaintext of `sframe`, whose header was parsed to `header`. */
export async function open({ key, salt }, header, metadata, sframe) {
  if (sframe.length < header.length + TAG_BYTES) throw new SFrameError('header');
  const parameters = gcm(salt, header.counter, sframe.subarray(0, header.length), metadata);
  try {
    return new Uint8Array(await crypto.subtle.decrypt(parameters, key, sframe.subarray(header.length)));
  } catch {
    throw new SFrameError('authentication');
  }
}

const WINDOW = 1024;

/** Which counters of one KID were seen: a window of 1,024 behind the highest, or less. */
export class ReplayWindow {
  #highest = -1;
  #seen = new Uint8Array(WINDOW);

  /** Whether `counter` is new, at most `behind` behind the highest, and at most `reach` beyond it. */
  accepts(counter, reach = Infinity, behind = WINDOW - 1) {
    if (counter > this.#highest) return counter - this.#highest <= reach;
    return this.#highest - counter <= Math.min(behind, WINDOW - 1) && this.#seen[counter % WINDOW] === 0;
  }

  /** Only for a counter whose frame opened: a forged one must not move the window. */
  mark(counter) {
    if (counter > this.#highest) {
      const steps = Math.min(counter - this.#highest, WINDOW);
      for (let i = 0; i < steps; i += 1) this.#seen[(counter - i) % WINDOW] = 0;
      this.#highest = counter;
    }
    this.#seen[counter % WINDOW] = 1;
  }
}
