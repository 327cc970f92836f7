// A recording's statement: what the starter's device signed about it. It names the key, the starter, the readers and the media, and nothing of it can be changed.

import { isSignedBy } from '../trust/index.js';
import { Refusal, bytesIn, callIDIn, idIn, isWhole, listIn, numberIn, sha256, shape, toBase64, wordsIn } from '../wire/index.js';
import { KINDS, MEDIA, statementBytes } from './layouts.js';

const MAX_READERS = 64;
const MAX_SIGNATURE = 4_096;
const MAX_SPKI = 256; // of P-256
const AHEAD_MS = 10 * 60_000; // how far the starter's clock may be ahead of this one

/** A statement of a time that is to come: one of the two clocks is wrong, or the signer lies about the time. */
export class Untimely extends Refusal {}

const oneOf = (table, what) => (value) => {
  if (typeof value !== 'string' || !Object.hasOwn(table, value)) throw new Refusal(`${what} of another form`);
  return value;
};

const distinct = (check, most, what) => (value) => {
  const all = listIn(value, most, what).map((each) => check(each));
  if (all.length === 0 || new Set(all).size < all.length) throw new Refusal(`${what} that are none, or one twice`);
  return all;
};

const device = shape('a device', { user: idIn, device: idIn });
/** The members `sigAlg` and `signature` of everything that is signed. */
export const signed = { sigAlg: wordsIn(64), signature: (value) => bytesIn(value, 1, MAX_SIGNATURE, 'a signature') };

const statementShape = shape(
  'a statement',
  {
    id: callIDIn,
    kind: oneOf(KINDS, 'a kind'),
    publicKey: (value) => bytesIn(value, 1, MAX_SPKI, 'a recording key'),
    media: distinct(oneOf(MEDIA, 'a medium'), 3, 'media'),
    readers: distinct(idIn, MAX_READERS, 'readers'),
    at: numberIn(),
    by: device,
    ...signed,
  },
  { call: callIDIn },
);

/** A statement as the server passed it on, with its key and signature as bytes. Whether it is signed is another question: `openStatement`. */
export function statementIn(value) {
  const statement = statementShape(value);
  if (statement.kind === 'call' && statement.call === undefined) throw new Refusal('a statement about a call that it does not name');
  if (statement.kind === 'own' && statement.call !== undefined) throw new Refusal('a statement about an own recording that names a call');
  return statement;
}

/**
 * The statement of this device about a new recording, as it is sent, and `st`. `publicKey` is the recording key's SPKI, `at` ms since 1970.
 * @returns {Promise<{statement: any, st: Uint8Array}>}
 */
export async function makeStatement(identity, { id, kind, call = undefined, publicKey, media, readers, at }) {
  const by = { user: identity.user, device: identity.device };
  const data = statementBytes({ id, kind, call, by, fingerprint: identity.fingerprint, at, media, publicKey, readers });
  const { sigAlg, signature } = await identity.sign(data);
  const wire = { id, kind, ...(call ? { call } : {}), publicKey: toBase64(publicKey), media, readers, at, by, sigAlg, signature: toBase64(signature) };
  return { statement: wire, st: await sha256(data) };
}

/**
 * `st` of a statement (see `statementIn`) that the device with `keys` and `fingerprint` has signed. Throws for another signature, for a key that is no point of
 * P-256, and for a time too far ahead of `now`.
 */
export async function openStatement(statement, { keys, fingerprint, now }) {
  const data = statementBytes({ ...statement, fingerprint });
  if (!(await isSignedBy(keys, statement.sigAlg, statement.signature, data))) throw new Refusal('a statement with a wrong signature');
  if (!isWhole(statement.at, 0, now + AHEAD_MS)) throw new Untimely('a statement of a time that is to come');
  const curve = { name: 'ECDH', namedCurve: 'P-256' };
  await crypto.subtle.importKey('spki', statement.publicKey, curve, false, []).catch(() => {
    throw new Refusal('a recording key that is no point of P-256');
  });
  return sha256(data);
}
