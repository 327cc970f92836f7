// Tells the contacts of a recording while it is made: grants, the alert, and notes. Everything is made here and kept until the server has taken it, so that it also works
// without a network, and after a killed tab. `Contacts` has the rules.

import { grantIn, makeGrants, openGrant } from '../consent/index.js';
import { fromBase64, isWhole } from '../wire/index.js';
import { Contacts } from './contacts.js';
import { MAX_NOTES, makeNote } from './notes.js';

const NOTES_AT_ONCE = 8; // in the request that registers it

/**
 * `holders()` resolves with the devices of the readers that are trusted, `{user, device, keys}`; `request(path, body)` asks the server, `renew()` has the recording
 * registered once more, which calls `register`. `own` is this device, see `openGrant`.
 *
 * Events: `change` of `contacts` or of `clockAhead`.
 */
export class Telling extends EventTarget {
  contacts;
  /** ms by which this device's clock is ahead of the server's; undefined as long as that is not known. */
  clockAhead;
  #identity;
  #store;
  #row;
  #own;
  #request;
  #holders;
  #renew;
  #now;
  #notes; // those that the server has not taken
  #next; // the number of the next note
  #devices; // this user's own that were granted it
  #timer;
  #isFlushing = false;
  #isClosed = false;
  #isRegistered;

  /** Goes on with what the store has of the recording with `row`. */
  static async open(/** @type {any} */ { store, row, ...options }) {
    return new Telling({ store, row, saved: await store.get('told', row.id), isRegistered: (await store.get('uploads', row.id))?.ticket !== undefined, ...options });
  }

