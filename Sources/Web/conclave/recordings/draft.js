// A recording of this device that was not sent yet, as its readers would play it: from the store, without the server.

import { grantIn, openGrant } from '../consent/index.js';
import { fromBase64 } from '../wire/index.js';
import { openReelKey } from './chain-key.js';
import { ReelReader } from './reel-reader.js';
import { ReelSource } from './reel-source.js';
import { SealedContents } from './sealed-contents.js';
import { REEL, parseHeader } from './segment.js';

/**
 * `{reels}` of the recording with `row`, as `Recordings.open` returns them. `own` is this device, see `openGrant`, and `identity` the one that has signed
 * the recording. Segments that the server has and this device no more are gaps.
 */
export async function openDraft(store, row, { identity: { keys, fingerprint }, own }) {
  const { id, st, statement, reelKey, grant } = row;
  const { scalar, pair } = await openGrant(grantIn(grant), { id, st, publicKey: fromBase64(statement.publicKey), own, keys });
  scalar.fill(0);
  const key = { ...reelKey, ciphertext: fromBase64(reelKey.ciphertext), signature: fromBase64(reelKey.signature) };
  const chainKey = await openReelKey(key, { id, st, reel: REEL, pair, keys, fingerprint });
  const reel = new ReelReader({ id, contents: new SealedContents(chainKey), segments: await listedIn(store, id), witnesses: [] });
  return { reels: [{ number: REEL, reel, source: new ReelSource(reel, async (n) => (await store.get('segments', [id, n])).file) }] };
}

/** The segments as a server lists them. One without its file begins where the next one does. */
async function listedIn(store, id) {
  const { n: count } = await store.get('chains', id);
  const kept = await Promise.all(Array.from({ length: count }, (_, n) => store.get('segments', [id, n])));
  let next = 0;
  const listed = kept.reverse().map(({ file, hash }) => {
    next = file ? parseHeader(file).start : next;
    return { bytes: file?.length ?? 0, hash, start: next };
  });
  return listed.reverse();
}

/** How long the recording with `row` is so far, in ms; 0 if nothing was sealed. */
export async function draftLength(store, { id, startedAt }) {
  const { n: count, end } = await store.get('chains', id);
  if (count === 0) return 0;
  const { file } = await store.get('segments', [id, 0]);
  return end / 1_000 - (file ? parseHeader(file).start / 1_000 : startedAt);
}
