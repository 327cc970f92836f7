// A ring brings keys, so that an answer is heard immediately: epoch 1's list and an envelope (protocol section 5, "Ring envelopes"). A doubtful one is not
// used.

import { isWordSigned, sameDevice, wordsIn } from '../trust/index.js';
import { MAX_ENTRIES, Refusal, callIDIn, entryIn, envelopeIn, listIn } from '../wire/index.js';
import { isSealedTo, openEnvelope, wrapKeyHash } from './envelopes.js';
import { isJoinKeySigned } from './join-keys.js';

const CLOCKS_MS = 10 * 60_000; // how far the caller's clock may differ from this one

/** A ring that may be honest: clocks differ, or it arrived again. */
export class StaleRing extends Refusal {}

/**
 * `{accepted, secret}` of a ring: epoch 1 in `history`, and its secret. Throws for a ring that is not from the caller for this call, is too old or too new, or
 * was used before; `used` is a `RingMemory`.
 */
export async function ringKeys({ from, list, envelope: body, admissions }, { history, call, identity, directory, used }) {
  callIDIn(call);
  const entries = listIn(list, MAX_ENTRIES, 'a ring’s list').map((entry) => entryIn(entry, { mayRing: true }));
  const envelope = envelopeIn(body);
  const accepted = await history.beginRung(entries);
  // The caller is the device that has joined; a callee on the list has no key to hand out.
  const [caller, ...others] = entries.filter(({ participant }) => participant > 0);
  if (!caller || others.length > 0 || caller.participant !== 1) throw new Refusal('a ring’s list on which not the caller alone has joined');
  if (envelope.epoch !== 1 || caller.user !== from || !sameDevice(caller, envelope.from)) throw new Refusal('a ring envelope that is not the caller’s');
  if (!isSealedTo(envelope, await wrapKeyHash(identity))) throw new Refusal('a ring envelope that is sealed to another key');
  const [{ keys, problem }] = await directory.examine([caller], { pinsNews: false }); // the person is told about a new device first
  if (!keys || (problem && problem !== 'unverified')) throw new Refusal('a ring envelope of a device that is not trusted');
  if (!(await isJoinKeySigned(caller, caller.joinKey, call, keys))) throw new Refusal('a ring of another call');
  const letIn = wordsIn({ admissions, signers: [] }).words.filter((word) => word.fingerprint === caller.fingerprint && word.user === identity.user && !word.by);
  if (!(await anyOf(letIn, (word) => isWordSigned(word, call, keys)))) throw new Refusal('a ring in which the caller does not let this user in');
  if (Math.abs(Date.now() - caller.joinKey.at) > CLOCKS_MS) throw new StaleRing('a ring of another time');
  if (!(await used.add(call))) throw new StaleRing('a ring that was used before');
  const secret = await openEnvelope(envelope, { identity, call, listHash: accepted.listHash, pair: identity.wrap, keys });
  return { accepted, secret };
}

async function anyOf(items, holds) {
  for (const item of items) if (await holds(item)) return true;
  return false;
}
