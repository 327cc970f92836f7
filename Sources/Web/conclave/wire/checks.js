// The server's data is checked before it is used: numbers, ids, base64, list entries (protocol section 5, "Numbers"). Anything else throws `Refusal`.

import { fromBase64, toHex } from './bytes.js';

/** Why something from the server is not accepted; a reason in words for the console. */
export class Refusal extends Error {}

export const MAX_NUMBER = 0xffff_ffff; // epochs and participants
export const MAX_TRACK = 255;
export const MAX_ENTRIES = 8_192;
export const MAX_LINKS = 1_000;
const MAX_CHANGES = 64;
const SPKI_BYTES = 4_096;
const ALG_BYTES = 64;
const ENVELOPE_BYTES = 4_096;
const EPOCH_MODES = ['fresh', 'ratchet'];
const IDS = /^[A-Za-z0-9._~@+-]{1,128}$/;
const UUID_V4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/; // RFC 9562 section 5.4
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const TRACKS = /^([1-9]\d{0,9})\.([1-9]\d{0,2})$/;

export const isWhole = (value, least, most) => Number.isSafeInteger(value) && value >= least && value <= most;

/** `value` if it is a whole number from `least` to `most`; a string or a fraction is not. */
export function whole(value, least, most, what) {
  if (!isWhole(value, least, most)) throw new Refusal(`${what} that is not a number from ${least} to ${most}`);
  return value;
}

export const epochIn = (value) => whole(value, 1, MAX_NUMBER, 'an epoch');
export const participantIn = (value) => whole(value, 1, MAX_NUMBER, 'a participant');
const timeIn = (value) => whole(value, 0, Number.MAX_SAFE_INTEGER, 'a time');

function matching(pattern, value, what) {
  if (typeof value !== 'string' || !pattern.test(value)) throw new Refusal(`${what} of another form`);
  return value;
}

/** A user's or a device's id. */
export const idIn = (value) => matching(IDS, value, 'an id');

/** A recording's id: a UUID in lower case. */
const recordingIDIn = (value) => matching(UUID, value, 'a recording’s id');

/** A call's id: a random UUID in lower case. */
export const callIDIn = (value) => matching(UUID_V4, value, 'a call id');

export function isID(value) {
  return typeof value === 'string' && IDS.test(value);
}

export function isCallID(value) {
  return typeof value === 'string' && UUID_V4.test(value);
}

/** `{participant, n}` of a track's id, `participant.n` in canonical decimals. */
export function trackIn(value) {
  const found = typeof value === 'string' && TRACKS.exec(value);
  if (!found) throw new Refusal('a track id of another form');
  return { participant: participantIn(Number(found[1])), n: whole(Number(found[2]), 1, MAX_TRACK, 'a track number') };
}

/** The bytes in canonical base64, `least` to `most` of them. */
export function bytesIn(value, least, most, what) {
  let bytes;
  try {
    bytes = fromBase64(value);
  } catch {
    throw new Refusal(`${what} that is not base64`);
  }
  if (bytes.length < least || bytes.length > most) throw new Refusal(`${what} of ${bytes.length} bytes`);
  return bytes;
}

export const hashIn = (value, what = 'a hash') => bytesIn(value, 32, 32, what);

function joinIDIn(value) {
  const bytes = bytesIn(value, 16, 16, 'a joinId');
  if (bytes.every((byte) => byte === 0)) throw new Refusal('a joinId of zeros');
  return value;
}

export function objectIn(value, what) {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) throw new Refusal(`${what} that is no object`);
  return value;
}

export function listIn(value, most, what) {
  if (!Array.isArray(value) || value.length > most) throw new Refusal(`${what} that is no list, or too long`);
  return value;
}

/** The changes in a `call.member` or `call.members`, in order. */
export function changesIn(name, body) {
  if (name === 'call.member') return [body];
  return listIn(body.members, MAX_CHANGES, 'changes').map((change) => objectIn(change, 'a change'));
}

function textIn(value, most, what) {
  if (typeof value !== 'string' || value.length === 0 || value.length > most) throw new Refusal(`${what} of another form`);
  return value;
}

