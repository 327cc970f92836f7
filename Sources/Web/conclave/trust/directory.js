// The devices of others, and this user's own ones: their keys, pinned on first use, and how far each is trusted (`vouching.js`).

import { toBase64 } from '../wire/index.js';
import { fingerprintOf, sameDevice } from './identity.js';
import { judge } from './vouching.js';

const REFRESHED = 100; // users whose statements are requested again asynchronously; for more users the server itself reports changes
const OFFERS_PER_DEVICE = 4;
/** The levels of devices to which is sent with `verifiedOnly`. */
export const SENT_TO = ['verified', 'vouched'];

/**
 * `fetchDevices(users)` asks the server; its answer counts only if it hashes to the requested fingerprint, or is signed by a trusted device. With
 * `verifiedOnly` a device that is neither verified nor vouched for is a problem, too: it is heard, but gets no keys. A look-up that fails trusts nobody.
 *
 * Events: `change`, when the person, or an asynchronous look-up, changes how devices are trusted; `warning` with `{problem, user, device, fingerprint, by,
 * isSelfRevoked}`, if devices `disagree`, one is `revoked`, or a voucher `fell`.
 */
export class Directory extends EventTarget {
  verifiedOnly = false;
  #store;
  #owner;
  #own;
  #fetchDevices;
  #offered = new Map();
  #told = new Map();
  #stale = new Set();
  #asking = new Set();
  #judged = new Map();
  #revision = 0;
  #warned = new Set();
  #pinning = new Map(); // device -> the fingerprint that was pinned first since this object was made
  #judging = new Map(); // user -> a promise: one judgement after the other
  #acquainting; // until this user's older devices are known

  /** `own` is this device, `{device, fingerprint, keys}`: its statements about the user's others count as if it were verified. */
  constructor({ store, owner, own, fetchDevices }) {
    super();
    this.#store = store;
    this.#owner = owner;
    this.#own = own;
    this.#fetchDevices = fetchDevices;
  }

