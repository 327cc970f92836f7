// The tiles of a call: one for each person, present or rung, one for each shared screen, and one for each device that can decrypt the call
// though it is in none of these: nothing hears without being seen.

const numberOf = (track) => Number(track.split('.')[1]);

/**
 * `find(participant, n)` brings the video that opened as that track, if any, and `pictureOf(participant, n)` how it stands with it: see `Media`.
 *
 * A tile: `{key, source, member, participant, isOwn, isConnected, isHeld, isMuted, video, picture, track, doubt}`. `source` is `camera`, `screen`, `ringing` or
 * `listener`. `picture` is undefined where no picture is sent, as with a camera that is off. `doubt`, the first that holds:
 * - `stranger`, `gone`: it can decrypt what is sent here, and the server does not name it as a participant;
 * - `no-key`: this device has no key, so nothing of the other can be heard or seen;
 * - `unlisted`: it has no key to what is sent here yet;
 * - `untrusted`: it gets no key from this device, which does not trust it; `distrusting`: it does not trust this device, and does not use the key from it;
 * - `not-confirmed`: it did not confirm that it has the same key and list.
 */
export function tilesOf(call, { find, pictureOf }) {
  const known = knownOf(call);
  /** @type {Record<string, any>[]} */
  const tiles = [];
  for (const member of call.members.values()) {
    if (member.state === 'ringing') tiles.push({ key: `ring/${member.user}`, source: 'ringing', member });
    for (const participant of member.participants) tiles.push(...ofParticipant(call, known, member, participant, { find, pictureOf }));
  }
  return [...tiles, ...ofListeners(call, known, new Set(tiles.map(({ participant }) => participant)))];
}

/** Facts of each participant that the tiles need, gathered once: a list per tile would make 90,000 objects each time a call of 300 is drawn. */
function knownOf({ devices, roster, hasKey, confirmation: { state, missing } }) {
  const listed = roster.filter((person) => person.state !== 'unlisted');
  return {
    roster,
    hasKey,
    owners: new Map(devices.map(({ participant, user }) => [participant, user])),
    listed: new Map(listed.map((person) => [`${person.user}/${person.device}`, person])),
    unconfirmed: new Set(state === 'not-confirmed' ? missing.map(({ participant }) => participant) : []),
  };
}

function ofParticipant(call, known, member, { participant, device, tracks, connected, held }, { find, pictureOf }) {
  const isOwn = participant === call.participant;
  const trackOf = (source) => tracks.find((track) => track.source === source);
  const videoOf = (source) => {
    if (isOwn) return { video: call.local(source).track };
    const track = trackOf(source);
    if (!track || track.muted || held || call.isHeld) return {};
    const n = numberOf(track.track);
    return { video: find(participant, n), picture: pictureOf(participant, n) };
  };
  const microphone = trackOf('microphone');
  const owner = ownerBy(known.owners.get(participant), call, member);
  const base = { member: owner, participant, isOwn, isConnected: connected || isOwn, isHeld: Boolean(held) };
  const camera = {
    ...base,
    key: `${participant}/camera`,
    source: 'camera',
    track: trackOf('camera')?.track,
    isMuted: isOwn ? !call.local('microphone').isOn : !microphone || microphone.muted,
    doubt: isOwn ? undefined : doubtOf(known, `${member.user}/${device}`, participant),
    ...videoOf('camera'),
  };
  const screen = trackOf('screen');
  if (!screen) return [camera];
  return [camera, { ...base, key: screen.track, source: 'screen', track: screen.track, ...videoOf('screen') }];
}

/** Devices that can decrypt what is sent here, and that the server does not name as participants. */
function ofListeners(call, { roster }, shown) {
  const hidden = roster.filter(({ participant, state }) => ['stranger', 'gone'].includes(state) && !shown.has(participant));
  return hidden.map(({ user, device, participant, state }) => ({
    key: `${participant}/${user}/${device}`,
    source: 'listener',
    member: call.members.get(user) ?? { user },
    participant,
    isConnected: true,
    doubt: state,
  }));
}

function doubtOf({ listed, unconfirmed, hasKey }, name, participant) {
  if (!hasKey) return 'no-key';
  const entry = listed.get(name);
  // On a ring's list devices have no numbers yet.
  const isListed = [0, participant].includes(entry?.participant);
  if (!isListed && listed.size > 0) return 'unlisted';
  if (entry?.problem) return 'untrusted';
  if (entry?.isWaiting) return 'distrusting';
  return unconfirmed.has(participant) ? 'not-confirmed' : undefined;
}

/** The list of keys says whose a participant is; the server's state only until then. */
export function ownerOf(call, participant) {
  const listed = call.devices.find((other) => other.participant === participant);
  return ownerBy(listed?.user, call, call.members.find(participant).member);
}

/** `user` is what the list says, `member` what the state says. */
function ownerBy(user, call, member) {
  return user === undefined || user === member?.user ? member : (call.members.get(user) ?? { user });
}
