// The manifest of a recording: the reply of `recordings/get`. It is the server's word: `recording-reader.js` checks what is signed in it, and
// `reel-reader.js` the files that it lists.

import { grantIn, signed, statementIn, trackKeysIn } from '../consent/index.js';
import {
  MAX_ENTRIES, bytesIn, hashIn, idIn, listIn, listOf, nameTextIn, numberIn, participantIn, shape, whole, wordsIn,
} from '../wire/index.js';
import { MAX_NOTES, noteIn } from './notes.js';
import { MAX_SEGMENT, MAX_SEGMENTS, MIN_SEALED } from './segment.js';
import { witnessIn } from './witnesses.js';

const MAX_MEMBERS = 16; // in a row of the list
const MAX_GRANTS = 64;
const MAX_TRACK_KEYS = 65_536;
const MAX_CIPHERTEXT = 4_096;
const time = numberIn();

const deviceKey = shape('a device key', { use: wordsIn(16), alg: wordsIn(64), publicKey: wordsIn(8_192) });
const person = shape(
  'a person',
  { participant: participantIn, user: idIn, device: idIn, fingerprint: (value) => (hashIn(value, 'a fingerprint'), value), keys: listOf(deviceKey, 8, 'keys') },
  { name: nameTextIn, joinId: (value) => bytesIn(value, 16, 16, 'a joinId') },
);

const reelKey = shape('a reel key', { reel: participantIn, ciphertext: (value) => bytesIn(value, 1, MAX_CIPHERTEXT, 'a reel key'), ...signed });

/** `[bytes, hash, start]`, the start in µs since 1970; what else a server adds is not used. */
function segmentIn(value) {
  const [bytes, hash, start] = listIn(value, MAX_MEMBERS, 'a segment');
  return { bytes: whole(bytes, MIN_SEALED, MAX_SEGMENT, 'a size'), hash: hashIn(hash), start: time(start) };
}

const reelShape = shape('a reel', {
  participant: participantIn,
  from: (value) => whole(value ?? 0, 0, MAX_SEGMENTS, 'a number'),
  segments: listOf(segmentIn, MAX_SEGMENTS, 'segments'),
});

function reelIn(value) {
  const { participant, ...reel } = reelShape(value);
  return { reel: participant, ...reel };
}

/**
 * A recording's manifest, or a page of it.
 * @returns {any}
 */
export const manifestIn = shape(
  'a manifest',
  { statement: statementIn, people: listOf(person, MAX_ENTRIES, 'people'), reels: listOf(reelIn, MAX_ENTRIES, 'reels') },
  {
    state: wordsIn(32),
    bytes: numberIn(),
    reelKeys: listOf(reelKey, MAX_ENTRIES, 'reel keys'),
    grants: listOf(grantIn, MAX_GRANTS, 'grants'),
    notes: listOf(noteIn, MAX_NOTES, 'notes'),
    witnesses: listOf(witnessIn, MAX_ENTRIES, 'witnesses'),
    readers: listOf(shape('a reader', { user: idIn }, { seenAt: time, alertedAt: time, reachedAt: time }), MAX_GRANTS, 'readers'),
    trackKeys: listOf(trackKeysIn, MAX_TRACK_KEYS, 'track keys'),
  },
);

const PAGE = 1_000; // segments
/** Whether there may be another page behind this one. */
export const pageIsFull = ({ reels }) => reels.some(({ segments }) => segments.length > 0 && segments.length % PAGE === 0);
