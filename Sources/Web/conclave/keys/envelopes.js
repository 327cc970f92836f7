// Envelopes: a secret for one device, signed by the device that hands it out; and those that go out with a ring.

import { isSignedBy, sameDevice } from '../trust/index.js';
import {
  HPKE, NO_LIST, Refusal, SECRET_BYTES, byUserThenDevice, canWrap, envelopeBytes, equal, fromBase64, hpkeOpen, isSecret, listHashOf, random, sha256,
  toBase64, wrap,
} from '../wire/index.js';
import { Roster } from './roster.js';

const MAXIMUM_RUNG = 255; // how many envelopes a ring may have, because its list also contains this device

/**
 * The wire form of `secret` for the device of `entry`, sealed to `target`, a public key. Undefined for a key to which nothing can be sealed here: one bad key
 * must not prevent the others from getting theirs.
 */
export async function makeEnvelope({ identity, call, epoch, listHash, entry, target, secret }) {
  const { alg, publicKey } = target;
  if (!canWrap(alg)) return undefined;
  const spki = fromBase64(publicKey);
  const ciphertext = await wrap(alg, spki, secret).catch(() => undefined);
  if (!ciphertext) return undefined;
  const from = { user: identity.user, device: identity.device };
  const to = { user: entry.user, device: entry.device };
  const key = await sha256(spki);
  const { sigAlg, signature } = await identity.sign(await envelopeBytes({ call, epoch, from, to, alg, key, ciphertext, listHash }));
  return { epoch, to, alg, key: toBase64(key), ciphertext: toBase64(ciphertext), sigAlg, signature: toBase64(signature) };
}

/**
 * The secret in `envelope` (see `envelopeIn`), which the owner of `keys` must have signed for this device and list. `pair` is the key pair to which it is
 * sealed.
 */
export async function openEnvelope(envelope, { identity, call, listHash, pair, keys }) {
  const { to, alg, sigAlg, signature, ciphertext } = envelope;
  if (!sameDevice(to, identity)) throw new Refusal('an envelope for somebody else');
  if (!(await isSignedBy(keys, sigAlg, signature, await envelopeBytes({ ...envelope, call, listHash })))) {
    throw new Refusal('an envelope with a wrong signature');
  }
  if (alg !== HPKE) throw new Refusal('an envelope of another algorithm');
  const secret = await hpkeOpen(pair, ciphertext).catch(() => undefined);
  if (!secret || !isSecret(secret)) throw new Refusal('an envelope without a secret');
  return secret;
}

/** The hash of this device's long-lived wrap key, to which only ring envelopes are sealed. */
export const wrapKeyHash = (identity) => sha256(fromBase64(identity.keys.find(({ use }) => use === 'wrap').publicKey));

export const isSealedTo = (envelope, hash) => equal(envelope.key, hash);

/** This join's own entry. */
export const ownEntry = ({ user, device, fingerprint }, join, participant) => ({
  user,
  device,
  participant,
  fingerprint: toBase64(fingerprint),
  ...join.wire,
});

/**
 * Epoch 1 for this device and the trusted devices of `callees`, so that a callee who accepts is heard immediately: `{secret, list, envelopes, news}`. Without
 * any such device `envelopes` is empty. `news` are entries of devices that have not been announced: new ones of known people that are not vouched for. They
 * ring, but get no key before the person knows about them.
 */
export async function ringEpoch({ identity, directory, join, call, callees }) {
  const secret = random(SECRET_BYTES);
  const devices = (await directory.devicesOf(callees, { pinsNews: false })).filter(({ entry }) => !sameDevice(entry, identity));
  const isNews = ({ isNew, level }) => isNew && level !== 'vouched';
  const trusted = devices.filter((device) => device.keys && !device.problem && !isNews(device));
  const asked = trusted.map(({ entry, keys }) => ({ entry, target: keys.find(({ use }) => use === 'wrap') })).filter(({ target }) => canWrap(target.alg));
  const ring = await ringOf(oneForEachFirst(asked).slice(0, MAXIMUM_RUNG), { identity, join, call, secret });
  return { ...ring, news: devices.filter(isNews).map(({ entry, keys, isOfVerified }) => ({ ...entry, keys, isOfVerified })) };
}

/** In another order: a device of each user, then a second one of each, and so on. */
function oneForEachFirst(devices) {
  const counts = new Map();
  const turns = devices.map((device) => {
    const turn = counts.get(device.entry.user) ?? 0;
    counts.set(device.entry.user, turn + 1);
    return { device, turn };
  });
  return turns.sort((one, other) => one.turn - other.turn).map(({ device }) => device);
}

/** A device to which nothing could be sealed would be on nobody else's list: the list is made again without it, and all others keep their key. */
async function ringOf(rung, { identity, join, call, secret }) {
  const list = [ownEntry(identity, join, 1), ...rung.map(({ entry }) => entry)].sort(byUserThenDevice);
  const listHash = await listHashOf({ call, epoch: 1, previous: NO_LIST, roster: (await Roster.of(list)).hash });
  const made = await Promise.all(rung.map((each) => makeEnvelope({ identity, call, epoch: 1, listHash, secret, ...each })));
  if (made.every(Boolean)) return { secret, list, envelopes: made };
  return ringOf(rung.filter((_, index) => made[index]), { identity, join, call, secret });
}
