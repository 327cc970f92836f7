// This device's keys, the keys of other devices, and what is pinned: who is who (protocol section 5, "Device" and "Join").

import { concat, equal, fromBase64, lp, random, sha256, toBase64, toHex, utf8 } from './bytes.js';
import { HPKE } from './wrap.js';

const SIGN = 'ES256';
const FORGET_AFTER_MS = 60 * 24 * 3_600_000; // a device that was not used for 60 days
const ecdh = { name: 'ECDH', namedCurve: 'P-256' };
const ecdsa = { name: 'ECDSA', namedCurve: 'P-256' };

/** `keys` as the protocol carries them: one entry for `wrap`, one for `sign`, base64. */
export function fingerprintOf(user, device, keys) {
  const wrap = keys.find((key) => key.use === 'wrap');
  const sign = keys.find((key) => key.use === 'sign');
  if (!wrap || !sign) throw new TypeError('a device has a wrap and a sign key');
  const fields = [user, device, wrap.alg, fromBase64(wrap.publicKey), sign.alg, fromBase64(sign.publicKey)];
  return sha256(concat(utf8('conclave-device-v1'), ...fields.map(lp)));
}

const joinBytes = (fingerprint, joinId, alg, spki) =>
  concat(utf8('conclave-join-v1'), fingerprint, joinId, lp(alg), lp(spki));

const spkiOf = async (pair) => new Uint8Array(await crypto.subtle.exportKey('spki', pair.publicKey));

const verifiers = {
  ES256: [ecdsa, { name: 'ECDSA', hash: 'SHA-256' }],
  PS256: [{ name: 'RSA-PSS', hash: 'SHA-256' }, { name: 'RSA-PSS', saltLength: 32 }],
  EdDSA: [{ name: 'Ed25519' }, { name: 'Ed25519' }],
};

/** Whether `signature` over `data` is by the `sign` key among `keys`; an algorithm that is not known here verifies nothing. */
export async function isSignedBy(keys, sigAlg, signature, data) {
  const sign = keys.find((key) => key.use === 'sign');
  const verifier = verifiers[sigAlg];
  if (!sign || !verifier || sign.alg !== sigAlg) return false;
  try {
    const key = await crypto.subtle.importKey('spki', fromBase64(sign.publicKey), verifier[0], false, ['verify']);
    return await crypto.subtle.verify(verifier[1], key, signature, data);
  } catch {
    return false;
  }
}

/** This device. Its private keys never leave WebCrypto. */
export class Identity {
  #sign;

  static async open(store, user, device) {
    const name = `${user}/${device}`;
    let kept = await store.get('identities', name);
    if (!kept) {
      kept = {
        wrap: await crypto.subtle.generateKey(ecdh, false, ['deriveBits']),
        sign: await crypto.subtle.generateKey(ecdsa, false, ['sign', 'verify']),
      };
    }
    await store.put('identities', name, { ...kept, lastUsed: Date.now() });
    store.prune('identities', Date.now() - FORGET_AFTER_MS);
    const identity = new Identity();
    identity.user = user;
    identity.device = device;
    identity.wrap = kept.wrap;
    identity.#sign = kept.sign;
    identity.keys = [
      { use: 'wrap', alg: HPKE, publicKey: toBase64(await spkiOf(kept.wrap)) },
      { use: 'sign', alg: SIGN, publicKey: toBase64(await spkiOf(kept.sign)) },
    ];
    identity.fingerprint = await fingerprintOf(user, device, identity.keys);
    return identity;
  }