/** A join key: generation 0 in lists, higher generations as `refresh`. */
export function joinKeyIn(value, { isRefresh = false } = {}) {
  const { v, alg, publicKey, generation, at, signature } = objectIn(value, 'a join key');
  if (v !== 2) throw new Refusal('a join key of another version');
  bytesIn(publicKey, 1, SPKI_BYTES, 'a join key');
  bytesIn(signature, 1, ENVELOPE_BYTES, 'a signature');
  whole(generation, isRefresh ? 1 : 0, isRefresh ? MAX_NUMBER : 0, 'a generation');
  return { v, alg: textIn(alg, ALG_BYTES, 'an algorithm'), publicKey, generation, at: timeIn(at), signature };
}

const keysIn = (value) =>
  listIn(value, 8, 'device keys').map((key) => {
    const { use, alg, publicKey } = objectIn(key, 'a device key');
    bytesIn(publicKey, 1, SPKI_BYTES, 'a device key');
    return { use: textIn(use, 16, 'a use'), alg: textIn(alg, ALG_BYTES, 'an algorithm'), publicKey };
  });

/** An entry of a list. With `mayRing`, as in epoch 1, a device that has not joined may be on it: participant 0, without joinId and join key. */
export function entryIn(value, { mayRing = false } = {}) {
  const { user, device, participant, fingerprint, joinId, joinKey, keys, refresh } = objectIn(value, 'an entry');
  hashIn(fingerprint, 'a fingerprint');
  /** @type {any} */
  const entry = { user: idIn(user), device: idIn(device), participant, fingerprint };
  if (mayRing && participant === 0) {
    if (joinId !== undefined || joinKey !== undefined) throw new Refusal('a ring entry that has joined');
    return entry;
  }
  participantIn(participant);
  Object.assign(entry, { joinId: joinIDIn(joinId), joinKey: joinKeyIn(joinKey) });
  if (keys !== undefined) entry.keys = keysIn(keys);
  if (refresh !== undefined) entry.refresh = joinKeyIn(refresh, { isRefresh: true });
  return entry;
}

/** `{epoch, mode, leader, previous, listHash}` with `list`, or `added` and `removed`, and `deliver`: the body of `keys.rotate`. */
export function announcementIn(value) {
  const body = objectIn(value, 'an announcement');
  const epoch = epochIn(body.epoch);
  if (!EPOCH_MODES.includes(body.mode)) throw new Refusal('an epoch of another mode');
  const options = { mayRing: epoch === 1 };
  const entries = (list, what) => listIn(list, MAX_ENTRIES, what).map((entry) => entryIn(entry, options));
  const { admissions, signers } = body; // `words.js` reads them: a list is valid without them
  const announcement = { epoch, mode: body.mode, previous: hashIn(body.previous), listHash: hashIn(body.listHash), admissions, signers };
  if (body.list !== undefined) announcement.list = entries(body.list, 'a list');
  else {
    announcement.added = entries(body.added ?? [], 'an addition');
    announcement.removed = listIn(body.removed ?? [], MAX_ENTRIES, 'a removal').map(participantIn);
  }
  if (body.deliver !== undefined) announcement.deliver = entries(body.deliver, 'a delivery');
  return announcement;
}

/** The reply of `keys/list`: the newest announcement with the rosters of all since. */
export function listReplyIn(value) {
  const announcement = announcementIn(value);
  if (!announcement.list) throw new Refusal('a reply without a list');
  const links = listIn(value.links ?? [], MAX_LINKS, 'links').map((link) => {
    const { epoch, roster } = objectIn(link, 'a link');
    return { epoch: epochIn(epoch), roster: hashIn(roster) };
  });
  return { ...announcement, links, confirmed: bucketsIn(value.confirmed ?? []) };
}

const deviceIn = (value, what) => {
  const { user, device } = objectIn(value, what);
  return { user: idIn(user), device: idIn(device) };
};

/** An envelope, with its ciphertext, key and signature as bytes. */
export function envelopeIn(value) {
  const { epoch, from, to, alg, key, sigAlg, signature, ciphertext, encryptedAESKey } = objectIn(value, 'an envelope');
  if (!signature || !from) throw new Refusal('an envelope without a signature');
  return {
    epoch: epochIn(epoch),
    from: deviceIn(from, 'a sender'),
    to: deviceIn(to, 'a recipient'),
    alg: textIn(alg, ALG_BYTES, 'an algorithm'),
    key: hashIn(key, 'a key hash'),
    sigAlg: textIn(sigAlg, ALG_BYTES, 'an algorithm'),
    signature: bytesIn(signature, 1, ENVELOPE_BYTES, 'a signature'),
    ciphertext: bytesIn(ciphertext ?? encryptedAESKey, 1, ENVELOPE_BYTES, 'a ciphertext'),
  };
}

