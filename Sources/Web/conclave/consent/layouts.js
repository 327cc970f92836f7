// The byte layouts of recordings that are signed, or to which something is sealed. `st` is the hash of the statement's bytes: each other layout contains it, and
// so is bound to the key, the readers, the starter and the call.

import { callIDIn, concat, lp, sha256, u32, u64, utf8 } from '../wire/index.js';

export const KINDS = { call: 1, message: 2, own: 3 };
export const MEDIA = { audio: 1, video: 2, screen: 4 };
/** `info` of HPKE for what is sealed to a recording's key. */
export const REEL_KEY_INFO = utf8('conclave-reel-key-v1');
export const NOTE_INFO = utf8('conclave-note-v1');

/** The 16 bytes of a recording's id, a random UUID. */
export const idBytes = (id) => Uint8Array.from(callIDIn(id).replaceAll('-', '').match(/../g) ?? [], (pair) => parseInt(pair, 16));

const u16 = (number) => Uint8Array.of(number >> 8, number & 255);
const ascending = (texts) => [...texts].sort((a, b) => (a < b ? -1 : 1)); // ids are ASCII: the order of their bytes

export const statementBytes = ({ id, kind, call = '', by, fingerprint, at, media, publicKey, readers }) => {
  const allMedia = media.reduce((sum, name) => sum + MEDIA[name], 0);
  const fields = [idBytes(id), Uint8Array.of(KINDS[kind]), lp(call), lp(by.user), lp(by.device), fingerprint, u64(at), Uint8Array.of(allMedia), lp(publicKey)];
  return concat(utf8('conclave-recording-v1'), ...fields, u16(readers.length), ...ascending(readers).map(lp));
};

/** The additional data under which a reel's first key is sealed. */
export const reelKeyData = ({ st, reel, fingerprint }) => concat(st, u32(reel), fingerprint);

export const reelKeyBytes = async ({ st, reel, fingerprint, ciphertext }) => concat(REEL_KEY_INFO, reelKeyData({ st, reel, fingerprint }), await sha256(ciphertext));

export const grantInfo = (id) => concat(utf8('conclave-grant-v1'), idBytes(id));

/** `to.device` is missing in a grant for a user's reading key. `key` is the hash of the public key to which it is sealed. */
export const grantBytes = async ({ st, from, to, alg, key, at, ciphertext }) => {
  const names = [from.user, from.device, to.user, to.device ?? '', alg].map(lp);
  return concat(utf8('conclave-grant-v1'), st, ...names, key, u64(at), await sha256(ciphertext));
};

/** `head` is the hash of the newest of `segments` segments. */
export const witnessBytes = ({ st, reel, segments, head, at, isEnd }) =>
  concat(utf8('conclave-witness-v1'), st, u32(reel), u32(segments), head, u64(at), Uint8Array.of(isEnd ? 1 : 0));

export const noteData = ({ st, number }) => concat(st, u32(number));

export const noteBytes = async ({ st, number, ciphertext }) => concat(NOTE_INFO, noteData({ st, number }), await sha256(ciphertext));

/** A segment's place, as it is named in the derivations of its reel's keys. */
const placeOf = ({ reel, n }) => concat(u32(reel), u32(n));
export const segmentKeyInfo = (place) => concat(utf8('conclave-segment-v1'), placeOf(place));
export const nextKeyInfo = (place) => concat(utf8('conclave-next-segment-v1'), placeOf(place));
