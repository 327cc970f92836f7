// What a call shows: one tile for each person, present or rung, and one for each shared screen.

const numberOf = (track) => Number(track.split('.')[1]);

/** `find(participant, n)` brings the video that opened as that track, if any. */
export function tilesOf(call, find) {
  const tiles = [];
  for (const member of call.members.values()) {
    if (member.state === 'ringing') tiles.push({ key: `ring/${member.user}`, source: 'ringing', member });
    for (const participant of member.participants) tiles.push(...ofParticipant(call, member, participant, find));
  }
  return tiles;
}

function ofParticipant(call, member, { participant, tracks, connected, held }, find) {
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
    video: videoOf('camera'),
  };
  const screen = trackOf('screen');
  if (!screen) return [camera];
  return [camera, { ...base, key: screen.track, source: 'screen', track: screen.track, video: videoOf('screen') }];
}

/** The list of keys says whose a participant is; the server's state, which has `member`, only until then. */
export function ownerOf(call, participant, { member } = call.members.find(participant)) {
  const entry = call.devices.find((other) => other.participant === participant);
  if (!entry || entry.user === member?.user) return member;
  return call.members.get(entry.user) ?? { user: entry.user };
}
