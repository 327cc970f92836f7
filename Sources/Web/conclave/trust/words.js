// Words: who lets whom into a call, signed by a device or by a link's secret (protocol section 5.13).

import { isGuest } from '../guests.js';
import { Refusal, bytesIn, concat, fromBase64, hashIn, idIn, lp, objectIn, random, toBase64, utf8 } from '../wire/index.js';
import { isSignedBy } from './identity.js';

const MOST_WORDS = 8_256; // that are read from one body: one per user of the longest list, and 64 links
const SECRET_BYTES = 16;
const LINK_BYTES = 32;
const FINGERPRINT_BYTES = 32;
const SIGNATURE_BYTES = 1_024;
const LINK_SIGNATURE_BYTES = 64;
const PKCS8 = Uint8Array.of(0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20); // of an Ed25519 seed, which follows (RFC 8410)

/** The bytes that a word's signature covers; `fingerprint` and `link` as bytes. */
export const admissionBytes = ({ call, fingerprint, user }) => concat(utf8('conclave-admission-v1'), lp(call), fingerprint, lp(user));
export const callLinkBytes = ({ call, fingerprint, link }) => concat(utf8('conclave-call-link-v1'), lp(call), fingerprint, link);
export const linkJoinBytes = ({ call, link, fingerprint, user }) => concat(utf8('conclave-link-join-v1'), lp(call), link, fingerprint, lp(user));

async function signed(identity, data) {
  const { sigAlg, signature } = await identity.sign(data);
  return { fingerprint: toBase64(identity.fingerprint), sigAlg, signature: toBase64(signature) };
}

/** This device lets `user` in. */
export const makeWord = async (identity, call, user) => ({ user, ...(await signed(identity, admissionBytes({ call, fingerprint: identity.fingerprint, user }))) });

/** This device lets in the holder of the secret of `link`, a public key. */
export const makeLinkWord = async (identity, call, link) => ({
  link: toBase64(link),
  ...(await signed(identity, callLinkBytes({ call, fingerprint: identity.fingerprint, link }))),
});

const toURL = (bytes) => toBase64(bytes).replaceAll('+', '-').replaceAll('/', '_');
const fromURL = (text) => fromBase64(text.replaceAll('-', '+').replaceAll('_', '/'));

/** The secret of a link, and the device that made it. No part of it is ever sent to a server. */
export class LinkSecret {
  /** The fingerprint of the device that made the link, base64. */
  maker;
  #secret;

  constructor(secret, maker) {
    this.#secret = secret;
    this.maker = maker;
  }

  /** A new one. */
  static make(identity) {
    return new LinkSecret(random(SECRET_BYTES), toBase64(identity.fingerprint));
  }

  /** The secret in `text`, as given to people. Throws `Refusal`. */
  static from(text) {
    if (!/^[\w-]{64}$/.test(text)) throw new Refusal('a link’s secret of another form');
    const bytes = fromURL(text);
    return new LinkSecret(bytes.slice(0, SECRET_BYTES), toBase64(bytes.slice(SECRET_BYTES, SECRET_BYTES + FINGERPRINT_BYTES)));
  }

