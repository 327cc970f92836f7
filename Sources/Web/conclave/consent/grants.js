// The key pair of one recording, and grants: its private half, sealed for one reader's device and signed by the device that grants.

import { SENT_TO, isSignedBy, sameDevice } from '../trust/index.js';
import {
  HPKE, Refusal, bytesIn, callIDIn, canWrap, equal, fromBase64, hashIn, hpkeOpen, hpkeSeal, idIn, numberIn, random, sha256, shape, toBase64, wordsIn,
  wrap,
} from '../wire/index.js';
import { grantBytes, grantInfo } from './layouts.js';
import { signed } from './statement.js';

const curve = { name: 'ECDH', namedCurve: 'P-256' };
const SCALAR_BYTES = 32;
const MAX_CIPHERTEXT = 4_096;
const PROOF = 'conclave-recording-key-proof'; // `info`; it never leaves the device

const toURL = (bytes) => toBase64(bytes).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
const fromURL = (text) => fromBase64(text.replaceAll('-', '+').replaceAll('_', '/').padEnd(Math.ceil(text.length / 4) * 4, '='));

/** A new recording key: `{publicKey, scalar}`, an SPKI and the private half. The scalar is wiped once its grants are made. */
export async function makeRecordingKey() {
  const pair = await crypto.subtle.generateKey(curve, true, ['deriveBits']);
  const { d } = await crypto.subtle.exportKey('jwk', pair.privateKey);
  return { publicKey: new Uint8Array(await crypto.subtle.exportKey('spki', pair.publicKey)), scalar: fromURL(d ?? '') };
}

/** The pair of a scalar and the public key that is said to be its other half. Not all browsers compare the two: see `isPair`. */
async function pairOf(scalar, spki) {
  const publicKey = await crypto.subtle.importKey('spki', spki, curve, true, []);
  const point = new Uint8Array(await crypto.subtle.exportKey('raw', publicKey));
  const jwk = { kty: 'EC', crv: 'P-256', x: toURL(point.subarray(1, 33)), y: toURL(point.subarray(33)), d: toURL(scalar) };
  return { publicKey, privateKey: await crypto.subtle.importKey('jwk', jwk, curve, false, ['deriveBits']) };
}

/** Whether what is sealed to `spki` opens with `pair`. */
async function isPair(pair, spki) {
  const text = random(16);
  const info = new TextEncoder().encode(PROOF);
  const opened = await hpkeOpen(pair, await hpkeSeal(spki, text, { info }), { info }).catch(() => undefined);
  return opened !== undefined && equal(opened, text);
}

const grantShape = shape('a grant', {
  to: shape('a holder', { user: idIn }, { device: idIn }),
  from: shape('a granter', { user: idIn, device: idIn }),
  key: (value) => hashIn(value, 'a key hash'),
  alg: wordsIn(64),
  ciphertext: (value) => bytesIn(value, 1, MAX_CIPHERTEXT, 'a grant'),
  at: numberIn(),
  ...signed,
}, { recording: callIDIn });

/** A grant as the server passed it on, with its ciphertext, key hash and signature as bytes. */
export const grantIn = (value) => grantShape(value);

/**
 * The wire form of a grant of `scalar` to `to`, `{user, device}`, whose public key is `target`, `{alg, publicKey}`. Undefined if nothing can be sealed to this
 * key here.
 */
export async function makeGrant(identity, scalar, { id, st, to, target, at }) {
  const { alg, publicKey } = target;
  if (!canWrap(alg)) return undefined;
  const spki = fromBase64(publicKey);
  const sealing = alg === HPKE ? hpkeSeal(spki, scalar, { info: grantInfo(id) }) : wrap(alg, spki, scalar);
  const ciphertext = await sealing.catch(() => undefined);
  if (!ciphertext) return undefined;
  const from = { user: identity.user, device: identity.device };
  const key = await sha256(spki);
  const { sigAlg, signature } = await identity.sign(await grantBytes({ st, from, to, alg, key, at, ciphertext }));
  return { recording: id, to, from, key: toBase64(key), alg, ciphertext: toBase64(ciphertext), at, sigAlg, signature: toBase64(signature) };
}

const wrapKeyOf = (keys) => keys.find(({ use }) => use === 'wrap');

/** The devices of `users` that get a grant, and this one if it `isHolder`. This user's others have to be paired: the server lists devices, and could list one of its own. */
export async function holdersOf(users, { identity, directory, isHolder = true }) {
  const devices = await directory.devicesOf([...new Set([identity.user, ...users])], { pinsNews: false });
  const isTrusted = ({ entry, keys, problem, level, isNew }) => {
    if (!keys || problem || sameDevice(entry, identity)) return false;
    return entry.user === identity.user ? SENT_TO.includes(level) : !isNew || level === 'vouched';
  };
  const trusted = devices.filter(isTrusted).map(({ entry, keys }) => ({ user: entry.user, device: entry.device, keys }));
  return [...(isHolder ? [{ user: identity.user, device: identity.device, keys: identity.keys }] : []), ...trusted];
}

/** `{grants, devices}`: the grants of `scalar` to `holders`, see `holdersOf`, and how many devices of each user they reach. `scalar` is wiped. */
export async function makeGrants(identity, scalar, { id, st, holders, at }) {
  const made = await Promise.all(holders.map(({ user, device, keys }) => makeGrant(identity, scalar, { id, st, to: { user, device }, target: wrapKeyOf(keys), at })));
  scalar.fill(0);
  return { grants: made.filter(Boolean), devices: countOf(holders.filter((_, index) => made[index])) };
}

/** How many of `holders` each user has. */
export function countOf(holders) {
  const counts = {};
  for (const { user } of holders) counts[user] = (counts[user] ?? 0) + 1;
  return counts;
}

/**
 * `{scalar, pair}` of `grant` (see `grantIn`), which the device with `keys` has signed for this one: what to seal in further grants, and the recording's key
 * pair, which only derives. `own` is this device: `{user, device, wrap, publicKey}`, with its wrap pair and that pair's SPKI. `publicKey` is the statement's: a
 * grant of another key is refused.
 */
export async function openGrant(grant, { id, st, publicKey, own, keys }) {
  const { to, key, alg, sigAlg, signature, ciphertext } = grant;
  if (!sameDevice(to, own) || !equal(key, await sha256(own.publicKey))) throw new Refusal('a grant for somebody else');
  if (!(await isSignedBy(keys, sigAlg, signature, await grantBytes({ ...grant, st })))) throw new Refusal('a grant with a wrong signature');
  if (alg !== HPKE) throw new Refusal('a grant of another algorithm');
  const scalar = await hpkeOpen(own.wrap, ciphertext, { info: grantInfo(id) }).catch(() => undefined);
  if (scalar?.length !== SCALAR_BYTES) throw new Refusal('a grant that does not open');
  const pair = await pairOf(scalar, publicKey).catch(() => undefined);
  if (!pair || !(await isPair(pair, publicKey))) throw new Refusal('a grant of another recording key');
  return { scalar, pair };
}
