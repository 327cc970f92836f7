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
export const waitingLinkBytes = ({ call, fingerprint, link }) => concat(utf8('conclave-waiting-link-v1'), lp(call), fingerprint, link);
/** `guest` is the fingerprint of the guest's device. */
export const guestAdmissionBytes = ({ call, fingerprint, link, guest, user }) =>
  concat(utf8('conclave-guest-admission-v1'), lp(call), fingerprint, link, guest, lp(user));
export const linkJoinBytes = ({ call, link, fingerprint, user }) => concat(utf8('conclave-link-join-v1'), lp(call), link, fingerprint, lp(user));

async function signed(identity, data) {
  const { sigAlg, signature } = await identity.sign(data);
  return { fingerprint: toBase64(identity.fingerprint), sigAlg, signature: toBase64(signature) };
}

/** This device lets `user` in. */
export const makeWord = async (identity, call, user) => ({ user, ...(await signed(identity, admissionBytes({ call, fingerprint: identity.fingerprint, user }))) });

/** This device lets in the holder of the secret of `link`, a public key; if the link `waits`, guests only once a member has admitted them. */
export const makeLinkWord = async (identity, call, link, { waits = false } = {}) => ({
  link: toBase64(link),
  ...(waits ? { waits } : {}),
  ...(await signed(identity, (waits ? waitingLinkBytes : callLinkBytes)({ call, fingerprint: identity.fingerprint, link }))),
});

/** The word of a guest who comes by a link, as this device admits it. */
export async function admitWord(identity, call, { user, fingerprint, link, signature }) {
  const scope = { call, fingerprint: identity.fingerprint, link: fromBase64(link), guest: fromBase64(fingerprint), user };
  return { user, fingerprint, link, signature, admittedBy: await signed(identity, guestAdmissionBytes(scope)) };
}

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

  /** The id of a lasting link with this secret: all that a server gets of it. */
  async id() {
    const source = await crypto.subtle.importKey('raw', this.#secret, 'HKDF', false, ['deriveBits']);
    const parameters = { name: 'HKDF', hash: 'SHA-512', salt: fromBase64(this.maker), info: utf8('conclave-lasting-link-v1') };
    return toURL(new Uint8Array(await crypto.subtle.deriveBits(parameters, source, 128))).replaceAll('=', '');
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

/** The id of the lasting link with this secret, as given to people. Throws `Refusal`. */
export const lastingLinkID = (text) => LinkSecret.from(text).id();

export const nameOfLink = (link) => `link/${link}`;
/** The name under which the device of an entry may be let in: that of its user, but for a guest only that of the device. */
export const nameOf = ({ user, fingerprint }) => (isGuest(user) ? `guest/${user}/${fingerprint}` : `user/${user}`);

/** A member's signature that admits a guest, `{fingerprint, sigAlg, signature}`. */
function countersignatureIn(value) {
  const { fingerprint, sigAlg, signature } = objectIn(value, 'a signature');
  hashIn(fingerprint, 'a fingerprint');
  bytesIn(signature, 1, SIGNATURE_BYTES, 'a signature');
  if (typeof sigAlg !== 'string') throw new Refusal('a signature of another algorithm');
  return { fingerprint, sigAlg, signature };
}

/**
 * One word: `name` is who or what it lets in, `user` whom, if it is a user; `by` the link that it is under, if any; `fingerprint` the device that signed it, or
 * that joins by the link; `waits`, for a link whose guests wait; `admittedBy` the member's signature that admits a guest; `id` identifies all of it.
 */
function wordIn(value) {
  const { user, link, fingerprint, sigAlg, signature, waits, admittedBy } = objectIn(value, 'a word');
  hashIn(fingerprint, 'a fingerprint');
  const isComing = user !== undefined && link !== undefined;
  if (link !== undefined) bytesIn(link, LINK_BYTES, LINK_BYTES, 'a link');
  bytesIn(signature, 1, isComing ? LINK_SIGNATURE_BYTES : SIGNATURE_BYTES, 'a signature');
  if (!isComing && typeof sigAlg !== 'string') throw new Refusal('a word of another algorithm');
  if (!isComing && isGuest(user)) throw new Refusal('a guest without a link');
  if (waits !== undefined && (user !== undefined || waits !== true)) throw new Refusal('a word that waits');
  if (admittedBy !== undefined && !isComing) throw new Refusal('a signature for nobody');
  const name = user === undefined ? nameOfLink(link) : nameOf({ user: idIn(user), fingerprint });
  const signed = { fingerprint, link, sigAlg, signature, waits, admittedBy: admittedBy && countersignatureIn(admittedBy) };
  return { name, user, by: isComing ? nameOfLink(link) : undefined, ...signed, id: `${name} ${JSON.stringify(signed)}` };
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

/** Whether the word is that of a guest who comes by a link. */
export const isOfGuest = ({ by, user }) => Boolean(by) && isGuest(user);

/** Whether the device with `keys` has admitted the guest whose word it is. */
export function isGuestAdmitted({ user, link, fingerprint, admittedBy }, call, keys) {
  const scope = { call, fingerprint: fromBase64(admittedBy.fingerprint), link: fromBase64(link), guest: fromBase64(fingerprint), user };
  return isSignedBy(keys, admittedBy.sigAlg, fromBase64(admittedBy.signature), guestAdmissionBytes(scope));
}

/** Whether the word is signed for `call`, by the device with `keys`, or with the private key of the link that it is under. */
export async function isWordSigned(word, call, keys) {
  const { user, link, fingerprint, sigAlg, signature, waits } = word;
  const scope = { call, fingerprint: fromBase64(fingerprint), user, link: link && fromBase64(link) };
  const bytesOf = link ? (waits ? waitingLinkBytes : callLinkBytes) : admissionBytes;
  if (!word.by) return isSignedBy(keys, sigAlg, fromBase64(signature), bytesOf(scope));
  try {
    const key = await crypto.subtle.importKey('raw', scope.link, 'Ed25519', false, ['verify']);
    return await crypto.subtle.verify('Ed25519', key, fromBase64(signature), linkJoinBytes(scope));
  } catch {
    return false;
  }
}
