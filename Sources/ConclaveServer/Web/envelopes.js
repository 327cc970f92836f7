// Envelopes: a secret for one device, signed by the device that hands it out; and those that go out with a ring.

import { fromBase64, random, toBase64 } from './bytes.js';
import { isSignedBy, sameDevice } from './identity.js';
import { SECRET_BYTES, envelopeBytes, listHashOf } from './transcript.js';
import { HPKE, canWrap, hpkeOpen, wrap } from './wrap.js';

const MAXIMUM_RUNG = 300; // a request's body has 256 KiB, an envelope some 600 bytes

/** Why something the server sent is not taken; a reason in words for the console. */
export class Refusal extends Error {}

/** The wire form of `secret` for the device of `entry`, wrapped to `target`, a public key. */
export async function sealEnvelope({ identity, call, epoch, listHash, entry, target, secret }) {
  const ciphertext = await wrap(target.alg, fromBase64(target.publicKey), secret);
  const from = { user: identity.user, device: identity.device };
  const to = { user: entry.user, device: entry.device };
  const facts = { call, epoch, from, to, alg: target.alg, ciphertext, listHash };
  const { sigAlg, signature } = await identity.sign(await envelopeBytes(facts));
  const wire = { epoch, to, alg: target.alg, ciphertext: toBase64(ciphertext) };
  return { ...wire, sigAlg, signature: toBase64(signature) };
}

/** The secret in `envelope`, which `keysOf(from)`'s owner must have signed for this device and list. `pair` is what it is wrapped to. */
export async function openEnvelope(envelope, { identity, call, listHash, pair, keysOf }) {
  const { epoch, to, from, alg, sigAlg, signature } = envelope;
  if (!sameDevice(to, identity)) throw new Refusal('an envelope for somebody else');
  if (!signature || !from) throw new Refusal('an envelope that nobody signed');
  const keys = keysOf(from);
  if (!keys) throw new Refusal('an envelope from a device that is not on the list, or not trusted');
  const ciphertext = fromBase64(envelope.ciphertext ?? envelope.encryptedAESKey);
  const facts = { call, epoch, from, to, alg, ciphertext, listHash };
  if (!(await isSignedBy(keys, sigAlg, fromBase64(signature), await envelopeBytes(facts)))) {
    throw new Refusal('an envelope with a wrong signature');
  }
  if (alg !== HPKE) throw new Refusal('an envelope of another algorithm');
  return hpkeOpen(pair, ciphertext);
}

export const ownEntry = ({ user, device, fingerprint }, join, participant) => ({
  user,
  device,
  participant,
  fingerprint: toBase64(fingerprint),
  ...join.wire,
});

/**
 * Epoch 1 for this device and all trusted devices of `callees`, so that who accepts is heard at once: `{secret, list, envelopes}`.
 * Without a single such device `envelopes` is empty.
 */
export async function ringEpoch({ identity, directory, join, callees }) {
  const secret = random(SECRET_BYTES);
  const rung = [];
  for (const { entry, keys, problem } of await directory.devicesOf(callees)) {
    const target = keys?.find((key) => key.use === 'wrap');
    if (target && !problem && canWrap(target.alg)) rung.push({ entry, target });
  }
  if (rung.length > MAXIMUM_RUNG) rung.length = 0;
  const list = [ownEntry(identity, join, 1), ...rung.map(({ entry }) => entry)];
  const listHash = await listHashOf(list);
  const seal = ({ entry, target }) => sealEnvelope({ identity, call: '', epoch: 1, listHash, entry, target, secret });
  return { secret, list, envelopes: await Promise.all(rung.map(seal)) };
}
