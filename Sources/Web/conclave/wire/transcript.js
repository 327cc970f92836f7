// The byte layouts of protocol section 5: lists and their chain, signatures, the call code, everything derived from an epoch's secret, and the key ids of frames.

import { concat, fromBase64, lp, sha256, u32, u64, utf8 } from './bytes.js';
import { MAX_NUMBER, MAX_TRACK, isWhole } from './checks.js';

export const SECRET_BYTES = 32;
export const TAG_BYTES = 16;
/** A secret has 32 bytes and is random: zeros are bytes that were overwritten. */
export const isSecret = (bytes) => bytes.length === SECRET_BYTES && bytes.some((byte) => byte !== 0);

export const NO_LIST = new Uint8Array(32); // `previous` of epoch 1

export const byUserThenDevice = (a, b) =>
  a.user < b.user ? -1 : a.user > b.user ? 1 : a.device < b.device ? -1 : a.device > b.device ? 1 : 0;

const hashes = new WeakMap(); // of join keys: an entry stays on many lists

function hashOfKey(joinKey) {
  if (!hashes.has(joinKey)) hashes.set(joinKey, sha256(fromBase64(joinKey.publicKey)));
  return hashes.get(joinKey);
}

/** One entry of a list as bytes. */
export async function entryBytes({ user, device, participant, fingerprint, joinId, joinKey }) {
  return concat(
    lp(user),
    lp(device),
    u32(participant),
    fromBase64(fingerprint),
    joinId ? fromBase64(joinId) : new Uint8Array(16),
    joinKey ? await hashOfKey(joinKey) : new Uint8Array(32),
  );
}

/** The hash of the entries of a sorted list. */
export async function rosterHashOf(list) {
  const rows = await Promise.all(list.map(entryBytes));
  return sha256(concat(utf8('conclave-roster-v2'), u32(list.length), ...rows));
}

/** The hash of an epoch's list, chained to that of the previously announced epoch. */
export const listHashOf = ({ call, epoch, previous, roster }) =>
  sha256(concat(utf8('conclave-list-v2'), lp(call), u32(epoch), previous, roster));

/** The 40 digits that are the same on all honest screens. */
export async function callCodeOf(call, roster) {
  const digest = await sha256(concat(utf8('conclave-code-v2'), lp(call), roster));
  const number = digest.reduce((value, byte) => (value << 8n) | BigInt(byte), 0n);
  return (number % 10n ** 40n).toString().padStart(40, '0');
}

/** The bytes that the signature of a join key covers. */
export const joinBytes = ({ call, fingerprint, joinId, generation, at, alg, spki }) =>
  concat(utf8('conclave-join-v2'), lp(call), fingerprint, joinId, u32(generation), u64(at), lp(alg), lp(spki));

/** The bytes that an envelope's signature covers. `key` is the hash of the public key to which it is sealed. */
export async function envelopeBytes({ call, epoch, from, to, alg, key, ciphertext, listHash }) {
  const names = [from.user, from.device, to.user, to.device, alg].map(lp);
  return concat(utf8('conclave-envelope-v2'), lp(call), u32(epoch), ...names, key, await sha256(ciphertext), listHash);
}

/** HKDF-SHA-512 of an epoch's secret with the call's id as salt. */
async function derive(secret, call, info, length) {
  const parameters = { name: 'HKDF', hash: 'SHA-512', salt: utf8(call), info };
  return new Uint8Array(await crypto.subtle.deriveBits(parameters, secret, length * 8));
}

/** A secret as a key that only derives. */
export const importSecret = (secret) => crypto.subtle.importKey('raw', secret, 'HKDF', false, ['deriveBits']);

/** The secret of the next epoch, for everybody who has this one's. It is bound to the next list: another list yields another secret. */
export const ratchet = async (secret, { call, epoch, listHash }) =>
  derive(await importSecret(secret), call, concat(utf8('conclave-ratchet-v2'), u32(epoch), listHash), SECRET_BYTES);

/** SFrame's `base_key` of one participant. `secret` is a key that derives. */
export const baseKeyOf = (secret, { call, epoch, listHash }, { participant, fingerprint, joinId }) =>
  derive(secret, call, concat(utf8('conclave-sender-v2'), u32(epoch), listHash, u32(participant), fingerprint, joinId), 64);

/** The key of an epoch's confirmations: it only makes tags. */
export async function confirmationKeyOf(secret, { call, epoch, listHash }) {
  const info = concat(utf8('conclave-confirm-v2'), u32(epoch), listHash);
  const raw = await derive(await importSecret(secret), call, info, 32);
  const key = await crypto.subtle.importKey('raw', raw, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign']);
  raw.fill(0);
  return key;
}

/** An entry's confirmation of the secret and the list from which `key` was made. */
export async function tagOf(key, { participant, fingerprint, joinId }) {
  const data = concat(u32(participant), fromBase64(fingerprint), fromBase64(joinId));
  return new Uint8Array(await crypto.subtle.sign('HMAC', key, data)).slice(0, TAG_BYTES);
}

/** KID = participant × 65536 + n × 256 + epoch mod 256 (protocol section 5, "Sender keys"). */
export function kidOf(participant, n, epoch) {
  if (!isWhole(participant, 1, MAX_NUMBER) || !isWhole(n, 0, MAX_TRACK) || !isWhole(epoch, 1, MAX_NUMBER)) {
    throw new RangeError('kidOf: participant 1 to 2^32 - 1, n 0 to 255, epoch 1 to 2^32 - 1');
  }
  return participant * 65536 + n * 256 + (epoch % 256);
}

export function partsOf(kid) {
  return { participant: Math.floor(kid / 65536), n: Math.floor(kid / 256) % 256, epochByte: kid % 256 };
}

/** `info` of HPKE for the keys of a participant's own tracks. */
export const TRACK_KEY_INFO = utf8('conclave-track-key-v1');

/** The data to which track keys are bound (protocol section 13.1): `st` of a recording's statement, an epoch, a participant, and the numbers of its tracks, ascending. */
export const trackKeyContext = ({ st, epoch, listHash, participant, fingerprint, joinId, tracks }) =>
  concat(st, u32(epoch), listHash, u32(participant), fingerprint, joinId, Uint8Array.of(tracks.length, ...tracks));

/** The bytes that the signature of track keys covers. */
export const trackKeyBytes = async (context, ciphertext) => concat(TRACK_KEY_INFO, context, await sha256(ciphertext));
