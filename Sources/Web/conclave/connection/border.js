// The border: each reply and each event of the server enters the client here, and nowhere else. The tables contain the bodies of the protocol (docs/clients.md,
// section 6) as far as this client reads them. A body contributes only the fields that its table names, each with its type and within its bounds.
// Everything else that was sent stays outside, and the page never sees it. A field of another type, or a missing one, makes the whole body malformed.
//
// The bodies of `keys.*`, and a ring's list, envelope and words, are passed on field by field: the key agreement reads each of them with separate checks
// (`checks.js`) and reports what it refused. So are those of recordings, which `recordings/manifest.js` and `recordings/recordings.js` read.

import {
  Refusal, callIDIn, callIn, epochIn, flagIn, idIn, listOf, memberIn, nameTextIn, numberIn, objectIn, participantIn, recordingFields,
  shape, wordsIn,
} from '../wire/index.js';

const MEMBERS = 4_096;
const CALLS = 1_000;
const DEVICES = 8_192;
const LINKS = 1_024;
const BODY = 32_768; // base64 of a message or a step of pairing
const SDP = 1_048_576;
const TOKEN = 4_096;

/** A body that does not fit its table. `code` is for code that handles errors of requests. */
export class Malformed extends Refusal {
  code = 'reply.refused';
}

const asItIs = (value) => value;
const time = numberIn();
const bytes = (most) => wordsIn(most);
const list = (check, most = MEMBERS) => listOf(check, most, 'a list');
const nothing = shape('a reply', {});
const part = (...names) => Object.fromEntries(names.map((name) => [name, asItIs]));

/** Texts by id, such as the result of each callee. */
function textsByID(value) {
  const entries = Object.entries(objectIn(value, 'results'));
  if (entries.length > MEMBERS) throw new Refusal('too many results');
  return Object.fromEntries(entries.map(([user, result]) => [idIn(user), wordsIn(64)(result)]));
}

const deviceKey = shape('a device key', { use: wordsIn(16), alg: wordsIn(64), publicKey: bytes(8_192) });
const statement = { device: idIn, fingerprint: bytes(64), by: idIn, byFingerprint: bytes(64), at: time, sigAlg: wordsIn(64), signature: bytes(8_192) };
const listedDevice = shape('a device', { user: idIn, device: idIn, keys: list(deviceKey, 8), fingerprint: bytes(64) }, { name: nameTextIn, registeredAt: time, vouches: list(shape('a vouch', statement), DEVICES) });
const iceServer = shape('a server', { urls: list(wordsIn(512), 16) }, { username: wordsIn(512), credential: wordsIn(512) });
const ice = shape('ice', {}, { servers: list(iceServer, 64) });
const joined = shape('a reply', { call: callIn, participant: participantIn }, { ice, results: textsByID });
const slot = shape('a slot', { mid: wordsIn(16), track: wordsIn(32) }, { participant: numberIn(), source: wordsIn(32), picture: wordsIn(16) });
const slots = { rev: numberIn(), receive: list(slot, 256), unsupported: list(wordsIn(32)) };
const presence = shape('a presence', { user: idIn, state: wordsIn(32) });
const past = shape(
  'a past call',
  { id: callIDIn, members: list(shape('a member', { user: idIn }, { name: nameTextIn })) },
  { direction: wordsIn(32), outcome: wordsIn(32), media: wordsIn(32), startedAt: time, seconds: numberIn(), rejoinable: flagIn },
);

/** The id of a lasting link. */
function linkIDIn(value) {
  if (typeof value !== 'string' || !/^[\w-]{21}[AQgw]$/.test(value)) throw new Refusal('the id of a link');
  return value;
}

const lastingLink = shape('a link', { link: linkIDIn, device: idIn, expiresAt: time }, { call: callIDIn });
const openedLink = shape('a reply', { expiresAt: time }, { name: nameTextIn, call: callIDIn, token: wordsIn(TOKEN) });

/** `call` and `token` come together. */
function openedLinkIn(value) {
  const opened = openedLink(value);
  if ((opened.call === undefined) !== (opened.token === undefined)) throw new Refusal('half an opened link');
  return opened;
}

