// The tiles of a call (protocol section 5.12): the list of the key in use is what is drawn, each device of it from the moment the list is used until a list
// without it is used. The server's state adds what it knows about them (tracks, whether they are connected), people who are rung, and participants that cannot
// hear yet.

import { nameOf } from '../keys/index.js';
import { isLost } from './members.js';

const numberOf = (track) => Number(track.split('.')[1]);

/**
 * `path` is the call's `MediaPath`, if there is one.
 *
 * A tile: `{key, source, member, device, participant, isOwn, isConnected, isLost, isHeld, isMuted, video, picture, track, doubt, rung, admission}`. `admission`
 * says who let its user in (see `Admissions.of`). `source` is `camera`, `screen`, `ringing` or `listener`, a device that is listed but not in the call.
 * `isLost` says that the person was connected before. The key of a device's tile stays the same when it leaves, or returns under another number. `picture` is
 * undefined if no picture is sent, for example by a camera that is off. `recorded` is as in `CallRecording.recordedOf`. `rung` are the user's other devices on a ring's list. `doubt` is the first that
 * applies:
 * - `no-key`: this device has no key, so nothing of the other can be heard or seen;
 * - `unlisted`: it is on no list that this device has sent under, so no member could give it the key;
 * - `stranger`, `gone`: it can decrypt what is sent here, but is not in the call; `returning`: likewise, and the server says that it is joining again; `rung`:
 *   it was rung, and has a key for now;
 * - `uninvited`: it can decrypt what is sent here, but nobody let its user in;
 * - `untrusted`: this device gives it no key, but others may; `untrusted-hears`: it has confirmed that it has the key;
 * - `distrusting`: it does not trust this device, and does not use the key from it;
 * - `not-confirmed`: it did not confirm that it has the same key and list.
 */
export function tilesOf(call, path) {
  const known = knownOf(call);
  /** @type {Record<string, any>[]} */
  const tiles = [];
  for (const member of call.members.values()) {
    if (member.state === 'ringing') tiles.push(ofRinging(known, member));
    for (const participant of member.participants) tiles.push(...ofParticipant(call, known, member, participant, path));
  }
  return [...tiles, ...ofListeners(call, known)];
}

/** Facts about each participant that the tiles need, gathered once: one list per tile would create 90,000 objects each time a call of 300 is drawn. */
function knownOf({ roster, members, hasKey, confirmation: { state, missing } }) {
  const listed = roster.filter((person) => person.state !== 'unlisted');
  const rung = new Map();
  for (const { user, device, participant } of listed) if (participant === 0) rung.set(user, [...(rung.get(user) ?? []), device]);
  const present = [...members.values()].reduce((sum, { participants }) => sum + participants.length, 0);
  return {
    listed: new Map(listed.map((person) => [nameOf(person), person])),
    byNumber: new Map(listed.filter(({ participant }) => participant > 0).map((person) => [person.participant, person])),
    rung,
    hasKey,
    isHeard: present > 1,
    drawn: new Set(), // devices of the list
    shown: new Set(), // users with a tile that also represents their rung devices
    unconfirmed: new Set(state === 'not-confirmed' ? missing.map(({ participant }) => participant) : []),
  };
}

/** Represents all devices of a user who is rung. */
function ofRinging(known, member) {
  const rung = known.rung.get(member.user) ?? [];
  known.shown.add(member.user);
  return { key: `ring/${member.user}`, source: 'ringing', member, rung, doubt: known.isHeard && rung.length > 0 ? 'rung' : undefined };
}

function ofParticipant(call, known, member, { participant, device, tracks, connected, held }, path) {
  const isOwn = participant === call.participant;
  const trackOf = (source) => tracks.find((track) => track.source === source);
  const videoOf = (source) => {
    if (isOwn) return { video: call.local(source).track };
    const track = trackOf(source);
    if (!track || track.muted || held || call.isHeld) return {};
    const n = numberOf(track.track);
    return { video: path?.videoOf(participant, n), picture: path?.pictureOf(participant, n) ?? 'awaited' };
  };
  const microphone = trackOf('microphone');
  // A list says to whom a number belongs, also a previous one; the state decides only if no list does.
  const owner = known.byNumber.get(participant) ?? call.numberOwner(participant) ?? { user: member.user, device };
  const person = known.listed.get(nameOf(owner));
  const { user, device: id } = owner;
  const base = { member: memberOf(user, call, member), device: id, participant, isOwn, isConnected: connected || isOwn, isLost: !isOwn && isLost(member), isHeld: Boolean(held), recorded: call.recordedOf(participant) };
  const name = `${user}/${id}`;
  const camera = {
    ...base,
    key: known.drawn.has(name) ? `${name}/${participant}` : name,
    source: 'camera',
    track: trackOf('camera')?.track,
    isMuted: isOwn ? !call.local('microphone').isOn : !microphone || microphone.muted,
    doubt: isOwn ? undefined : doubtOf(known, person, participant),
    admission: person?.admission,
    rung: known.shown.has(user) ? [] : (known.rung.get(user) ?? []).filter((other) => other !== id),
    ...videoOf('camera'),
  };
  known.drawn.add(name);
  known.shown.add(user);
  const screen = trackOf('screen');
  if (!screen) return [camera];
  return [camera, { ...base, key: screen.track, source: 'screen', track: screen.track, ...videoOf('screen') }];
}

/** Devices that can decrypt what is sent here, and have no tile yet. */
function ofListeners(call, { listed, drawn, shown }) {
  const hidden = [...listed.values()].filter((person) => !drawn.has(nameOf(person)) && !(person.participant === 0 && shown.has(person.user)));
  return hidden.map(({ user, device, participant, state, isUninvited, admission }) => ({
    key: `${user}/${device}`,
    source: 'listener',
    member: call.members.get(user) ?? { user },
    device,
    participant,
    isOwn: false,
    isConnected: true,
    doubt: participant === 0 && state === 'member' ? 'rung' : state === 'stranger' ? state : isUninvited ? 'uninvited' : 'gone',
    admission,
  }));
}

function doubtOf({ listed, unconfirmed, hasKey }, person, participant) {
  if (!hasKey) return 'no-key';
  if (!person) return listed.size > 0 ? 'unlisted' : undefined;
  if (person.state === 'stranger') return person.state;
  // On a ring's list devices have no numbers yet.
  if (person.state === 'gone') return [0, participant].includes(person.participant) ? 'gone' : 'returning';
  if (person.isUninvited) return 'uninvited';
  if (person.problem) return person.isConfirmed ? 'untrusted-hears' : 'untrusted';
  if (person.isWaiting) return 'distrusting';
  return unconfirmed.has(participant) ? 'not-confirmed' : undefined;
}

/** The lists of keys say to whom a participant belongs, even after it has left; the server's state decides only until then. */
export function ownerOf(call, participant) {
  const owner = call.numberOwner(participant);
  const { member } = call.members.find(participant);
  return owner ? memberOf(owner.user, call, member) : member;
}

/** The member that is `user`: `member`, as the state claims, or another. */
const memberOf = (user, call, member) => (user === member?.user ? member : (call.members.get(user) ?? { user }));
