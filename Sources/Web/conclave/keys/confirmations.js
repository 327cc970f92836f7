// Members confirm to each other that they have the same secret for the same list (protocol section 5, "Confirmation"). It informs people and delays nothing.

import { Timers } from '../timers.js';
import { MAX_ENTRIES, Refusal, TAG_BYTES, bucketsIn, epochIn, equal, tagOf, tagsIn, toBase64 } from '../wire/index.js';

const BUCKET = 64;
const LEAST_SPREAD_MS = 500;
const SPREAD_PER_DEVICE_MS = 10;
const GRACE_MS = 10_000; // from the last confirmation that is due
const SMALL = 64; // devices: up to this number, short-lived epochs are not a storm
const UNCONFIRMED_MS = 120_000;
const RETRY_MS = 2_000;
const TRIES = 3;

const bitOf = (index) => 1n << BigInt(63 - index);

function xor(into, tag) {
  for (let i = 0; i < TAG_BYTES; i += 1) into[i] ^= tag[i];
}

/**
 * `request(path, body)` sends to `/app/calls/{id}/keys/…`; `lists` has the newest list, `epochs` the epoch in use. `warnings` are for people:
 * `wrong-confirmation`, with the entry that does not share this key, `false-confirmation` if the server's claim fits no tags, and `unconfirmed`.
 *
 * Events: `change` of `state`.
 */
export class Confirmations extends EventTarget {
  #join;
  #request;
  #lists;
  #epochs;
  #warnings;
  #epoch; // the record in use, from 2 on
  #began = 0;
  #spread = 0;
  #tags = new Map(); // participant -> promise of its correct tag
  #buckets = new Map(); // index -> bits that were accepted
  #fetched = new Set();
  #confirmed = new Set();
  #wrong = new Map(); // participant -> the tag that it sent
  #early; // {epoch, buckets}: arrived before this device had the key
  #isRefreshDue = false;
  #confirmedAt; // when an epoch was last confirmed by all
  #timers = new Timers();
  #told = '';

  constructor({ join, request, lists, epochs, warnings }) {
    super();
    this.#join = join;
    this.#request = request;
    this.#lists = lists;
    this.#epochs = epochs;
    this.#warnings = warnings;
  }

