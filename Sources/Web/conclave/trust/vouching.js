// Statements of a user's devices about each other, vouches and revocations (protocol section 5), and how far a viewer trusts the devices.

import { concat, fromBase64, lp, toBase64, u64, utf8 } from '../wire/index.js';
import { isSignedBy } from './identity.js';

const AHEAD_MS = 24 * 3_600_000; // a statement from further in the future is ignored
const VOUCHES_PER_DEVICE = 8;
const REVOKES_PER_USER = 64;
const FINGERPRINT_BYTES = 32;

const labels = { vouch: 'conclave-vouch-v1', revoke: 'conclave-revoke-v1' };

/** The bytes that a statement's signature covers. `by` and `about` are fingerprints, `kind` is `vouch` or `revoke`. */
export function statementBytes(kind, { user, by, about, at }) {
  if (by.length !== FINGERPRINT_BYTES || about.length !== FINGERPRINT_BYTES) throw new RangeError('a fingerprint has 32 bytes');
  return concat(utf8(labels[kind]), lp(user), by, about, u64(at));
}

/** The statement of this device about another one of its user, as in `devices/vouch`, `devices/revoke` and `devices/remove`. */
export async function makeStatement(kind, identity, { device, fingerprint }, at) {
  const data = statementBytes(kind, { user: identity.user, by: identity.fingerprint, about: fromBase64(fingerprint), at });
  const { sigAlg, signature } = await identity.sign(data);
  return { device, fingerprint, at, sigAlg, signature: toBase64(signature) };
}

/** Whether the device with `keys`, which belongs to `user`, has signed `statement`. False for a statement that is malformed or too far in the future. */
async function isSigned(kind, statement, { user, keys, now }) {
  const { fingerprint, byFingerprint, at, sigAlg, signature } = statement;
  if (!Number.isSafeInteger(at) || at < 0 || at > now + AHEAD_MS) return false;
  try {
    const data = statementBytes(kind, { user, by: fromBase64(byFingerprint), about: fromBase64(fingerprint), at });
    return await isSignedBy(keys, sigAlg, fromBase64(signature), data);
  } catch {
    return false;
  }
}

const isListed = (devices, { device, fingerprint }) =>
  devices.some((other) => other.device === device && other.fingerprint === fingerprint);

const sameRevoke = (a, b) => a.fingerprint === b.fingerprint && a.byFingerprint === b.byFingerprint;

/**
 * How far a viewer trusts the devices of `user` now. `pins` are the devices that the viewer knows, `{device, fingerprint, keys, isVerified}`, including its
 * own, verified, if it is this user's. `listed`, `vouches` and `revokes` come from the server; `remembered` is what this function returned before.
 *
 * Returns `levels`, by fingerprint: `verified` (in person), `vouched` (by a device that is verified, listed and not revoked), `known` or `revoked`;
 * `disagreements`, the pins, with `by`, that are verified but revoked by a device that is only vouched for; `fallen`, the pins that were vouched for before and
 * no longer are; and what to remember: a revocation counts permanently, even if the server hides it later.
 * @param {Record<string, any>} facts
 */
export async function judge({ user, pins, listed = [], vouches = [], revokes = [], remembered = {}, now }) {
  const pinOf = (device, fingerprint) => pins.find((pin) => pin.device === device && pin.fingerprint === fingerprint);
  const signerOf = ({ by, byFingerprint }) => pinOf(by, byFingerprint);
  const signed = async (kind, statements) => {
    const checked = await Promise.all(
      statements.map(async (statement) => {
        const signer = signerOf(statement);
        return signer && (await isSigned(kind, statement, { user, keys: signer.keys, now }));
      }),
    );
    return statements.filter((_, index) => checked[index]);
  };

  const told = revokes.filter((revoke) => revoke.user === user).slice(0, REVOKES_PER_USER);
  const kept = remembered.revokes ?? [];
  const validRevokes = await signed('revoke', [...kept, ...told.filter((revoke) => !kept.some((other) => sameRevoke(revoke, other)))]);
  const before = new Set(remembered.revoked ?? []);
  const counts = (revoke) =>
    revoke.byFingerprint === revoke.fingerprint || (signerOf(revoke).isVerified && !before.has(revoke.byFingerprint));
  const counted = validRevokes.filter(counts);
  const revoked = new Set([...before, ...counted.map(({ fingerprint }) => fingerprint)]);
  // A device that gave up its own key may still have it: people are told that nobody else has revoked it.
  const bySelf = counted.filter(({ byFingerprint, fingerprint }) => byFingerprint === fingerprint).map(({ fingerprint }) => fingerprint);
  const byOthers = new Set(counted.filter(({ byFingerprint, fingerprint }) => byFingerprint !== fingerprint).map(({ fingerprint }) => fingerprint));
  const selfRevoked = [...new Set([...(remembered.selfRevoked ?? []), ...bySelf.filter((fingerprint) => !before.has(fingerprint))])].filter((fingerprint) => !byOthers.has(fingerprint));

  const isVoucher = (pin) => pin?.isVerified && !revoked.has(pin.fingerprint) && isListed(listed, pin);
  const useful = pins.flatMap((pin) =>
    vouches
      .filter(({ device, fingerprint }) => device === pin.device && fingerprint === pin.fingerprint)
      .slice(0, VOUCHES_PER_DEVICE)
      .filter((vouch) => vouch.by !== pin.device && isVoucher(signerOf(vouch))),
  );
  const vouched = new Set((await signed('vouch', useful)).map(({ fingerprint }) => fingerprint));

  const levelOf = ({ fingerprint, isVerified }) =>
    revoked.has(fingerprint) ? 'revoked' : isVerified ? 'verified' : vouched.has(fingerprint) ? 'vouched' : 'known';
  const levels = new Map(pins.map((pin) => [pin.fingerprint, levelOf(pin)]));
  const disagreements = validRevokes
    .filter(({ byFingerprint, fingerprint }) => levels.get(byFingerprint) === 'vouched' && levels.get(fingerprint) === 'verified')
    .map(({ device, fingerprint, by }) => ({ device, fingerprint, by }));
  const fallen = pins.filter(({ fingerprint }) => remembered.vouched?.includes(fingerprint) && levels.get(fingerprint) === 'known');
  const open = validRevokes.filter(({ fingerprint }) => !revoked.has(fingerprint)).slice(0, REVOKES_PER_USER);
  return { levels, disagreements, fallen, remembered: { revoked: [...revoked], selfRevoked, revokes: open, vouched: [...vouched] } };
}