/** The path omits the id of a call and of a track. */
const REPLIES = new Map(Object.entries({
  'devices/register': shape('a reply', {}, { fingerprint: bytes(64), pushKey: bytes(256) }),
  'devices/list': shape('a reply', { devices: list(listedDevice, DEVICES) }, { revokes: list(shape('a revocation', { user: idIn, ...statement }), DEVICES), seen: list(shape('a day', { device: idIn, day: time }), DEVICES) }),
  'devices/remove': nothing,
  'devices/vouch': nothing,
  'devices/revoke': nothing,
  'devices/pair': nothing,
  'devices/push': nothing,
  'calls/start': joined,
  'calls/list': shape('a reply', { calls: list(callIn, CALLS) }),
  'calls/accept': joined,
  'calls/join': joined,
  'calls/rejoin': joined,
  'calls/transfer': joined,
  'calls/decline': nothing,
  'calls/invite': shape('a reply', { results: textsByID }),
  'calls/cancel': nothing,
  'calls/leave': nothing,
  'calls/end': nothing,
  'calls/link': shape('a reply', {}, { link: wordsIn(TOKEN), expiresAt: time }),
  'calls/hold': nothing,
  'calls/knock': shape('a reply', { expiresAt: time }),
  'calls/admit-guest': nothing,
  'calls/refuse-guest': nothing,
  'calls/remove-guest': nothing,
  'calls/state': callIn,
  'calls/media': shape('a reply', { sdp: wordsIn(SDP), tracks: list(shape('a track', { mid: wordsIn(16) }, part('track')), 256) }, slots), // `ServerPath` reports which of its own tracks it refused
  'calls/tracks': nothing,
  'calls/receive': nothing,
  'calls/message': nothing,
  'calls/stats': nothing,
  'calls/report': nothing,
  'calls/keys': nothing,
  'calls/keys/request': nothing,
  'calls/keys/list': shape('a reply', {}, part('epoch', 'mode', 'previous', 'listHash', 'list', 'links', 'confirmed', 'admissions', 'signers')),
  'calls/keys/wait': nothing,
  'calls/keys/confirm': nothing,
  'calls/keys/confirmations': shape('a reply', {}, part('tags')),
  'links/make': lastingLink,
  'links/list': shape('a reply', { links: list(lastingLink, LINKS), days: numberIn() }),
  'links/delete': nothing,
  'links/open': openedLinkIn,
  'calls/record/start': nothing,
  'calls/record/consent': shape('a reply', { epoch: epochIn }),
  'calls/record/keys': nothing,
  'calls/record/stop': nothing,
  'presence/set': nothing,
  'presence/watch': shape('a reply', {}, { users: list(presence) }),
  'history/list': shape('a reply', { calls: list(past, CALLS) }),
  'history/delete': nothing,
  'recordings/start': shape('a reply', {}, part('recording', 'ticket', 'limits', 'results')),
  'recordings/finish': nothing,
  'recordings/list': shape('a reply', {}, part('recordings')),
  'recordings/get': shape('a reply', {}, part('statement', 'state', 'bytes', 'people', 'reelKeys', 'reels', 'grants', 'notes', 'witnesses', 'trackKeys', 'readers')),
  'recordings/share': nothing,
  'recordings/note': nothing,
  'recordings/seen': nothing,
  'recordings/delete': nothing,
  'recordings/erase': nothing,
  'history/totals': shape('a reply', { calls: numberIn(), seconds: numberIn() }),
}));

const ofCall = { call: callIDIn };
const rev = { at: time, rev: numberIn() };
const event = (required, optional = {}) => shape('an event', { ...ofCall, ...required }, { at: time, ...optional });
const ring = event({}, { by: idIn });
const track = event({ track: wordsIn(32), participant: participantIn }, { ...rev, source: wordsIn(32), kind: wordsIn(32), muted: flagIn, cause: wordsIn(32) });
const device = shape('a device', { user: idIn, device: idIn });
const ofRecording = (required, optional = {}) => shape('an event', { recording: callIDIn, ...required }, { at: time, ...optional });
/** An event whose body is a member or a state, with the fields that every event has. */
const and = (base, check) => (value) => ({ ...check(value), ...base(value) });

