// What a call shows: one tile for each person, present or rung, one for each shared screen, and one for each device that can decrypt the call
// though it is in none of these: nothing hears without being seen.

const numberOf = (track) => Number(track.split('.')[1]);

/** `find(participant, n)` brings the video that opened as that track, if any. */
export function tilesOf(call, find) {
  const tiles = [];
  for (const member of call.members.values()) {
    if (member.state === 'ringing') tiles.push({ key: `ring/${member.user}`, source: 'ringing', member });
    for (const participant of member.participants) tiles.push(...ofParticipant(call, member, participant, find));
  }
  return [...tiles, ...ofListeners(call, new Set(tiles.map(({ participant }) => participant)))];
}

function ofParticipant(call, member, { participant, device, tracks, connected, held }, find) {
  const isOwn = participant === call.participant;
  const trackOf = (source) => tracks.find((track) => track.source === source);
  const videoOf = (source) => {
    if (isOwn) return call.local(source).track;
    const track = trackOf(source);
    return track && !track.muted && !held && !call.isHeld ? find(participant, numberOf(track.track)) : undefined;
  };
  const microphone = trackOf('microphone');
  const owner = ownerOf(call, participant, { member });
  const base = { member: owner, participant, isOwn, isConnected: connected || isOwn, isHeld: Boolean(held) };
  const camera = {
    ...base,
    key: `${participant}/camera`,
    source: 'camera',
    track: trackOf('camera')?.track,
    isMuted: isOwn ? !call.local('microphone').isOn : !microphone || microphone.muted,
    doubt: isOwn ? undefined : doubtOf(call, { user: member.user, device, participant }),
    video: videoOf('camera'),
  };
  const screen = trackOf('screen');
  if (!screen) return [camera];
  return [camera, { ...base, key: screen.track, source: 'screen', track: screen.track, video: videoOf('screen') }];
}

/** Devices that can decrypt what is sent here, and that the server does not name as participants. */
function ofListeners(call, shown) {
  const hidden = call.roster.filter(({ participant, state }) => ['stranger', 'gone'].includes(state) && !shown.has(participant));
  return hidden.map(({ user, device, participant, state }) => ({
    key: `${participant}/${user}/${device}`,
    source: 'listener',
    member: call.members.get(user) ?? { user },
    participant,
    isConnected: true,
    doubt: state,
  }));
}

/** `unlisted`: it has no key to what is sent here yet. `not-confirmed`: it did not confirm that it has the same key and list. */
function doubtOf({ roster, confirmation }, { user, device, participant }) {
  const listed = roster.filter(({ state }) => state !== 'unlisted');
  // On a ring's list devices have no numbers yet.
  const isListed = listed.some((one) => one.user === user && one.device === device && [0, participant].includes(one.participant));
  if (!isListed && listed.length > 0) return 'unlisted';
  const { state, missing } = confirmation;
  return state === 'not-confirmed' && missing.some((one) => one.participant === participant) ? state : undefined;
}

/** The list of keys says whose a participant is; the server's state, which has `member`, only until then. */
export function ownerOf(call, participant, { member } = call.members.find(participant)) {
  const entry = call.devices.find((other) => other.participant === participant);
  if (!entry || entry.user === member?.user) return member;
  return call.members.get(entry.user) ?? { user: entry.user };
}
