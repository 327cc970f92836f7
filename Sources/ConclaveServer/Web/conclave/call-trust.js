// For a page: everybody who can decrypt a call, and why nothing is sent.

/**
 * Everybody who can decrypt or is in the call: `{user, device, participant, fingerprint, state, isVerified, level, isNew, isConfirmed, problem}`. `state` is `member`;
 * `stranger`, who can decrypt though the server never said that it joined; `gone`, who has left and may still hear; `unlisted`, who can't hear yet. `people` are those of
 * `RosterWatch`, `devices` those of `KeyAgreement`.
 */
export function rosterOf(people, devices) {
  const facts = new Map(devices.map((device) => [`${device.user}/${device.device}`, device]));
  return people.map(({ listed, member, hasLeft, isStranger, ...person }) => ({
    ...(listed ? facts.get(`${person.user}/${person.device}`) : {}),
    ...person,
    state: !listed ? 'unlisted' : isStranger ? 'stranger' : hasLeft ? 'gone' : 'member',
  }));
}

/**
 * Why nothing is sent: `{cause, user, device, needsPerson}` with cause `stranger`, `gone`, `epoch-1` (see `RosterWatch`), `broken-history` (`rejoin` helps), `no-key` or
 * `unverified`. With `needsPerson` it lasts until `sendAnyway`, or `rejoin`. Undefined while it is sent.
 */
export function stopOf(stopped, keys, isJoining) {
  const silence = keys?.epoch > 0 || keys?.isBroken ? keys.silence : undefined;
  if (silence === 'broken-history') return { cause: silence, needsPerson: !isJoining };
  if (!stopped) return silence && { cause: silence, needsPerson: false };
  const { cause, people, needsPerson } = stopped;
  return { cause, user: people[0]?.user, device: people[0]?.device, needsPerson };
}

/** @type {{state: string, missing: any[], wrong: any[]}} */
const UNKNOWN = { state: 'confirming', missing: [], wrong: [] };

/** Whether the others have said that they share this key: `{state, missing, confirmed}`; `missing` are devices, `confirmed` a set of fingerprints. */
export function confirmationOf({ state, missing, wrong } = UNKNOWN, devices) {
  const open = new Set([...missing, ...wrong]);
  const confirmed = devices.filter(({ isConfirmed }) => isConfirmed).map(({ fingerprint }) => fingerprint);
  return { state, missing: devices.filter(({ participant }) => open.has(participant)), confirmed: new Set(confirmed) };
}