  constructor(/** @type {any} */ { identity, store, row, saved = undefined, isRegistered = false, own, request, holders, renew, now }) {
    super();
    this.contacts = new Contacts(row.statement.readers.filter((user) => user !== identity.user), { alerts: row.alerts, saved: saved?.contacts });
    [this.#identity, this.#store, this.#row, this.#own] = [identity, store, row, own];
    [this.#request, this.#holders, this.#renew, this.#now] = [request, holders, renew, now];
    this.#notes = saved?.notes ?? [];
    this.#next = saved?.next ?? 0;
    this.#devices = saved?.devices ?? [];
    this.#isRegistered = isRegistered;
  }

  /** A note, an object, which the readers get. Resolves with whether there was a number left for it. */
  async note(content) {
    if (this.#next >= MAX_NOTES) return false;
    const number = this.#next;
    this.#next += 1;
    const { st, statement } = this.#row;
    this.#notes = [...this.#notes, await makeNote(this.#identity, content, { st, number, publicKey: fromBase64(statement.publicKey) })];
    await this.#save();
    this.#flush();
    return true;
  }

  /** Registers the recording, for the first time or once more, with what is to be told. Resolves with the server's reply. */
  async register() {
    const { statement, reelKey } = this.#row;
    const { grants, granted } = await this.#grants();
    const notes = this.#notes.slice(0, NOTES_AT_ONCE);
    const isAlert = this.contacts.wantsAlert;
    const isFirst = !this.contacts.hasAsked;
    this.contacts.asking({ isAlert });
    await this.#save();
    const body = { statement, reelKey, ...(grants.length > 0 ? { grants } : {}), ...(notes.length > 0 ? { notes } : {}) };
    const { reply, ...alert } = await this.#start(body, isAlert);
    this.contacts.answered(reply.results, { granted, ...alert }, this.#now());
    this.#devices = [...new Set([...this.#devices, ...(granted.get(this.#identity.user) ?? [])])];
    this.#notes = this.#notes.filter((note) => !notes.includes(note));
    this.#isRegistered = true;
    await this.#save();
    if (this.contacts.isGranted({ all: true })) await this.forgetKey();
    this.#changed();
    this.plan();
    this.#flush();
    if (isFirst) this.#compareClocks(this.#now()).catch(() => {}); // nothing depends on it
    return reply;
  }

  /** Too many alerts: the recording begins without, and people are alerted later. */
  async #start(body, isAlert) {
    if (!isAlert) return { reply: await this.#request('recordings/start', body), isAlert };
    try {
      return { reply: await this.#request('recordings/start', { ...body, alert: true }), isAlert };
    } catch (error) {
      if (error?.code !== 'rate.limited') throw error;
      const heldUntil = this.#now() + (isWhole(error.details?.retryAfterMs, 0, 3_600_000) ? error.details.retryAfterMs : 60_000);
      return { reply: await this.#request('recordings/start', body), isAlert: false, heldUntil };
    }
  }

  /** Grants to all devices that have none. Without the key, which this device may have deleted, there are none. */
  async #grants() {
    const { id, st, grant, statement } = this.#row;
    const hasOne = ({ user, device }) => (user === this.#identity.user ? this.#devices : this.contacts.grantedTo(user)).includes(device);
    const holders = (await this.#holders()).filter((holder) => !hasOne(holder));
    const granted = new Map();
    if (!grant || holders.length === 0) return { grants: [], granted };
    const { scalar } = await openGrant(grantIn(grant), { id, st, publicKey: fromBase64(statement.publicKey), own: this.#own, keys: this.#identity.keys });
    const { grants } = await makeGrants(this.#identity, scalar, { id, st, holders, at: this.#now() });
    for (const { to } of grants) granted.set(to.user, [...(granted.get(to.user) ?? []), to.device]);
    return { grants, granted };
  }

  /** Tells those who were not told when it is time. */
  plan() {
    clearTimeout(this.#timer);
    const { dueAt } = this.contacts;
    if (dueAt === undefined || this.#isClosed || !this.#isRegistered) return;
    this.#timer = setTimeout(() => this.#renew(), Math.max(0, dueAt - this.#now()));
  }

  /** The connection is back: what was missed is asked for, and what waits is sent. */
  async hurry() {
    if (!this.#isRegistered || this.#isClosed) return;
    this.#flush();
    this.plan();
    const { readers = [] } = await this.#request('recordings/get', { id: this.#row.id });
    if (this.#isClosed || !Array.isArray(readers)) return;
    this.contacts.listed(readers.filter(isReader));
    await this.#save();
    this.#changed();
  }

  /** The server's news `reached` or `seen`, by a device, `at` its time. */
  async take(news, { user, device }, at = this.#now()) {
    if (news === 'reached') this.contacts.reached(user, at);
    if (news === 'seen') this.contacts.seen(user, at, device);
    this.#changed();
    await this.#save();
  }

  /** With *not on this phone* the key goes once others have it: what this device has of the recording then opens nothing. */
  async forgetKey() {
    if (this.#row.keepsCopy || !this.#row.grant || !this.contacts.isGranted()) return;
    this.#row = { ...this.#row, grant: undefined };
    await this.#store.put(['recordings', this.#row.id, this.#row]);
  }

  close() {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  /** Sends the notes one after the other. A note that fails is sent with the next, or when the connection is back. */
  #flush() {
    if (!this.#isRegistered || this.#isClosed) return;
    if (this.#isFlushing) return;
    this.#isFlushing = true;
    this.#sendNotes().catch(() => {}).finally(() => (this.#isFlushing = false));
  }

  async #sendNotes() {
    for (let note; (note = this.#notes[0]) && !this.#isClosed; ) {
      await this.#request('recordings/note', { id: this.#row.id, ...note });
      this.#notes = this.#notes.filter((other) => other !== note);
      await this.#save();
    }
  }

  /** The server has registered it just now: its time of that is in the list. */
  async #compareClocks(registeredAt) {
    const { recordings } = await this.#request('recordings/list', { kind: 'own', role: 'owner', limit: 1 });
    const [entry] = Array.isArray(recordings) ? recordings : [];
    if (entry?.id !== this.#row.id || !isWhole(entry.startedAt, 0, Number.MAX_SAFE_INTEGER)) return;
    this.clockAhead = registeredAt - entry.startedAt;
    this.#changed();
  }

  #save() {
    const { id } = this.#row;
    return this.#isClosed ? undefined : this.#store.put(['told', id, { contacts: this.contacts.toSave(), notes: this.#notes, next: this.#next, devices: this.#devices }]);
  }

  #changed() {
    this.dispatchEvent(new Event('change'));
  }
}

const isTime = (value) => value === undefined || isWhole(value, 0, Number.MAX_SAFE_INTEGER);
const isReader = (value) => typeof value?.user === 'string' && [value.alertedAt, value.reachedAt, value.seenAt].every(isTime);
