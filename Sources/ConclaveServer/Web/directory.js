// The devices of others: their keys, pinned on first use, which of them the user has verified, and what has changed.

import { fromBase64, toBase64 } from './bytes.js';
import { fingerprintOf, isSignedBy, joinBytes, sameDevice } from './identity.js';

/**
 * `fetchDevices(users)` asks the server; what it says counts only where it hashes to the fingerprint that is looked for.
 * With `verifiedOnly` a device that the user has not verified is a problem too: it is heard, and gets no keys.
 */
export class Directory {
  verifiedOnly = false;
  #store;
  #owner;
  #fetchDevices;
  #offered = new Map();

  constructor({ store, owner, fetchDevices }) {
    this.#store = store;
    this.#owner = owner;
    this.#fetchDevices = fetchDevices;
  }

  /**
   * The keys behind each list entry, or why there are none: `{entry, keys}` or `{entry, problem}`; with both it is heard and gets nothing. `isNew` says that it is a device
   * seen for the first time of a user of whom another one is known, `isVerified` that the user has verified it.
   */
  async examine(entries) {
    const found = await Promise.all(entries.map((entry) => this.#pinnedKeys(entry)));
    const unknown = entries.filter((entry, index) => !found[index].keys && !entry.keys);
    const fetched = unknown.length > 0 ? await this.#fetch(unknown.map(({ user }) => user)) : [];
    const met = await this.#met(entries); // before any of these is pinned: all devices of a stranger are new, and no news
    return Promise.all(
      entries.map(async (entry, index) => {
        const keys = found[index].keys ?? (await matching(entry, fetched));
        if (!keys) return { entry, problem: 'unknown-keys' };
        if (!(await hasValidJoinKey(entry, keys))) return { entry, problem: 'bad-join-key' };
        return this.#pin(entry, keys, { pin: found[index].pin, isMet: met.has(entry.user) });
      }),
    );
  }

  /** All devices of `users`, examined, as entries of a list that they have not joined yet. */
  async devicesOf(users) {
    const devices = await this.#fetch(users);
    const asked = devices.filter(({ user }) => users.includes(user));
    const examined = await this.examine(asked.map(({ user, device, fingerprint, keys }) => ({ user, device, fingerprint, keys })));
    return examined.map(({ entry: { user, device, fingerprint }, ...rest }) => ({
      ...rest,
      entry: { user, device, participant: 0, fingerprint },
    }));
  }

  /** The user has looked at a changed key and takes it. */
  async trust(user, device) {
    const offered = this.#offered.get(`${user}/${device}`);
    if (offered) await this.#store.put('pins', this.#name({ user, device }), offered);
  }

  /** The user has compared codes with the owners of these entries. */
  async verify(entries) {
    for (const entry of entries) {
      const pin = await this.#store.get('pins', this.#name(entry));
      if (pin?.fingerprint === entry.fingerprint) {
        await this.#store.put('pins', this.#name(entry), { ...pin, isVerified: true });
      }
    }
  }

  #name({ user, device }) {
    return `${this.#owner}>${user}/${device}`;
  }

  async #pinnedKeys(entry) {
    const pin = await this.#store.get('pins', this.#name(entry));
    return { pin, keys: pin?.fingerprint === entry.fingerprint ? pin.keys : undefined };
  }

  async #fetch(users) {
    const { devices } = await this.#fetchDevices([...new Set(users)]);
    return devices;
  }

  /** The users among those of `entries` of whom a device is pinned. */
  async #met(entries) {
    const met = new Set([this.#owner]);
    for (const user of new Set(entries.map((entry) => entry.user))) {
      if (await this.#store.has('pins', this.#name({ user, device: '' }))) met.add(user);
    }
    return met;
  }

  async #pin(entry, keys, { pin, isMet }) {
    const offered = { fingerprint: entry.fingerprint, keys, since: Date.now() };
    if (pin && pin.fingerprint !== entry.fingerprint) {
      this.#offered.set(`${entry.user}/${entry.device}`, offered);
      return { entry, problem: 'changed-key' };
    }
    const isNew = !pin && isMet;
    if (!pin) await this.#store.put('pins', this.#name(entry), offered);
    const isVerified = Boolean(pin?.isVerified);
    const problem = this.verifiedOnly && !isVerified ? 'unverified' : undefined;
    return { entry, keys, problem, isNew, isVerified };
  }
}

async function matching(entry, fetched) {
  for (const { user, device, keys } of [entry, ...fetched]) {
    if (!keys || !sameDevice({ user, device }, entry)) continue;
    const fingerprint = await fingerprintOf(user, device, keys).catch(() => undefined);
    if (fingerprint && toBase64(fingerprint) === entry.fingerprint) return keys;
  }
  return undefined;
}

async function hasValidJoinKey(entry, keys) {
  if (!entry.joinKey) return true;
  const { alg, publicKey, signature } = entry.joinKey;
  const sign = keys.find((key) => key.use === 'sign');
  const joinId = entry.joinId ? fromBase64(entry.joinId) : new Uint8Array(16);
  const data = joinBytes(fromBase64(entry.fingerprint), joinId, alg, fromBase64(publicKey));
  return isSignedBy(keys, sign.alg, fromBase64(signature), data);
}
