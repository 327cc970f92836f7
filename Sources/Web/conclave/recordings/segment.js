// A segment's file: a header of 96 bytes and records, which are sealed in a reel that a device writes. The header has the hash of the file before, so a reel is a
// chain, and it is authenticated with the records.

import { idBytes } from '../consent/index.js';
import { MAX_NUMBER, Refusal, concat, isWhole, sha256, toHex, u32, u64 } from '../wire/index.js';

/** The number of the only reel in a recording that a device makes. */
export const REEL = 1;
export const MAX_SEGMENT = 8 * 1_048_576; // bytes of a file
export const MAX_SEGMENTS = 131_072; // of a reel: three days of 2 s
export const MIN_SEALED = 112; // bytes of a sealed file without a record
export const NO_SEGMENT = new Uint8Array(32); // `previous` of segment 0
export const HEADER = 96; // bytes
const TAG = 16;
const MAX_N = 2 ** 31;
const MAGIC = [0x43, 0x52, 0x45, 0x43, 1]; // "CREC", version 1
const SEALED = 1;

const isZero = (bytes) => bytes.every((byte) => byte === 0);

/** `id` is the recording's, `start` µs since 1970, `previous` the hash of the file before; `nonce` only of a sealed segment. */
function headerBytes({ id, reel, n, start, previous, nonce }) {
  const fixed = Uint8Array.of(...MAGIC, SEALED, 0, HEADER);
  return concat(fixed, idBytes(id), u32(reel), u32(n), u64(start), previous, nonce, new Uint8Array(12));
}

/** `{isSealed, id, reel, n, start, previous, nonce}` of a file; `id` as 32 hexadecimal digits. Throws for anything else than version 1. */
export function parseHeader(file) {
  if (file.length < HEADER || file.length > MAX_SEGMENT) throw new Refusal(`a segment of ${file.length} bytes`);
  const view = new DataView(file.buffer, file.byteOffset, HEADER);
  const flags = file[5];
  if (MAGIC.some((byte, at) => file[at] !== byte) || flags > SEALED || view.getUint16(6) !== HEADER) throw new Refusal('a segment of another form');
  const [reel, n, start] = [view.getUint32(24), view.getUint32(28), Number(view.getBigUint64(32))];
  const [previous, nonce] = [file.slice(40, 72), file.slice(72, 84)];
  const isSealed = flags === SEALED;
  if (!isWhole(reel, 1, MAX_NUMBER) || !isWhole(n, 0, MAX_N) || !Number.isSafeInteger(start)) throw new Refusal('a segment with a wrong number');
  if (!isZero(file.subarray(84, HEADER)) || (!isSealed && !isZero(nonce)) || (n === 0 && !isZero(previous))) throw new Refusal('a segment with a wrong header');
  return { isSealed, id: toHex(file.subarray(8, 24)), reel, n, start, previous, nonce };
}

/**
 * `{file, hash}` of a sealed segment. `chainKey` is that of its number, `records` the bytes of its records with the end. `nonce` are 12 random bytes.
 * A number is sealed once: whoever calls this stores the file together with the next chain key, and forgets this one.
 */
export async function sealSegment(chainKey, records, { start, previous, nonce }) {
  const header = headerBytes({ id: chainKey.id, reel: chainKey.reel, n: chainKey.n, start, previous, nonce });
  if (HEADER + records.length + TAG > MAX_SEGMENT) throw new RangeError('a segment of more than 8 MiB');
  const key = await chainKey.segmentKey('encrypt');
  const sealed = await crypto.subtle.encrypt({ name: 'AES-GCM', iv: nonce, additionalData: header }, key, records);
  const file = concat(header, new Uint8Array(sealed));
  return { file, hash: await sha256(file) };
}

/** The bytes of the records in `file`, whose parsed header is `header`. Throws if it was not sealed under `chainKey`, or was changed. */
export async function openSegment(file, header, chainKey) {
  const key = await chainKey.segmentKey('decrypt');
  const parameters = { name: 'AES-GCM', iv: header.nonce, additionalData: file.subarray(0, HEADER) };
  try {
    return new Uint8Array(await crypto.subtle.decrypt(parameters, key, file.subarray(HEADER)));
  } catch {
    throw new Refusal('a segment that does not open');
  }
}
