// Notes of a recording: its title, the place, the device, texts. The server sees their number and a length that is rounded up.

import { NOTE_INFO, noteBytes, noteData, signed } from '../consent/index.js';
import { isSignedBy } from '../trust/index.js';
import { Refusal, bytesIn, concat, hpkeOpen, hpkeSeal, numberIn, objectIn, shape, toBase64, utf8 } from '../wire/index.js';

export const MAX_NOTES = 1_000;
const MAX_NOTE = 2_048;
const BLOCK = 256;
const SEAL_BYTES = 81; // point and tag

const noteShape = shape('a note', {
  number: numberIn(MAX_NOTES - 1),
  ciphertext: (value) => bytesIn(value, SEAL_BYTES + BLOCK, SEAL_BYTES + MAX_NOTE, 'a note'),
  ...signed,
});

/** A note as the server passed it on, with its ciphertext and signature as bytes. */
export const noteIn = (value) => noteShape(value);

/** `content` as note `number`, sealed to the recording key `publicKey` and signed. */
export async function makeNote(identity, content, { st, number, publicKey }) {
  const text = utf8(JSON.stringify(content));
  if (text.length > MAX_NOTE) throw new RangeError('a note of more than 2 KiB');
  const padded = concat(text, utf8(' '.repeat((BLOCK - (text.length % BLOCK)) % BLOCK)));
  const ciphertext = await hpkeSeal(publicKey, padded, { info: NOTE_INFO, aad: noteData({ st, number }) });
  const { sigAlg, signature } = await identity.sign(await noteBytes({ st, number, ciphertext }));
  return { number, ciphertext: toBase64(ciphertext), sigAlg, signature: toBase64(signature) };
}

/** The content of `note` (see `noteIn`), an object, which the starter's device with `keys` has signed. `pair` is the recording's. */
export async function openNote({ number, ciphertext, sigAlg, signature }, { st, pair, keys }) {
  if (!(await isSignedBy(keys, sigAlg, signature, await noteBytes({ st, number, ciphertext })))) throw new Refusal('a note with a wrong signature');
  const padded = await hpkeOpen(pair, ciphertext, { info: NOTE_INFO, aad: noteData({ st, number }) }).catch(() => undefined);
  if (!padded) throw new Refusal('a note that does not open');
  try {
    return objectIn(JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(padded)), 'a note');
  } catch {
    throw new Refusal('a note of another form');
  }
}
