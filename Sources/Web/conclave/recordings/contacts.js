// The contacts of a recording: grants to them, alerts, whether these have reached them, and whether they have seen it. The server says most of it, and may lie:
// its word counts only as far as it fits what this device has sent. It has no clock, network or store.

const FIRST_MS = 30_000;
const LONGEST_MS = 600_000;

const fresh = () => ({ devices: [], isAnswered: false, isUnavailable: false, isAlerted: false, reachedAt: undefined, seenAt: undefined });

/**
 * The contacts of one recording. `alerts` says that they are alerted. `saved` is what `toSave()` returned.
 *
 * The state of a contact is `waiting` (the server has not answered for this person yet), `unavailable` (the server passes nothing on to this person), `no-keys` (no device of
 * the person's was granted the recording), `told`, `reached` (a device has acknowledged the alert) or `seen`.
 */
export class Contacts {
  alerts;
  #known;
  #hasAsked;
  #hasAlerted; // in a request
  #tries = 0;
  #dueAt = 0;

  /** @param {string[]} users @param {{ alerts: boolean, saved?: any }} options */
  constructor(users, { alerts, saved = undefined }) {
    this.alerts = alerts;
    this.#known = new Map(users.map((user) => [user, { ...fresh(), ...saved?.known[user] }]));
    this.#hasAsked = saved?.hasAsked ?? false;
    this.#hasAlerted = saved?.hasAlerted ?? false;
  }

  /** The plain object that outlives the page. */
  toSave() {
    return { known: Object.fromEntries(this.#known), hasAsked: this.#hasAsked, hasAlerted: this.#hasAlerted };
  }

  get users() {
    return [...this.#known.keys()];
  }

  /** `[{user, state, at?}]`, `at` (ms) being the server's time of the state. */
  get all() {
    return [...this.#known].map(([user, contact]) => ({ user, ...this.#stateOf(contact) }));
  }

  /** The devices of `user` to which the recording was granted. */
  grantedTo(user) {
    return this.#known.get(user)?.devices ?? [];
  }

  /** Whether a request was sent from which the server knows the recording. */
  get hasAsked() {
    return this.#hasAsked;
  }

  /** Whether the next request is to alert people. */
  get wantsAlert() {
    return this.alerts && [...this.#known.values()].some(({ isAlerted }) => !isAlerted);
  }

  /** Whether the server has answered for everybody, in whatever way. */
  get isAnswered() {
    return [...this.#known.values()].every((contact) => this.#stateOf(contact).state !== 'waiting');
  }

  /** Whether somebody can play it, and with `all` whether everybody can. */
  isGranted({ all = false } = {}) {
    const has = ({ devices }) => devices.length > 0;
    const contacts = [...this.#known.values()];
    return all ? contacts.every(has) : contacts.some(has);
  }

  /** When to tell those who were not told, ms; undefined if there are none. */
  get dueAt() {
    const isDone = ({ state }) => state === 'told' || state === 'seen';
    const lacks = (contact) => !isDone(this.#stateOf(contact)) && !(contact.reachedAt !== undefined && contact.devices.length > 0);
    return [...this.#known.values()].some(lacks) ? this.#dueAt : undefined;
  }

  /** A request is on its way; its answer may be lost. */
  asking({ isAlert }) {
    this.#hasAsked = true;
    this.#hasAlerted ||= isAlert;
  }

  /**
   * The server's `results` of a request with grants to `granted`, a map of each user to its devices. `isAlert`: it alerted people; else an alert has to wait until
   * `heldUntil` (ms), if it is given.
   */
  answered(results, { granted, isAlert, heldUntil = 0 }, now) {
    for (const [user, contact] of this.#known) {
      const result = isObject(results) && Object.hasOwn(results, user) ? results[user] : undefined;
      contact.isAnswered = true;
      contact.isUnavailable = result === 'unavailable';
      if (contact.isUnavailable) continue;
      if (isAlert) contact.isAlerted = true;
      const devices = granted.get(user) ?? [];
      if (result === 'shared') contact.devices = [...new Set([...contact.devices, ...devices])];
    }
    this.#tries += 1;
    this.#dueAt = Math.max(heldUntil, now + Math.min(LONGEST_MS, FIRST_MS * 2 ** (this.#tries - 1)));
  }

  /** The server says that a device of an alerted person has acknowledged the alert. */
  reached(user, at) {
    const contact = this.#known.get(user);
    if (contact?.isAlerted && !contact.isUnavailable) contact.reachedAt ??= at;
  }

  /** The server says that somebody has seen it, by `device`, if it says which. A person whose devices have no grant cannot. */
  seen(user, at, device = undefined) {
    const contact = this.#known.get(user);
    if (!contact || contact.isUnavailable || contact.devices.length === 0) return;
    if (device === undefined || contact.devices.includes(device)) contact.seenAt ??= at;
  }

  /** `readers` of the manifest, for news that were missed: an answer may have been lost, too. Earlier knowledge stays. */
  listed(readers) {
    for (const { user, alertedAt, reachedAt, seenAt } of readers) {
      const contact = this.#known.get(user);
      if (!contact) continue;
      if (alertedAt !== undefined && this.#hasAlerted) Object.assign(contact, { isAnswered: true, isUnavailable: false, isAlerted: true });
      if (reachedAt !== undefined) this.reached(user, reachedAt);
      if (seenAt !== undefined) this.seen(user, seenAt);
    }
  }

  #stateOf({ devices, isAnswered, isUnavailable, isAlerted, reachedAt, seenAt }) {
    if (seenAt !== undefined) return { state: 'seen', at: seenAt };
    if (isUnavailable) return { state: 'unavailable' };
    if (!isAnswered || (this.alerts && !isAlerted)) return { state: 'waiting' };
    if (reachedAt !== undefined) return { state: 'reached', at: reachedAt };
    return { state: devices.length === 0 ? 'no-keys' : 'told' };
  }
}

const isObject = (value) => value !== null && typeof value === 'object';