  /**
   * `{state, epoch, missing, wrong}`: `confirming`, as always in epoch 1, `confirmed` by all, or `not-confirmed`; `missing` are the participants without a
   * confirmation, `wrong` those who do not share this device's key.
   */
  get state() {
    const wrong = [...this.#wrong.keys()];
    if (!this.#epoch) return { state: 'confirming', epoch: 0, missing: [], wrong };
    const missing = this.#epoch.others.map(({ participant }) => participant).filter((number) => !this.#confirmed.has(number) && !this.#wrong.has(number));
    const now = performance.now();
    const isLate = now - this.#began >= this.#spread + GRACE_MS;
    const isNever = this.#epoch.list.length <= SMALL && now - this.#confirmedAt >= UNCONFIRMED_MS;
    const state = wrong.length + missing.length === 0 ? 'confirmed' : wrong.length > 0 || isLate || isNever ? 'not-confirmed' : 'confirming';
    return { state, epoch: this.#epoch.epoch, missing, wrong };
  }

  isConfirmed(participant) {
    return this.#confirmed.has(participant);
  }

  /** This device sends under `record` now. */
  began(record) {
    this.ended();
    this.#isRefreshDue ||= record.mode === 'fresh' && record.epoch > 1;
    if (record.epoch < 2) return;
    this.#epoch = record;
    this.#began = performance.now();
    this.#confirmedAt ??= this.#began;
    this.#spread = Math.max(LEAST_SPREAD_MS, record.list.length * SPREAD_PER_DEVICE_MS);
    this.#timers.after(Math.random() * this.#spread, () => this.#confirm(record, TRIES));
    this.#timers.after(this.#spread + GRACE_MS, () => this.#tell());
    if (this.#early?.epoch === record.epoch) this.#take(this.#early.buckets);
    this.#early = undefined;
    this.#tell();
  }

  /** The previous epoch is no longer in use, and the key of the next one has not arrived yet. */
  ended() {
    if (this.state.state === 'confirmed') this.#confirmedAt = performance.now();
    this.#clear();
  }

  /** `keys.confirmed`. */
  told({ epoch, buckets }) {
    try {
      this.received(epochIn(epoch), bucketsIn(buckets));
    } catch {
      this.#warn('false-confirmation');
    }
  }

  /** The same from `keys/list`: `buckets` as returned by `bucketsIn`. */
  received(epoch, buckets) {
    if (epoch === this.#epoch?.epoch) this.#take(buckets);
    else if (epoch > (this.#epoch?.epoch ?? 0)) {
      const before = this.#early?.epoch === epoch ? this.#early.buckets : [];
      this.#early = { epoch, buckets: [...before, ...buckets].slice(-MAX_ENTRIES / BUCKET) };
    }
  }

  close() {
    this.#clear();
    this.#early = undefined;
  }

  #clear() {
    this.#timers.clear();
    for (const kept of [this.#tags, this.#buckets, this.#fetched, this.#confirmed, this.#wrong]) kept.clear();
    this.#epoch = undefined;
    this.#told = '';
  }

  async #confirm(record, tries) {
    const isDue = () => record === this.#epoch && record.epoch === this.#lists.newest.epoch;
    if (!isDue()) return;
    const joinKey = await this.#join.refresh(performance.now(), this.#isRefreshDue);
    const tag = toBase64(await tagOf(record.confirmationKey, record.own));
    if (!isDue()) return;
    try {
      await this.#request('confirm', { epoch: record.epoch, tag, ...(joinKey ? { joinKey } : {}) });
    } catch (error) {
      if (tries > 1 && !error.code?.startsWith('keys.')) this.#timers.after(RETRY_MS, () => this.#confirm(record, tries - 1));
      return;
    }
    if (!joinKey) return;
    this.#isRefreshDue = false;
    this.#join.markPublished(joinKey);
  }

  /** Each correct tag is computed once per epoch, by WebCrypto off this thread. */
  #tag(entry) {
    const { participant } = entry;
    if (!this.#tags.has(participant)) this.#tags.set(participant, tagOf(this.#epoch.confirmationKey, entry));
    return this.#tags.get(participant);
  }

  #take(buckets) {
    const record = this.#epoch;
    for (const bucket of buckets) {
      this.#check(record, bucket).catch((error) => {
        if (record !== this.#epoch) return;
        this.#warn('false-confirmation');
        if (error instanceof Refusal) this.#fetch(record, bucket.index);
      });
    }
  }

  #entriesOf(record, index) {
    return record.list.slice(index * BUCKET, (index + 1) * BUCKET);
  }

  /**
   * @param {any} record
   * @param {{ index: number, bits: bigint, tag: Uint8Array }} bucket
   */
  async #check(record, { index, bits, tag }) {
    const entries = this.#entriesOf(record, index);
    const known = this.#buckets.get(index) ?? 0n;
    let listed = 0n;
    for (const at of entries.keys()) listed |= bitOf(at);
    if (entries.length === 0 || (bits & ~listed) !== 0n) throw new Refusal('a confirmation of somebody who is not on the list');
    if ((known & ~bits) !== 0n) throw new Refusal('a confirmation that is taken back');
    const set = entries.filter((_, at) => (bits & bitOf(at)) !== 0n);
    const expected = new Uint8Array(TAG_BYTES);
    for (const entry of set) xor(expected, this.#wrong.get(entry.participant) ?? (await this.#tag(entry)));
    if (record !== this.#epoch) return;
    if (!equal(expected, tag)) {
      this.#fetch(record, index);
      return;
    }
    this.#buckets.set(index, bits | (this.#buckets.get(index) ?? 0n));
    for (const { participant } of set) if (!this.#wrong.has(participant)) this.#confirmed.add(participant);
    this.#tell();
  }

  /** One wrong tag spoils its bucket: the individual tags show whose it is. Once per bucket and epoch. */
  async #fetch(record, index) {
    const entries = this.#entriesOf(record, index);
    if (entries.length === 0 || this.#fetched.has(index)) return;
    this.#fetched.add(index);
    let isExplained = false;
    try {
      const tags = tagsIn(await this.#request('confirmations', { epoch: record.epoch, bucket: index }));
      for (const entry of entries) {
        const sent = tags.get(entry.participant);
        const right = sent && (await this.#tag(entry));
        if (record !== this.#epoch) return;
        if (!sent) continue;
        if (equal(sent, right)) this.#confirmed.add(entry.participant);
        else {
          isExplained = true;
          this.#confirmed.delete(entry.participant);
          this.#wrong.set(entry.participant, sent);
          this.#warn('wrong-confirmation', entry);
        }
      }
    } catch {
      // It stays unconfirmed.
    }
    if (record !== this.#epoch) return;
    if (!isExplained) this.#warn('false-confirmation');
    this.#tell();
  }

  #tell() {
    const { state, epoch, missing, wrong } = this.state;
    const told = `${state}/${epoch}/${missing.length}/${wrong.length}`;
    if (told === this.#told) return;
    const wasUnconfirmed = this.#told.startsWith('not-confirmed');
    this.#told = told;
    if (state === 'not-confirmed' && !wasUnconfirmed) this.#warn('unconfirmed');
    this.dispatchEvent(new Event('change'));
  }

  #warn(problem, listed) {
    this.#warnings.warn(problem, { epoch: this.#epochs.current, ...listed });
  }
}
