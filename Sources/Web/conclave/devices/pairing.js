// Pairing of two devices of one user by six digits (protocol section 5): the new device shows them, the person types them into the existing one. The new device
// commits to its key and nonce before it sees the other's, so a server in between has one guess in a million.

import { concat, equal, fromBase64, lp, sha256, toBase64, utf8 } from '../wire/index.js';

const SESSION_BYTES = 16;
const HASH_BYTES = 32;
const MAXIMUM_BODY = 4_096;
const SESSION_MS = 2 * 60_000;
const HOUR_MS = 3_600_000;
const SESSIONS_PER_HOUR = 5;
const TRIES = 3; // all of them are for the digits on the other screen: another try is not another guess for an attacker
const QR_PREFIX = 'conclave-device:';

export const commitmentOf = (session, fingerprint, nonce) =>
  sha256(concat(utf8('conclave-pair-commit-v1'), session, fingerprint, nonce));

/** The six digits. `theNew` and `existing` are `{fingerprint, nonce}` of the two devices. */
export async function pairingCode({ user, session, theNew, existing }) {
  const parts = [session, theNew.fingerprint, existing.fingerprint, theNew.nonce, existing.nonce];
  const digest = await sha256(concat(utf8('conclave-pair-code-v1'), lp(user), ...parts));
  return (new DataView(digest.buffer).getBigUint64(0) % 1_000_000n).toString().padStart(6, '0');
}

/** The text that the new device shows for a camera or the clipboard. */
export const deviceText = (fingerprint) =>
  QR_PREFIX + toBase64(fingerprint).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');

/** The fingerprint, base64, in such a text; undefined if it contains none. */
export function fingerprintIn(text) {
  const [, digits] = /^conclave-device:([\w-]{43})$/.exec(text.trim()) ?? [];
  if (!digits) return undefined;
  const base64 = `${digits.replaceAll('-', '+').replaceAll('_', '/')}=`;
  try {
    fromBase64(base64); // canonical, as the list of devices has it
    return base64;
  } catch {
    return undefined;
  }
}

/** The body of a pairing message, checked; undefined for anything else. */
function read(body) {
  try {
    if (typeof body !== 'string' || body.length > MAXIMUM_BODY * 1.5) return undefined;
    const { session, step, ...fields } = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(fromBase64(body)));
    const bytes = (name, count) => {
      const value = fromBase64(fields[name]);
      if (value.length !== count) throw new RangeError(name);
      return value;
    };
    const wanted = { commit: ['commit'], open: ['fingerprint', 'nonce'], reveal: ['fingerprint', 'nonce'], done: [], cancel: [] }[step];
    fields.session = session;
    /** @type {any} */
    const message = { step, session: bytes('session', SESSION_BYTES) };
    for (const name of wanted) message[name] = bytes(name, HASH_BYTES);
    return message;
  } catch {
    return undefined;
  }
}

const write = ({ session, step, ...fields }) => {
  const texts = Object.entries({ session, ...fields }).map(([name, value]) => [name, toBase64(value)]);
  return toBase64(utf8(JSON.stringify({ step, ...Object.fromEntries(texts) })));
};

/**
 * One device's part in pairing, one session at a time. Times are in ms, `random(count)` returns bytes. Methods that return a message return `{to, body}` for
 * `devices/pair`.
 *
 * `state`, on the new device: `idle`, `committed` (waits for the other), `showing` (its `code`), `asking` (whether the other device says that it is confirmed),
 * `confirmed`. On the existing one: `idle`, `waiting` (for a new device), `opened`, `typing` (the code), `confirmed`. On both: `failed`, with a `reason`:
 * `cancelled`, `expired`, `broken` (a message out of order, or a key other than the committed one), `wrong-code`, `refused`.
 */
export class Pairing {
  state = 'idle';
  reason;
  /** The other device's id, and its fingerprint in bytes, once they are known. */
  peer;
  peerFingerprint;
  /** The six digits: only the new device shows them. */
  code;
  #user;
  #fingerprint;
  #random;
  #session;
  #nonce;
  #commitment;
  #expected;
  #tries = 0;
  #endsAt = 0;
  #begun = [];

  /** `user` and `fingerprint` are this device's. */
  constructor({ user, fingerprint, random }) {
    this.#user = user;
    this.#fingerprint = fingerprint;
    this.#random = random;
  }

  get isRunning() {
    return !['idle', 'confirmed', 'failed'].includes(this.state);
  }

  /** The end of the running session. */
  get endsAt() {
    return this.isRunning ? this.#endsAt : undefined;
  }