/** `keys.request`: which device must be given the key of which epoch. */
export function demandIn({ epoch, to }) {
  epochIn(epoch);
  return { epoch, to: entryIn(to) };
}

/** Buckets of confirmations (protocol section 5, "Confirmation"). */
export function bucketsIn(value) {
  return listIn(value, MAX_ENTRIES / 64, 'confirmations').map((bucket) => {
    const { index, who, tag } = objectIn(bucket, 'a bucket');
    const bits = BigInt(`0x${toHex(bytesIn(who, 8, 8, 'a bucket'))}`);
    return { index: whole(index, 0, MAX_ENTRIES / 64 - 1, 'a bucket'), bits, tag: bytesIn(tag, 16, 16, 'a tag') };
  });
}

/** The tags of one bucket, by participant. */
export function tagsIn(value) {
  const tags = new Map();
  for (const { participant, tag } of listIn(objectIn(value, 'tags').tags, 64, 'tags')) tags.set(participantIn(participant), bytesIn(tag, 16, 16, 'a tag'));
  return tags;
}

/** Checks a join's reply: the number that it gives this device must also be in its state. `own`: `{user, device, joinId}`. */
export function replyIn(value, { id, isStart, own }) {
  const { call, participant } = objectIn(value, 'a reply');
  if (objectIn(call, 'a call').id !== callIDIn(id)) throw new Refusal('a reply about another call');
  participantIn(participant);
  // It signs the list of epoch 1 before any reply.
  if (isStart && participant !== 1) throw new Refusal('a start that did not give the number 1');
  const member = listIn(call.members, MAX_ENTRIES, 'members').find(({ user }) => user === own.user);
  const seat = member && memberIn(member).participants.find(({ device }) => device === own.device);
  if (seat?.participant !== participant || seat.joinId !== own.joinId) throw new Refusal('a reply that does not name this join in the call');
  return value;
}

// Shapes: the permitted contents of a reply, an event or a part of one. Each check returns a new value, without anything else that was sent.

/**
 * A check for objects: returns the fields that `required` and `optional` name, each as returned by its own check.
 * @returns {(value: any) => any}
 */
export const shape = (what, required, optional = {}) => (value) => {
  const object = objectIn(value, what);
  const result = {};
  for (const [name, check] of Object.entries(required)) result[name] = check(Object.hasOwn(object, name) ? object[name] : undefined);
  for (const [name, check] of Object.entries(optional)) {
    if (Object.hasOwn(object, name) && object[name] !== undefined) result[name] = check(object[name]);
  }
  return result;
};

export const listOf = (check, most, what) => (value) => listIn(value, most, what).map((each) => check(each));

/** Text that may be empty. */
export const wordsIn = (most) => (value) => {
  if (typeof value !== 'string' || value.length > most) throw new Refusal('a text of another form');
  return value;
};

export function flagIn(value) {
  if (typeof value !== 'boolean') throw new Refusal('a flag of another form');
  return value;
}

export const numberIn = (most = Number.MAX_SAFE_INTEGER) => (value) => whole(value, 0, most, 'a number');

const NAME_LENGTH = 256;

/** A name for people. A longer one is cut: it is the user's choice, and not a fault of the call. */
export function nameTextIn(value) {
  if (typeof value !== 'string') throw new Refusal('a name that is no text');
  return value.slice(0, NAME_LENGTH);
}

const MEMBER_STATES = ['ringing', 'joined', 'left', 'declined', 'missed', 'cancelled', 'disconnected'];

/** A state unknown to this version becomes `unknown`. */
function memberStateIn(value) {
  const state = wordsIn(32)(value);
  return MEMBER_STATES.includes(state) ? state : 'unknown';
}

const trackShape = shape('a track', { track: (value) => (trackIn(value), value) }, { source: wordsIn(32), kind: wordsIn(32), muted: flagIn });
const seatShape = shape(
  'a participant',
  { participant: participantIn, device: idIn, tracks: (value) => listOf(trackShape, MAX_TRACK, 'tracks')(value ?? []) },
  { joinId: joinIDIn, connected: flagIn, held: flagIn },
);
const memberShape = shape('a member', { user: idIn, participants: (value) => listOf(seatShape, MAX_ENTRIES, 'participants')(value ?? []) }, { state: memberStateIn, name: nameTextIn, link: flagIn, cause: wordsIn(32) });