  /**
   * The keys behind each list entry, or why there are none: `{entry, keys}` or `{entry, problem}`; with both it is heard and gets nothing. `isNew`: the device
   * is seen for the first time although another device of the user is known. `isOfVerified`: the person has verified one of the user's devices, and this one is
   * neither verified nor vouched for. Without `pinsNews` such a device stays new until it is looked up again; `level` is `verified`, `vouched`, `known`, `new`
   * or `revoked`.
   *
   * `remembered(results)` is called before the server is asked, with the results of those that are revoked, or whose key has changed, according to what is
   * stored here.
   */
  async examine(entries, { pinsNews = true, remembered = (_results) => {} } = {}) {
    if (entries.some(({ user }) => user === this.#owner)) await this.#acquainting;
    const found = await Promise.all(entries.map((entry) => this.#pinned(entry)));
    remembered(await this.#distrusted(entries, found));
    const met = await this.#met(entries); // before any of these is pinned: all devices of a stranger are new, and therefore no news
    await this.#ask(entries.filter((entry, index) => this.#mustAsk(entry, found[index])).map(({ user }) => user));
    const looked = await Promise.all(entries.map((entry, index) => this.#look(entry, { ...found[index], isMet: met.has(entry.user), pinsNews })));
    const judged = new Map();
    const verified = new Set(); // before they are judged: a judgement does not see who is verified in the meantime
    for (const user of new Set(entries.map((entry) => entry.user))) {
      if (await this.#hasVerified(user)) verified.add(user);
      judged.set(user, await this.#judge(user));
    }
    this.#refresh([...judged.keys()]);
    const results = looked.map((result) => this.#judgedResult(result, judged.get(result.entry.user)));
    const news = results.filter(({ isNew }) => isNew);
    for (const result of news) result.isOfVerified = verified.has(result.entry.user) && !SENT_TO.includes(result.level);
    await this.#excuseVouched(news.filter(({ isOfVerified }) => isOfVerified));
    return results;
  }

  /**
   * A device has a level when it is pinned: those of `news` that are vouched for and not pinned yet are no cause for a warning. One judgement for all devices of a user.
   * @param {any[]} news
   */
  async #excuseVouched(news) {
    const byUser = new Map(news.map(({ entry }) => [entry.user, /** @type {any[]} */ ([])]));
    for (const result of news) byUser.get(result.entry.user)?.push(result);
    for (const [user, results] of byUser) {
      const told = this.#told.get(user) ?? NOTHING_TOLD;
      const remembered = (await this.#store.get('statements', this.#nameOf(user))) ?? {};
      const unpinned = results.map(({ entry: { device, fingerprint }, keys }) => ({ device, fingerprint, keys, isVerified: false }));
      const { levels } = await judge({ user, pins: [...(await this.#pinsOf(user)), ...unpinned], ...told, remembered, now: Date.now() });
      for (const result of results) result.isOfVerified = levels.get(result.entry.fingerprint) !== 'vouched';
    }
  }

  async #hasVerified(user) {
    return (await this.#pinsOf(user)).some(({ isVerified }) => isVerified);
  }

  /** For a device that is new itself: this user's older devices are pinned, and are not news to it. */
  acquaint() {
    this.#acquainting ??= this.#acquaint().catch(() => {
      this.#acquainting = undefined; // the next connection tries again
    });
    return this.#acquainting;
  }

  async #acquaint() {
    const others = (await this.#fetch([this.#owner])).filter(({ user, device }) => user === this.#owner && device !== this.#own?.device);
    for (const { user, device, fingerprint } of others) {
      const entry = { user, device, fingerprint };
      await this.#look(entry, { ...(await this.#pinned(entry)), isMet: false, pinsNews: true });
    }
  }

  /** The name that the server reports for a device; undefined if it reports none. */
  deviceName(user, device) {
    return this.#told.get(user)?.listed.find((listed) => listed.device === device)?.name;
  }

  /**
   * Whether words signed by this device count: it is not revoked, and its key does not differ from the pinned one. It must be known or vouched for: then the
   * person was told of it. While no device of its user is known, the first that is heard of counts; if the user has devices on lists of the call
   * (`isUserListed`), it must be one of these (`isListed`).
   */
  async maySign({ user, device, fingerprint }, { isListed, isUserListed }) {
    const pin = await this.#store.get('pins', this.#name({ user, device }));
    const { revoked, levels } = await this.#judge(user);
    if (revoked.has(fingerprint) || hasChanged({ fingerprint }, pin)) return false;
    if (pin || levels.get(fingerprint) === 'vouched') return true;
    if (isUserListed && !isListed) return false;
    return !(await this.#met([{ user }])).has(user);
  }

  /**
   * All devices of `users`, examined (see there), as entries of a list that they have not joined yet; `about` is `{name, registeredAt, seenDay, keys}`
   * according to the server.
   */
  async devicesOf(users, options = {}) {
    const devices = await this.#fetch(users);
    const asked = devices.filter(({ user }) => users.includes(user));
    const examined = await this.examine(asked.map(({ user, device, fingerprint, keys }) => ({ user, device, fingerprint, keys })), options);
    return examined.map(({ entry: { user, device, fingerprint }, ...rest }, index) => ({
      ...rest,
      entry: { user, device, participant: 0, fingerprint },
      about: { name: asked[index].name, registeredAt: asked[index].registeredAt, seenDay: asked[index].seenDay, keys: asked[index].keys },
    }));
  }

  /** The person has examined a changed key, `fingerprint`, and accepts it and no other. Returns whether that was possible. */
  async trust(user, device, fingerprint) {
    const offered = this.#offered.get(`${user}/${device}`)?.get(fingerprint);
    if (!offered) return false;
    await this.#pin({ user, device }, offered);
    this.dispatchEvent(new Event('change'));
    return true;
  }

  /**
   * The person has verified these devices, `{user, device, fingerprint}`, as they were shown. A key that has changed since is not verified. Returns those that
   * are verified now.
   */
  async verify(entries) {
    const verified = [];
    for (const entry of entries) {
      const pin = await this.#store.get('pins', this.#name(entry));
      if (pin?.fingerprint !== entry.fingerprint) continue;
      await this.#pin(entry, { ...pin, isVerified: true });
      verified.push(entry);
    }
    if (verified.length > 0) this.dispatchEvent(new Event('change'));
    return verified;
  }

  /** The connection is new: known statements may be outdated. */
  connected() {
    for (const user of this.#told.keys()) this.#stale.add(user);
  }

  #name({ user, device }) {
    return `${this.#owner}>${user}/${device}`;
  }

  #nameOf(user) {
    return `${this.#owner}>${user}`;
  }

  async #pin(entry, pin) {
    await this.#store.put('pins', this.#name(entry), pin);
    this.#forget(entry.user);
  }

  #forget(user) {
    this.#judged.delete(user);
    this.#revision += 1;
  }

  async #pinned(entry) {
    const pin = await this.#store.get('pins', this.#name(entry));
    return { pin, keys: pin?.fingerprint === entry.fingerprint ? pin.keys : undefined };
  }

  /** The results of those of `entries` that no answer of the server can improve: it may withhold its answer. */
  async #distrusted(entries, found) {
    const statements = new Map();
    const read = async (user) => statements.set(user, (await this.#store.get('statements', this.#nameOf(user))) ?? {});
    await Promise.all([...new Set(entries.map(({ user }) => user))].map(read));
    return entries.flatMap((entry, index) => {
      const { revoked = [], selfRevoked = [] } = statements.get(entry.user);
      const { fingerprint } = entry;
      if (revoked.includes(fingerprint)) return [revokedResult(entry, selfRevoked.includes(fingerprint))];
      return hasChanged(entry, found[index].pin) ? [{ entry, problem: 'changed-key', level: 'new', isVerified: false }] : [];
    });
  }

  #mustAsk(entry, { pin, keys }) {
    if (!keys && !entry.keys) return true;
    return this.verifiedOnly && !this.#told.has(entry.user) && !(keys && pin.isVerified);
  }

  async #ask(users) {
    if (users.length > 0) await this.#fetch(users).catch(() => undefined); // then nobody is trusted
  }

  /** Requests the devices of `users` with their statements, which are stored as reported. */
  async #fetch(users) {
    const asked = [...new Set(users)];
    const { devices, revokes, seen } = await this.#fetchDevices(asked);
    const days = new Map(objectsIn(seen).map(({ device, day }) => [device, day]));
    const all = objectsIn(devices).map((device) => (device.user === this.#owner ? { ...device, seenDay: days.get(device.device) } : device));
    for (const user of asked) {
      const own = all.filter((device) => device.user === user);
      const vouches = own.flatMap((device) => objectsIn(device.vouches));
      this.#told.set(user, { listed: own, vouches, revokes: objectsIn(revokes).filter((revoke) => revoke.user === user) });
      this.#stale.delete(user);
      this.#forget(user);
    }
    return all;
  }

  /** Asynchronously requests statements that were not reported on this connection. */
  async #refresh(users) {
    const wanted = users.filter((user) => !this.#asking.has(user) && (!this.#told.has(user) || this.#stale.has(user)));
    if (wanted.length === 0 || wanted.length > REFRESHED) return;
    const levels = async () => JSON.stringify(await Promise.all(wanted.map(async (user) => [...(await this.#judge(user)).levels])));
    for (const user of wanted) this.#asking.add(user);
    try {
      const before = await levels();
      await this.#fetch(wanted);
      if ((await levels()) !== before) this.dispatchEvent(new Event('change'));
    } catch {
      // The earlier statements remain; the next look-up asks again.
    } finally {
      for (const user of wanted) this.#asking.delete(user);
    }
  }

  /** The users in `entries` with a pinned device. */
  async #met(entries) {
    const met = new Set([this.#owner]);
    for (const user of new Set(entries.map((entry) => entry.user))) {
      if (await this.#store.has('pins', this.#name({ user, device: '' }))) met.add(user);
    }
    return met;
  }

  /** The keys of an entry, pinned if they are the first. */
  async #look(entry, { pin, keys: known, isMet, pinsNews }) {
    const keys = known ?? (await matching(entry, this.#told.get(entry.user)?.listed ?? []));
    // The pin decides, whether or not the server reports the new keys.
    if (!keys) return { entry, problem: hasChanged(entry, pin) ? 'changed-key' : 'unknown-keys' };
    const offered = { fingerprint: entry.fingerprint, keys, since: Date.now() };
    const isNew = !pin && isMet;
    const isPinned = pin || (isNew && !pinsNews) || (await this.#pinFirst(entry, offered));
    if (!isPinned || hasChanged(entry, pin)) {
      this.#offer(entry, offered);
      return { entry, problem: 'changed-key' };
    }
    return { entry, keys, isFresh: !pin, isNew, isVerified: Boolean(pin?.isVerified) };
  }

  /** Pins the first key of a device. Two may be looked up at once: false for the one that is not the first. */
  async #pinFirst(entry, offered) {
    const name = this.#name(entry);
    const first = this.#pinning.get(name) ?? entry.fingerprint;
    this.#pinning.set(name, first);
    if (first !== entry.fingerprint) return false;
    await this.#pin(entry, offered);
    return true;
  }

  #offer({ user, device }, offered) {
    const name = `${user}/${device}`;
    const offers = this.#offered.get(name) ?? new Map();
    offers.delete(offered.fingerprint);
    offers.set(offered.fingerprint, offered);
    if (offers.size > OFFERS_PER_DEVICE) offers.delete(offers.keys().next().value);
    this.#offered.set(name, offers);
  }

  #judgedResult({ entry, keys, problem, isFresh, isNew, isVerified }, { levels, revoked, selfRevoked }) {
    if (revoked.has(entry.fingerprint)) return revokedResult(entry, selfRevoked.has(entry.fingerprint));
    if (!keys) return { entry, problem, level: 'new', isVerified: false };
    const isVouched = levels.get(entry.fingerprint) === 'vouched';
    const level = isVerified ? 'verified' : isVouched ? 'vouched' : isFresh ? 'new' : 'known';
    const unverified = this.verifiedOnly && !SENT_TO.includes(level) ? 'unverified' : undefined;
    return { entry, keys, problem: unverified, isNew, level, isVerified };
  }

  /** Judges a user's devices again by the known statements. One at a time: of two, the one that knew less must not be stored. */
  #judge(user) {
    const judging = (this.#judging.get(user) ?? Promise.resolve()).catch(() => {}).then(() => this.#judgeNow(user));
    this.#judging.set(user, judging);
    return judging;
  }

  async #judgeNow(user) {
    const known = this.#judged.get(user);
    if (known) return known;
    const name = this.#nameOf(user);
    const remembered = (await this.#store.get('statements', name)) ?? {};
    const told = this.#told.get(user) ?? NOTHING_TOLD;
    const revision = this.#revision;
    const judgement = await judge({ user, pins: await this.#pinsOf(user), ...told, remembered, now: Date.now() });
    judgement.revoked = new Set(judgement.remembered.revoked);
    judgement.selfRevoked = new Set(judgement.remembered.selfRevoked);
    if (told === NOTHING_TOLD || revision !== this.#revision) return judgement;
    await this.#store.put('statements', name, judgement.remembered);
    if (revision === this.#revision) this.#judged.set(user, judgement);
    const news = [...judgement.revoked].filter((fingerprint) => !remembered.revoked?.includes(fingerprint));
    const revoked = told.listed.filter(({ fingerprint }) => news.includes(fingerprint));
    this.#warn('revoked', user, revoked.map((device) => ({ ...device, by: undefined, isSelfRevoked: judgement.selfRevoked.has(device.fingerprint) })));
    this.#warn('fell', user, judgement.fallen);
    this.#warn('disagree', user, judgement.disagreements);
    return judgement;
  }

  async #pinsOf(user) {
    const prefix = this.#name({ user, device: '' });
    const pins = (await this.#store.entries('pins', prefix)).map(([name, pin]) => ({ ...pin, device: name.slice(prefix.length) }));
    if (user !== this.#owner || !this.#own) return pins;
    return [...pins.filter(({ device }) => device !== this.#own.device), { ...this.#own, isVerified: true }];
  }

  #warn(problem, user, devices) {
    for (const { device, fingerprint, by, isSelfRevoked } of devices) {
      const name = `${problem}/${user}/${fingerprint}/${by}`;
      if (this.#warned.has(name)) continue;
      this.#warned.add(name);
      this.dispatchEvent(new CustomEvent('warning', { detail: { problem, user, device, fingerprint, by, isSelfRevoked } }));
    }
  }
}

const hasChanged = ({ fingerprint }, pin) => pin !== undefined && pin.fingerprint !== fingerprint;

const revokedResult = (entry, isSelfRevoked) => ({ entry, problem: 'revoked', level: 'revoked', isVerified: false, isSelfRevoked });

const NOTHING_TOLD = { listed: [], vouches: [], revokes: [] };

const objectsIn = (list) => (Array.isArray(list) ? list.filter((item) => item && typeof item === 'object') : []);

async function matching(entry, listed) {
  for (const { user, device, keys } of [entry, ...listed]) {
    if (!keys || !sameDevice({ user, device }, entry)) continue;
    try {
      if (toBase64(await fingerprintOf(user, device, keys)) === entry.fingerprint) return keys;
    } catch {
      // Not the keys of a device.
    }
  }
  return undefined;
}