  /** The existing device: the person wants to confirm a new one. Returns whether that is possible now. */
  open(now) {
    if (!this.#mayBegin(now)) return false;
    this.#reset('waiting', now);
    return true;
  }

  /** The new device: the commitment for the existing device `to`; undefined if none can be sent now. */
  async begin(to, now) {
    if (!this.#mayBegin(now)) return undefined;
    this.#reset('committed', now);
    this.peer = to;
    this.#session = this.#random(SESSION_BYTES);
    this.#nonce = this.#random(HASH_BYTES);
    const session = this.#session;
    const commit = await commitmentOf(session, this.#fingerprint, this.#nonce);
    return this.#session === session && this.state === 'committed' ? this.#message('commit', { commit }) : undefined;
  }

  /** The event `device.pair`. Resolves with the answer to it, if there is one. */
  async take({ from, body }, now) {
    this.tick(now);
    const message = read(body);
    if (!message || typeof from !== 'string' || !this.isRunning) return undefined;
    if (this.state === 'waiting') return this.#opens(from, message, now);
    // A message of another session is ignored: its sender must not be able to end this one.
    if (from !== this.peer || !equal(message.session, this.#session)) return undefined;
    if (message.step === 'cancel') return void this.#fail('cancelled');
    if (this.state === 'committed' && message.step === 'open') return this.#reveal(message, now);
    if (this.state === 'opened' && message.step === 'reveal') return this.#check(message);
    if (this.state === 'showing' && message.step === 'done') this.state = 'asking';
    else return this.#break();
    return undefined;
  }

  /**
   * The existing device: the digits that the person typed. Returns whether they are right; `peer` then has `peerFingerprint`, if the server's list of devices
   * agrees. After three wrong attempts the session is over.
   */
  enter(digits, now) {
    this.tick(now);
    if (this.state !== 'typing') return false;
    if (digits === this.#expected) {
      this.state = 'confirmed';
      return true;
    }
    this.#tries += 1;
    if (this.#tries >= TRIES) this.#fail('wrong-code');
    return false;
  }

  /** The existing device has confirmed the new one and notifies it. */
  done() {
    return this.state === 'confirmed' ? this.#message('done') : undefined;
  }

  /** The new device: the person says that the other one says “confirmed”. Returns whether that counts. */
  confirm(now) {
    this.tick(now);
    if (this.state !== 'asking') return false;
    this.state = 'confirmed';
    return true;
  }

  /** Ends the session here. Returns the message for the other device, if one is known; it is `refused` if the other's key is not its own. */
  cancel(reason = 'cancelled') {
    const message = this.peer && this.#session ? this.#message('cancel') : undefined;
    const wasConfirmed = this.state === 'confirmed' && reason === 'refused';
    if (!this.isRunning && !wasConfirmed) return undefined;
    this.#fail(reason);
    return message;
  }

  /** Back to `idle`, unless a session runs. */
  renew() {
    if (!this.isRunning) this.#reset('idle', 0);
  }

  /** Ends a session that has lasted 2 minutes. */
  tick(now) {
    if (this.isRunning && now >= this.#endsAt) this.#fail('expired');
  }

  #mayBegin(now) {
    this.tick(now);
    this.#begun = this.#begun.filter((time) => now - time < HOUR_MS);
    return !this.isRunning && this.#begun.length < SESSIONS_PER_HOUR;
  }

  #reset(state, now) {
    Object.assign(this, { state, reason: undefined, peer: undefined, peerFingerprint: undefined, code: undefined });
    this.#session = this.#nonce = this.#commitment = this.#expected = undefined;
    this.#tries = 0;
    this.#endsAt = now + SESSION_MS;
  }

  /** E: a commitment; the own key and nonce are sent only now. */
  #opens(from, { step, session, commit }, now) {
    if (step !== 'commit') return undefined;
    this.#begun.push(now);
    this.state = 'opened';
    this.peer = from;
    this.#session = session;
    this.#commitment = commit;
    this.#nonce = this.#random(HASH_BYTES);
    return this.#message('open', { fingerprint: this.#fingerprint, nonce: this.#nonce });
  }

  /** N: the other's key and nonce are here, so the own ones may be revealed. */
  async #reveal({ session, fingerprint, nonce }, now) {
    if (equal(fingerprint, this.#fingerprint)) return this.#break();
    this.#begun.push(now);
    this.state = 'showing';
    this.peerFingerprint = fingerprint;
    const theNew = { fingerprint: this.#fingerprint, nonce: this.#nonce };
    const code = await pairingCode({ user: this.#user, session, theNew, existing: { fingerprint, nonce } });
    if (this.state !== 'showing' || !equal(session, this.#session)) return undefined;
    this.code = code;
    return this.#message('reveal', theNew);
  }

  /** E: the revealed values must match the commitment. */
  async #check({ session, fingerprint, nonce }) {
    const commitment = await commitmentOf(session, fingerprint, nonce);
    const existing = { fingerprint: this.#fingerprint, nonce: this.#nonce };
    const expected = await pairingCode({ user: this.#user, session, theNew: { fingerprint, nonce }, existing });
    if (this.state !== 'opened' || !equal(session, this.#session)) return undefined;
    if (!equal(commitment, this.#commitment) || equal(fingerprint, this.#fingerprint)) return this.#break();
    this.state = 'typing';
    this.peerFingerprint = fingerprint;
    this.#expected = expected;
    return undefined;
  }

  #break() {
    const message = this.#message('cancel');
    this.#fail('broken');
    return message;
  }

  #fail(reason) {
    this.state = 'failed';
    this.reason = reason;
    this.code = this.#expected = this.#nonce = undefined;
  }

  #message(step, fields = {}) {
    return { to: this.peer, body: write({ session: this.#session, step, ...fields }) };
  }
}
