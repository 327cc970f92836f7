// Bytes in the protocol's form: length prefixes, big-endian numbers, strict base64.

const encoder = new TextEncoder();

export const utf8 = (text) => encoder.encode(text);

export function concat(...parts) {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let offset = 0;
  for (const part of parts) {
    whole.set(part, offset);
    offset += part.length;
  }
  return whole;
}

/** `lp(x)` of protocol section 5: x preceded by its length in 2 bytes. Text counts as its UTF-8. */
export function lp(x) {
  const bytes = typeof x === 'string' ? utf8(x) : x;
  if (bytes.length > 0xffff) throw new RangeError('lp: more than 65,535 bytes');
  return concat(Uint8Array.of(bytes.length >> 8, bytes.length & 255), bytes);
}

export function u32(number) {
  if (!Number.isInteger(number) || number < 0 || number > 0xffff_ffff) throw new RangeError('u32: not a whole number from 0 to 2^32 - 1');
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, number);
  return bytes;
}

/** `u64` of a whole number from 0 to 2^53 - 1. */
export function u64(number) {
  if (!Number.isSafeInteger(number) || number < 0) throw new RangeError('u64: not a whole number from 0 to 2^53 - 1');
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(number));
  return bytes;
}

export function toBase64(bytes) {
  let text = '';
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text);
}

const canonical = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$/;

/** RFC 4648 section 4 with padding; anything else throws. */
export function fromBase64(text) {
  if (typeof text !== 'string' || !canonical.test(text)) throw new TypeError('base64 with padding is wanted');
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}

export const toHex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');

export function equal(a, b) {
  return a.length === b.length && a.every((byte, index) => byte === b[index]);
}

export const sha256 = async (bytes) => new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));

export const random = (count) => crypto.getRandomValues(new Uint8Array(count));
