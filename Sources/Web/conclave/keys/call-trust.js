// For a page: everybody who can decrypt a call, and why nothing is sent.

import { exactName } from './roster-watch.js';

/**
 * Everybody who can decrypt or is in the call: `{user, device, participant, fingerprint, joinId, state, isVerified, level, isNew, isConfirmed, problem}`.
 * `state` is `member`; `stranger`, which can decrypt although it was never seen in the call; `gone`, which has left and may still hear; `unlisted`, which
 * cannot hear yet. `devices` are those of `KeyAgreement`, the list in use: each of them is included. `people` are those of `RosterWatch`; a device that it has
 * not examined yet is a stranger.
 */
export function rosterOf(people, devices) {
  const looked = new Map(people.filter(({ listed }) => listed).map((person) => [`${exactName(person)}/${person.participant}`, person]));
  const listed = devices.map((device) => ({ ...device, state: stateOf(looked.get(`${exactName(device)}/${device.participant}`)) }));
  const unlisted = people.filter((person) => !person.listed).map(({ user, device, participant }) => ({ user, device, participant, state: 'unlisted' }));
  return [...listed, ...unlisted];
}

function stateOf(person) {
  if (!person || person.isStranger) return 'stranger';
  return person.hasLeft ? 'gone' : 'member';
}

/**
 * Why nothing is sent: `{cause, devices, needsPerson}` with cause `stranger`, `uninvited`, `gone`, `epoch-1` (see `RosterWatch`), `not-shown` (the page could
 * not draw who hears), `withdrawn` (no key follows the one that a recording's readers have, although the person has withdrawn), `revoked` or `changed-key` (see `distrustedOf`), `broken-history` (`rejoin` helps), `no-key` or `unverified`. `devices`, `{user, device,
 * fingerprint, joinId}`, are the devices concerned: `sendAnyway` requires those that the person was shown. With `needsPerson` the person may end it so, or
 * with `rejoin`; otherwise it ends by itself. Undefined while something is sent.
 */
export function stopOf(stopped, keys, isJoining) {
  const silence = keys?.epoch > 0 || keys?.isBroken ? keys.silence : undefined;
  if (silence === 'broken-history') return { cause: silence, devices: [], needsPerson: !isJoining };
  if (stopped) return { cause: stopped.cause, devices: stopped.people.map(exactly), needsPerson: stopped.needsPerson };
  if (!silence) return undefined;
  const devices = DISTRUSTED.includes(silence) ? keys.distrusted.filter(({ problem }) => problem === silence) : [];
  return { cause: silence, devices: devices.map(exactly), needsPerson: devices.length > 0 };
}

const exactly = ({ user, device, fingerprint, joinId, isSelfRevoked }) => ({ user, device, fingerprint, joinId, isSelfRevoked });

/** This device gives these no key, but others in the call may, because they may trust another device of that user. */
const DISTRUSTED = ['revoked', 'changed-key'];

/**
 * The `devices` of the list in use that must not hear, except those that the person has `allowed` by `exactName`: nothing is sent while there is one (protocol
 * section 5.12).
 */
export const distrustedOf = (devices, allowed) => devices.filter((device) => DISTRUSTED.includes(device.problem) && !allowed.has(exactName(device)));

/** @type {{state: string, missing: any[], wrong: any[]}} */
const UNKNOWN = { state: 'confirming', missing: [], wrong: [] };

/** Whether the others have confirmed that they share this key: `{state, missing, confirmed}`; `missing` are devices, `confirmed` a set of fingerprints. */
export function confirmationOf({ state, missing, wrong } = UNKNOWN, devices) {
  const open = new Set([...missing, ...wrong]);
  const confirmed = devices.filter(({ isConfirmed }) => isConfirmed).map(({ fingerprint }) => fingerprint);
  return { state, missing: devices.filter(({ participant }) => open.has(participant)), confirmed: new Set(confirmed) };
}
