// Track keys (protocol section 13.1): a participant's device seals the keys of its own tracks in one epoch for a recording's readers, and signs them. The starter's first
// ones of an epoch are also its word that it goes on recording in this epoch.

import { isSignedBy } from '../trust/index.js';
import {
  MAX_TRACK, Refusal, TRACK_KEY_INFO, bytesIn, concat, epochIn, hashIn, hpkeOpen, listIn, participantIn, shape, toBase64, trackKeyBytes, trackKeyContext, whole,
} from '../wire/index.js';
import { signed } from './statement.js';

const SEALED = 65 + 16; // HPKE's point and tag
const EACH = 1 + 32 + 12; // n, key and salt of a track

/** The numbers of tracks, ascending. */
function tracksIn(value) {
  const tracks = listIn(value, MAX_TRACK, 'tracks').map((n) => whole(n, 1, MAX_TRACK, 'a track number'));
  if (tracks.some((n, index) => index > 0 && n <= tracks[index - 1])) throw new Refusal('tracks that do not ascend');
  return tracks;
}

const fields = { epoch: epochIn, participant: participantIn, tracks: tracksIn, ciphertext: (value) => bytesIn(value, SEALED, SEALED + MAX_TRACK * EACH, 'track keys'), ...signed };

/** The starter's word as the server passed it on, with its ciphertext and signature as bytes. */
export const wordIn = shape('a word', fields);

/** Track keys in a manifest. */
export const trackKeysIn = shape('track keys', { ...fields, listHash: hashIn });

/** The request `record/keys`: what the worker has exported, signed. */
export async function signTrackKeys(identity, { recording, epoch, exported: { tracks, context, ciphertext } }) {
  const { sigAlg, signature } = await identity.sign(await trackKeyBytes(context, ciphertext));
  return { recording, epoch, tracks, ciphertext: toBase64(ciphertext), sigAlg, signature: toBase64(signature) };
}

/**
 * Whether the device with `keys` has signed these track keys in this stay: `listHash` is that of the epoch's list, `fingerprint` and `joinId` are the bytes of its entry
 * there.
 */
export async function areSigned({ epoch, participant, tracks, ciphertext, sigAlg, signature }, { st, listHash, fingerprint, joinId, keys }) {
  const context = trackKeyContext({ st, epoch, listHash, participant, fingerprint, joinId, tracks });
  return isSignedBy(keys, sigAlg, signature, await trackKeyBytes(context, ciphertext));
}

/**
 * The keys and salts in `exported` (see `trackKeysIn`) by n, opened with `pair`, the recording's. `stay` is that of the device which must have signed them:
 * `{participant, fingerprint, joinId, keys}`.
 * @returns {Promise<Map<number, {key: CryptoKey, salt: Uint8Array}>>}
 */
export async function openTrackKeys(exported, { st, pair, stay }) {
  const { listHash, tracks, ciphertext } = exported;
  if (exported.participant !== stay.participant || !(await areSigned(exported, { st, listHash, ...stay }))) throw new Refusal('track keys with a wrong signature');
  const aad = trackKeyContext({ st, ...exported, ...stay });
  const plaintext = await hpkeOpen(pair, ciphertext, { info: TRACK_KEY_INFO, aad }).catch(() => concat());
  if (plaintext.length !== tracks.length * EACH || tracks.some((n, index) => plaintext[index * EACH] !== n)) throw new Refusal('track keys that do not open');
  const found = new Map();
  for (const [index, n] of tracks.entries()) {
    const [begin, end] = [index * EACH + 1, (index + 1) * EACH];
    const key = await crypto.subtle.importKey('raw', plaintext.slice(begin, begin + 32), 'AES-GCM', false, ['decrypt']);
    found.set(n, { key, salt: plaintext.slice(begin + 32, end) });
  }
  plaintext.fill(0);
  return found;
}
