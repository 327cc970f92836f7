// Witnesses: a device's signature over a reel's newest hash. It shows whether something before it was changed, left out or cut off since.

import { signed, witnessBytes } from '../consent/index.js';
import { isSignedBy } from '../trust/index.js';
import { MAX_NUMBER, flagIn, hashIn, numberIn, participantIn, shape, toBase64, whole } from '../wire/index.js';

const witnessShape = shape('a witness', {
  reel: participantIn,
  segments: (value) => whole(value, 0, MAX_NUMBER, 'a number of segments'),
  head: (value) => hashIn(value, 'a head'),
  at: numberIn(),
  isEnd: flagIn,
  ...signed,
});

/** A witness as the server passed it on, with its head and signature as bytes. */
export const witnessIn = (value) => witnessShape(value);

/** This device's signature over `{reel, segments, head, at, isEnd}`, as it is sent. The head of no segments are zeros. */
export async function makeWitness(identity, { st, reel, segments, head, at, isEnd }) {
  const { sigAlg, signature } = await identity.sign(witnessBytes({ st, reel, segments, head, at, isEnd }));
  const by = { user: identity.user, device: identity.device };
  return { reel, segments, head: toBase64(head), at, isEnd, by, sigAlg, signature: toBase64(signature) };
}

/** A witness in the form of the header `Conclave-Witness` of a segment's upload. */
export const witnessHeader = ({ at, sigAlg, signature }) => `${at}:${sigAlg}:${signature}`;

/** Whether the device with `keys` has signed `witness` (see `witnessIn`). */
export const isWitnessSigned = (witness, { st, keys }) => isSignedBy(keys, witness.sigAlg, witness.signature, witnessBytes({ ...witness, st }));