const EVENTS = new Map(Object.entries({
  'call.ring': event(
    { from: idIn, media: wordsIn(32), members: list(memberIn), expiresAt: time },
    { waiting: flagIn, metadata: bytes(8_192), ...part('envelope', 'list', 'admissions', 'signers') },
  ),
  'call.answered-elsewhere': ring,
  'call.declined-elsewhere': ring,
  'call.cancelled': ring,
  'call.missed': ring,
  'call.member': and(event({}, rev), memberIn),
  'call.members': event({ members: list(memberIn, 64) }, rev),
  'call.state': and(event({}), callIn),
  'call.ended': event({ reason: wordsIn(64) }, { by: idIn, seconds: numberIn() }),
  'guest.knock': event({ user: idIn, expiresAt: time }, { name: nameTextIn, ...part('admissions', 'signers') }),
  'guest.knock-over': event({ user: idIn, outcome: wordsIn(16) }),
  'track.added': track,
  'track.updated': track,
  'track.removed': track,
  quality: event({ level: numberIn(4) }),
  'keys.rotate': event({}, part('epoch', 'mode', 'leader', 'previous', 'listHash', 'list', 'added', 'removed', 'deliver', 'admissions', 'signers')),
  'keys.envelope': event({}, part('epoch', 'to', 'from', 'key', 'alg', 'ciphertext', 'encryptedAESKey', 'sigAlg', 'signature')),
  'keys.switch': event({ epoch: asItIs }, rev),
  'keys.request': event({}, part('epoch', 'to')),
  'keys.waiting': event({ epoch: epochIn, participant: participantIn, reason: wordsIn(32) }),
  'keys.confirmed': event({}, part('epoch', 'buckets')),
  'keys.devices-changed': shape('an event', { user: idIn }, { at: time, ...ofCall }),
  ...Object.fromEntries(Object.entries(recordingFields).map(([name, fields]) => [name, event(fields, rev)])),
  'device.pair': shape('an event', { from: idIn, body: bytes(BODY) }, { at: time }),
  'media.slots': event({}, slots),
  'media.need': event({ audio: numberIn(255), video: numberIn(255) }),
  'media.wanted': event({ track: wordsIn(32), layers: list(shape('a layer', { rid: wordsIn(16), active: flagIn }), 16) }),
  message: event({ from: participantIn, body: bytes(BODY) }),
  'link.changed': shape('an event', { link: linkIDIn }, { at: time }),
  'link.waiting': shape('an event', { link: linkIDIn }, { at: time }),
  presence: shape('an event', { user: idIn, state: wordsIn(32) }, { at: time }),
  'recording.shared': ofRecording({ kind: wordsIn(32), by: device }, { alert: flagIn, ...part('grant') }),
  'recording.changed': ofRecording(
    { state: wordsIn(32), reels: list(shape('a reel', { participant: participantIn, segments: numberIn(), head: bytes(64) }), 256) },
    { notes: numberIn() },
  ),
  'recording.seen': ofRecording({ by: device }),
  'recording.reached': ofRecording({ by: device }),
  'recording.removed': ofRecording({}, { by: device }),
}));

/** The row for a request's path: `calls/6f0c…/tracks/1.1` is in the row `calls/tracks`. */
function rowOf(path) {
  const [family, ...rest] = path.split('/');
  if (family !== 'calls' || rest.length < 2) return path;
  return rest[1] === 'tracks' ? 'calls/tracks' : ['calls', ...rest.slice(1)].join('/');
}

function checked(check, value) {
  try {
    return check(value);
  } catch (error) {
    throw error instanceof Refusal ? new Malformed(error.message) : error;
  }
}

/** The body of the reply to a request at `path` (without `/app/`). Throws `Malformed`. */
export function replyFrom(path, body) {
  const check = REPLIES.get(rowOf(path));
  if (!check) throw new Malformed('a reply that has no table');
  return checked(check, body);
}

/** The body of an event; undefined for an unknown one. Throws `Malformed`. */
export function eventFrom(name, body) {
  const check = EVENTS.get(name);
  return check && checked(check, body);
}

const failure = shape('an error', { code: wordsIn(64) }, { message: wordsIn(4_096), field: wordsIn(256), retryAfterMs: numberIn(), call: callIDIn });

/** The failure of a request: `{code, message, field?, retryAfterMs?, call?}`. */
export function failureFrom(body) {
  try {
    return failure(body.error);
  } catch {
    return { code: 'reply.refused', message: 'The server’s answer does not fit what was asked.' };
  }
}

/** The names in the tables, for the tests that compare them with the protocol. */
export const known = { replies: [...REPLIES.keys()], events: [...EVENTS.keys()] };
