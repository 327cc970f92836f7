// Envelopes: a secret for one device, signed by the device that hands it out; and those that go out with a ring.

import { fromBase64, random, toBase64 } from './bytes.js';
import { isSignedBy, sameDevice } from './identity.js';
import { SECRET_BYTES, envelopeBytes, listHashOf } from './transcript.js';
import { HPKE, canWrap, hpkeOpen, wrap } from './wrap.js';

const MAXIMUM_RUNG = 300; // a request's body has 256 KiB, an envelope some 600 bytes

/** Why something the server sent is not taken; a reason in words for the console. */
export class Refusal extends Error {}

/** `secret` wrapped to `target`, a public key; undefined where that is none known here: one bad key must not keep the others from theirs. */
export async function wrapped({ alg, publicKey }, secret) {
  return canWrap(alg) ? wrap(alg, fromBase64(publicKey), secret).catch(() => undefined) : undefined;
}

/** The wire form of a wrapped secret for the device of `entry`. */
export async function signEnvelope({ identity, call, epoch, listHash, entry, alg, ciphertext }) {
  const from = { user: identity.user, device: identity.device };
  const to = { user: entry.user, device: entry.device };
  const { sigAlg, signature } = await identity.sign(await envelopeBytes({ call, epoch, from, to, alg, ciphertext, listHash }));
  return { epoch, to, alg, ciphertext: toBase64(ciphertext), sigAlg, signature: toBase64(signature) };
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
  const trusted = (await directory.devicesOf(callees)).filter(({ keys, problem }) => keys && !problem);
  const asked = trusted.length <= MAXIMUM_RUNG ? trusted : [];
  const sealed = await Promise.all(
    asked.map(async ({ entry, keys }) => {
      const target = keys.find((key) => key.use === 'wrap');
      return { entry, alg: target.alg, ciphertext: await wrapped(target, secret) };
    }),
  );
  const rung = sealed.filter(({ ciphertext }) => ciphertext);
  const list = [ownEntry(identity, join, 1), ...rung.map(({ entry }) => entry)];
  const listHash = await listHashOf(list);
  const sign = (each) => signEnvelope({ identity, call: '', epoch: 1, listHash, ...each });
  return { secret, list, envelopes: await Promise.all(rung.map(sign)) };
}