  get text() {
    return toURL(concat(this.#secret, fromBase64(this.maker)));
  }

  /** The public key that represents the link in `call`, 32 bytes. */
  async link(call) {
    return (await this.#pair(call)).link;
  }

  /** The word with which this device joins by the link. */
  async join(identity, call) {
    const { link, key } = await this.#pair(call);
    const { user, fingerprint } = identity;
    const signature = new Uint8Array(await crypto.subtle.sign('Ed25519', key, linkJoinBytes({ call, link, fingerprint, user })));
    return { user, fingerprint: toBase64(fingerprint), link: toBase64(link), signature: toBase64(signature) };
  }

  async #pair(call) {
    const source = await crypto.subtle.importKey('raw', this.#secret, 'HKDF', false, ['deriveBits']);
    const parameters = { name: 'HKDF', hash: 'SHA-512', salt: utf8(call), info: utf8('conclave-link-secret-v1') };
    const seed = new Uint8Array(await crypto.subtle.deriveBits(parameters, source, 256));
    const key = await crypto.subtle.importKey('pkcs8', concat(PKCS8, seed), 'Ed25519', true, ['sign']);
    seed.fill(0);
    const { x } = await crypto.subtle.exportKey('jwk', key);
    return { key, link: fromURL(`${x}=`) };
  }
}

const nameOfUser = (user) => `user/${user}`;
export const nameOfLink = (link) => `link/${link}`;
/** The name that a word by a link lets in: for a guest only one device. */
export const nameOfComer = (user, fingerprint) => (isGuest(user) ? `guest/${user}/${fingerprint}` : nameOfUser(user));

/** The names under which the device of an entry may be let in. */
export const namesOf = ({ user, fingerprint }) => (isGuest(user) ? [nameOfUser(user), nameOfComer(user, fingerprint)] : [nameOfUser(user)]);

/**
 * One word: `name` is who or what it lets in, `user` whom, if it is a user; `by` the link that it is under, if any; `fingerprint` the device that signed it, or
 * that joins by the link; `id` identifies all of it.
 */
function wordIn(value) {
  const { user, link, fingerprint, sigAlg, signature } = objectIn(value, 'a word');
  hashIn(fingerprint, 'a fingerprint');
  const isComing = user !== undefined && link !== undefined;
  if (link !== undefined) bytesIn(link, LINK_BYTES, LINK_BYTES, 'a link');
  bytesIn(signature, 1, isComing ? LINK_SIGNATURE_BYTES : SIGNATURE_BYTES, 'a signature');
  if (!isComing && typeof sigAlg !== 'string') throw new Refusal('a word of another algorithm');
  const name = isComing ? nameOfComer(idIn(user), fingerprint) : user === undefined ? nameOfLink(link) : nameOfUser(idIn(user));
  return { name, user, link, by: isComing ? nameOfLink(link) : undefined, fingerprint, sigAlg, signature, id: [name, fingerprint, link, sigAlg, signature].join(' ') };
}

function signerIn(value) {
  const { user, device, fingerprint, keys } = objectIn(value, 'a signer');
  hashIn(fingerprint, 'a fingerprint');
  if (!Array.isArray(keys)) throw new Refusal('a signer without keys');
  return { user: idIn(user), device: idIn(device), fingerprint, keys: keys.slice(0, 8) };
}

/** The well-formed ones among the first 8,256 of a list; everything else is skipped. */
function readable(list, check) {
  const read = [];
  for (const value of Array.isArray(list) ? list.slice(0, MOST_WORDS) : []) {
    try {
      read.push(check(value));
    } catch (error) {
      if (!(error instanceof Refusal) && !(error instanceof TypeError)) throw error;
    }
  }
  return read;
}

/**
 * `{words, signers}` of a body with `admissions` and `signers`.
 * @param {{ admissions?: any, signers?: any }} body
 */
export const wordsIn = ({ admissions, signers }) => ({ words: readable(admissions, wordIn), signers: readable(signers, signerIn) });

/** Whether the word is signed for `call`, by the device with `keys`, or with the private key of the link that it is under. */
export async function isWordSigned(word, call, keys) {
  const { user, link, fingerprint, sigAlg, signature } = word;
  const scope = { call, fingerprint: fromBase64(fingerprint), user, link: link && fromBase64(link) };
  if (!word.by) return isSignedBy(keys, sigAlg, fromBase64(signature), link ? callLinkBytes(scope) : admissionBytes(scope));
  try {
    const key = await crypto.subtle.importKey('raw', scope.link, 'Ed25519', false, ['verify']);
    return await crypto.subtle.verify('Ed25519', key, fromBase64(signature), linkJoinBytes(scope));
  } catch {
    return false;
  }
}
