// The server's words are checked before they are used: numbers, ids, base64, list entries (protocol section 5, "Numbers"). Anything else throws `Refusal`.

import { fromBase64, toHex } from './bytes.js';

/** Why something the server sent is not accepted; a reason in words for the console. */
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
const TRACKS = /^([1-9]\d{0,9})\.([1-9]\d{0,2})$/;

export const isWhole = (value, least, most) => Number.isSafeInteger(value) && value >= least && value <= most;

/** `value` if it is a whole number from `least` to `most`; a string or a fraction is none. */
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

function objectIn(value, what) {
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

/** A join key: generation 0 in lists, higher ones as `refresh`. */
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

/** An entry of a list. With `mayRing`, as in epoch 1, a device that has not joined may be on it: participant 0, no joinId, no join key. */
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
  const announcement = { epoch, mode: body.mode, previous: hashIn(body.previous), listHash: hashIn(body.listHash) };
  if (body.list !== undefined) announcement.list = entries(body.list, 'a list');
  else {
    announcement.added = entries(body.added ?? [], 'an addition');
    announcement.removed = listIn(body.removed ?? [], MAX_ENTRIES, 'a removal').map(participantIn);
  }
  if (body.deliver !== undefined) announcement.deliver = entries(body.deliver, 'a delivery');
  return announcement;
}

/** The reply of `keys/list`: the newest announcement with the rosters of those since. */
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

/** `keys.request`: who is to be given the key of which epoch. */
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

/**
 * Checks a join's reply: the number that it gives this device must be in its state too. `own`: `{user, device, joinId}`.
 */
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

/** A member of a call's state: `{user, participants}` with numbers and joinIds that can be used. Other members pass as they are. */
export function memberIn(value) {
  const member = objectIn(value, 'a member');
  idIn(member.user);
  const participants = listIn(member.participants ?? [], MAX_ENTRIES, 'participants').map((seat) => {
    const { participant, device, joinId, tracks = [] } = objectIn(seat, 'a participant');
    participantIn(participant);
    idIn(device);
    if (joinId !== undefined) joinIDIn(joinId);
    const own = listIn(tracks, MAX_TRACK, 'tracks');
    for (const track of own) if (trackIn(objectIn(track, 'a track').track).participant !== participant) throw new Refusal('a track of another participant');
    return { ...seat, tracks: own };
  });
  return { ...member, participants };
}

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