/**
 * A member of a call's state, or a change of one with its `cause`.
 * @returns {any}
 */
export function memberIn(value) {
  const member = memberShape(value);
  for (const { participant, tracks } of member.participants) {
    if (tracks.some(({ track }) => trackIn(track).participant !== participant)) throw new Refusal('a track of another participant');
  }
  return member;
}

const MAX_MEMBERS = 4_096;
const policyIn = shape('a policy', {}, {
  invite: wordsIn(32), whenBusy: wordsIn(32), ringSeconds: numberIn(), screens: numberIn(), aloneSeconds: numberIn(), awaySeconds: numberIn(), connectSeconds: numberIn(), maxHours: numberIn(),
  rotateMinutes: numberIn(), codecs: listOf(wordsIn(32), 64, 'codecs'), record: wordsIn(32),
});
const isRevision = (value) => whole(value, 0, Number.MAX_SAFE_INTEGER, 'a revision');

const MEDIA = ['audio', 'video', 'screen'];
const READERS = 64;

function mediumIn(value) {
  if (!MEDIA.includes(value)) throw new Refusal('an unknown medium');
  return value;
}

const base64In = (most) => (value) => (bytesIn(value, 1, most, 'a field'), value);
const ownerShape = shape('a device', { user: idIn, device: idIn });
const statementShape = shape(
  'a statement',
  {
    id: recordingIDIn, kind: wordsIn(16), publicKey: base64In(SPKI_BYTES), media: listOf(mediumIn, MEDIA.length, 'media'), readers: listOf(idIn, READERS, 'readers'), at: timeIn,
    by: ownerShape, sigAlg: wordsIn(ALG_BYTES), signature: base64In(ENVELOPE_BYTES),
  },
  { call: callIDIn },
);
const consentShape = { participant: participantIn, media: listOf(mediumIn, MEDIA.length, 'media') };
/** The starter's word that it goes on recording in an epoch: the fields of `recording.running`. */
const wordShape = {
  recording: recordingIDIn, epoch: epochIn, participant: participantIn, tracks: listOf((n) => whole(n, 1, MAX_TRACK, 'a track number'), MAX_TRACK, 'tracks'),
  ciphertext: base64In(16_384), sigAlg: wordsIn(ALG_BYTES), signature: base64In(ENVELOPE_BYTES),
};

/** The fields of the events about the recording of a call, by the event's name. */
export const recordingFields = {
  'recording.started': { statement: statementShape, since: timeIn },
  'recording.consent': { recording: recordingIDIn, ...consentShape },
  'recording.running': wordShape,
  'recording.stopped': { recording: recordingIDIn, reason: wordsIn(32) },
};

const recordingIn = shape(
  'a recording',
  { ...recordingFields['recording.started'], consents: listOf(shape('a consent', consentShape), MAX_MEMBERS, 'consents') },
  { running: shape('a word', wordShape) },
);

/** A call's state. */
export const callIn = shape(
  'a state',
  { id: callIDIn, epoch: (value) => whole(value, 0, MAX_NUMBER, 'an epoch'), members: listOf(memberIn, MAX_MEMBERS, 'members') },
  { rev: isRevision, state: wordsIn(32), media: wordsIn(32), initiator: idIn, startedAt: timeIn, answeredAt: timeIn, policy: policyIn, recording: recordingIn },
);

const PICTURES = [undefined, 'lower', 'paused']; // `picture` of a slot (protocol section 6, "Slots")

/** The slots of `media.slots` or of the reply to an offer: by mid, `{participant, n, picture?}`. */
export function slotsIn(value, most) {
  const slots = new Map();
  for (const slot of listIn(value ?? [], most, 'slots')) {
    const { mid, track, picture } = objectIn(slot, 'a slot');
    if (slots.has(textIn(mid, 16, 'a mid'))) throw new Refusal('one slot twice');
    if (!PICTURES.includes(picture)) throw new Refusal('an unknown kind of picture');
    slots.set(mid, picture ? { ...trackIn(track), picture } : trackIn(track));
  }
  return slots;
}