  /** `{sigAlg, signature}` over `data`. */
  async sign(data) {
    const signature = await crypto.subtle.sign({ name: 'ECDSA', hash: 'SHA-256' }, this.#sign.privateKey, data);
    return { sigAlg: SIGN, signature: new Uint8Array(signature) };
  }

  /** A join: its id, its own wrap key pair, and both as `start`, `accept`, `join` and `rejoin` carry them. */
  async makeJoin() {
    const joinId = random(16);
    const pair = await crypto.subtle.generateKey(ecdh, false, ['deriveBits']);
    const spki = await spkiOf(pair);
    const { signature } = await this.sign(joinBytes(this.fingerprint, joinId, HPKE, spki));
    const joinKey = { alg: HPKE, publicKey: toBase64(spki), signature: toBase64(signature) };
    return { joinId, pair, wire: { joinId: toBase64(joinId), joinKey } };
  }
}

/**
 * The keys of other devices, pinned on first use. `fetchDevices(users)` asks the server; what it says counts only
 * where it hashes to the fingerprint that is looked for.
 */
export class Directory {
  #store;
  #owner;
  #fetchDevices;
  #offered = new Map();

  constructor({ store, owner, fetchDevices }) {
    this.#store = store;
    this.#owner = owner;
    this.#fetchDevices = fetchDevices;
  }

  /** The keys behind each list entry, or why there are none: `{entry, keys}` or `{entry, problem}`. */
  async examine(entries) {
    const found = await Promise.all(entries.map((entry) => this.#pinnedKeys(entry)));
    const unknown = entries.filter((entry, index) => !found[index].keys && !entry.keys);
    const fetched = unknown.length > 0 ? await this.#fetch(unknown) : [];
    return Promise.all(
      entries.map(async (entry, index) => {
        const keys = found[index].keys ?? (await this.#matching(entry, fetched));
        if (!keys) return { entry, problem: 'unknown-keys' };
        if (!(await hasValidJoinKey(entry, keys))) return { entry, problem: 'bad-join-key' };
        return this.#pin(entry, keys, found[index].pin);
      }),
    );
  }

  /** The user has looked at a changed key and takes it. */
  async trust(user, device) {
    const offered = this.#offered.get(`${user}/${device}`);
    if (offered) await this.#store.put('pins', this.#name({ user, device }), offered);
  }

  #name({ user, device }) {
    return `${this.#owner}>${user}/${device}`;
  }

  async #pinnedKeys(entry) {
    const pin = await this.#store.get('pins', this.#name(entry));
    return { pin, keys: pin?.fingerprint === entry.fingerprint ? pin.keys : undefined };
  }

  async #fetch(entries) {
    const { devices } = await this.#fetchDevices([...new Set(entries.map(({ user }) => user))]);
    return devices;
  }

  async #matching(entry, fetched) {
    const candidates = [entry, ...fetched].filter(
      ({ user, device, keys }) => keys && user === entry.user && device === entry.device,
    );
    for (const { keys } of candidates) {
      const fingerprint = await fingerprintOf(entry.user, entry.device, keys).catch(() => undefined);
      if (fingerprint && toBase64(fingerprint) === entry.fingerprint) return keys;
    }
    return undefined;
  }

  async #pin(entry, keys, pin) {
    const offered = { fingerprint: entry.fingerprint, keys, since: Date.now() };
    if (!pin) await this.#store.put('pins', this.#name(entry), offered);
    else if (pin.fingerprint !== entry.fingerprint) {
      this.#offered.set(`${entry.user}/${entry.device}`, offered);
      return { entry, problem: 'changed-key' };
    }
    return { entry, keys };
  }
}

async function hasValidJoinKey(entry, keys) {
  if (!entry.joinKey) return true;
  const { alg, publicKey, signature } = entry.joinKey;
  const sign = keys.find((key) => key.use === 'sign');
  const joinId = entry.joinId ? fromBase64(entry.joinId) : new Uint8Array(16);
  const data = joinBytes(fromBase64(entry.fingerprint), joinId, alg, fromBase64(publicKey));
  return isSignedBy(keys, sign.alg, fromBase64(signature), data);
}

/** A fingerprint for people: 8 groups of 8 hexadecimal digits. */
export const readable = (fingerprint) => toHex(fingerprint).match(/.{8}/g).join(' ');

export const sameDevice = (a, b) => a.user === b.user && a.device === b.device;

export const isOwn = (entry, identity) =>
  sameDevice(entry, identity) && equal(fromBase64(entry.fingerprint), identity.fingerprint);
