// The keys of one call: lists, epochs, the leader's duties (protocol section 5).

import { equal, fromBase64, random } from './bytes.js';
import { Refusal, ownEntry } from './envelopes.js';
import { Epoch } from './epoch.js';
import { isOwn, sameDevice } from './identity.js';
import { SECRET_BYTES, callCodeOf, listHashOf, ratchet } from './transcript.js';

const ANSWERS_PER_DEVICE = 3; // epoch rule 6

/**
 * One join's key agreement. `request(path, body)` sends to `/app/calls/{id}/…`, `post(message)` to the worker. All is done in turn.
 * Events: `change` (the list in use), `warning` with `{problem, user, device, fingerprint}`.
 */
export class KeyAgreement extends EventTarget {
  #identity;
  #directory;
  #request;
  #post;
  #join;
  #epochs = new Map();
  #newest = 0;
  #current = 0;
  #sending = 0;
  #answers = new Map();
  #unanswered = new Map();
  #warned = new Set();
  #seats = new Map();
  #isSilent = false;
  #turn = Promise.resolve();

  constructor({ call, identity, directory, join, request, post }) {
    super();
    this.call = call;
    this.#identity = identity;
    this.#directory = directory;
    this.#join = join;
    this.#request = request;
    this.#post = post;
  }

  get epoch() {
    return this.#current;
  }

  /** The list of the epoch in use: everybody who can decrypt. */
  get list() {
    return this.#epochs.get(this.#current)?.list ?? [];
  }

  get canSend() {
    return this.#sending > 0 && this.#sending === this.#current && !this.#isSilent;
  }

  /** Each device of the list in use: `{user, device, fingerprint, problem?, isVerified}`. */
  get devices() {
    return this.#epochs.get(this.#current)?.devices ?? [];
  }

  /** Whether a device that is not verified, where only verified ones are talked to, is on the list in use or on one that comes next. */
  get hasUnverified() {
    return [...this.#epochs.values()].some((record) => record.devices.some(({ problem }) => problem === 'unverified'));
  }

  code() {
    return callCodeOf(this.call, this.list);
  }

  setParticipant(participant) {
    this.participant = participant;
    this.#post({ type: 'self', participant });
  }

  /** Who starts a call makes epoch 1: for itself, or what `ringEpoch` made for the callees' devices too. */
  begin(ring) {
    return this.#inTurn(async () => {
      const list = ring?.list ?? [ownEntry(this.#identity, this.#join, this.participant)];
      const record = await this.#admit({ epoch: 1, mode: 'fresh', list, listHash: await listHashOf(list) });
      await this.#setSecret(record, ring?.secret ?? random(SECRET_BYTES));
      await this.#switchTo(1);
    });
  }

  /** Who accepts a ring that brought a list and an envelope has epoch 1 at once. What is wrong with them is no harm: epoch 2 comes. */
  beginRung(ring) {
    return this.#inTurn(() => this.#beginRung(ring));
  }

  async #beginRung({ from, list, envelope }) {
    if (!list || !envelope || this.#newest > 0) return;
    try {
      // The caller is the one that has joined; a callee on the list has no key to hand out.
      const joined = list.filter(({ joinId }) => joinId);
      const isCallers = joined.length === 1 && joined[0].user === from && sameDevice(joined[0], envelope.from);
      if (envelope.epoch !== 1 || !isCallers) throw new Refusal('a ring envelope that is not the caller’s, or not of epoch 1');
      const record = await this.#admit({ epoch: 1, mode: 'fresh', list, listHash: await listHashOf(list), isRing: true });
      // `start` did not know the call's id: its fresh joinId, which is on the list, binds the envelope to this call.
      await this.#setSecret(record, await record.open(envelope, { call: '', pair: this.#identity.wrap }));
      await this.#switchTo(1);
    } catch (error) {
      this.#epochs.delete(1);
      this.#newest = 0;
      this.#refuse(error);
    }
  }

  /** Who has joined as which participant and with which joinId: `seats` maps `user/device` to it. */
  seated(seats) {
    this.#seats = seats;
    const record = this.#epochs.get(this.#current);
    if (!record?.secret || record.list.every(({ participant }) => participant > 0)) return undefined;
    return this.#inTurn(() => this.#install(record));
  }

  /** `keys.rotate`. */
  rotate(event) {
    return this.#inTurn(() => this.#rotate(event));
  }

  /** `keys.envelope`: resolves with whether it was opened, now or before. */
  envelope(event) {
    return this.#inTurn(() => this.#envelope(event));
  }

  /** `keys.switch`. */
  switchTo({ epoch }) {
    return this.#inTurn(() => this.#switchTo(epoch));
  }

  /** `keys.request`: the leader hands the newest key to one who lacks it. */
  requested(event) {
    return this.#inTurn(() => this.#requested(event));
  }

  /** After a gap in the events: which epoch there is, and its key if it is not here; `epoch` is the call's, whose switch may be what was lost. */
  async resync(epoch) {
    await this.#inTurn(() => this.#resync());
    await this.inUse(epoch);
  }

  /** The epoch that a state of the call names. One from before this join is not its business. */
  inUse(epoch) {
    return this.#inTurn(() => (epoch > this.#current && this.#epochs.has(epoch) ? this.#switchTo(epoch) : undefined));
  }

  /** The user takes a device's changed key. */
  trust(user, device, fingerprint) {
    this.#warned.delete(`${user}/${device}/changed-key`);
    return this.#inTurn(async () => {
      await this.#directory.trust(user, device, fingerprint);
      await this.#reconsider();
    });
  }

  /** The user has compared `code` with everybody: their devices are verified. Not those of another list that has come since. */
  verify(code) {
    return this.#inTurn(async () => {
      if (code !== (await this.code())) throw new Refusal('The call code has changed. Compare it again.');
      const entries = this.list.filter((entry) => !sameDevice(entry, this.#identity));
      await this.#directory.verify(entries);
      await this.#reconsider();
    });
  }

  /** The directory judges otherwise now: `verifiedOnly` was switched, or a device's keys changed. */
  reconsider() {
    return this.#inTurn(() => this.#reconsider());
  }

  /** The call is over, or joined anew: nothing of it stays in the page. */
  close() {
    for (const record of this.#epochs.values()) record.forget();
    this.#epochs.clear();
  }

  #inTurn(action) {
    const turn = this.#turn.then(action);
    this.#turn = turn.catch(() => {});
    return turn;
  }

  async #rotate(event) {
    if (event.epoch < this.#newest) return;
    const record = this.#epochs.get(event.epoch) ?? (await this.#announce(event));
    if (!record) return;
    await this.#ratchet(record);
    if (event.leader === this.participant && event.deliver) await this.#lead(record, event.deliver);
  }

  /** By the mode with which the epoch was announced, for its list was looked at with that; what the server says later changes nothing. */
  async #ratchet(record) {
    const before = this.#epochs.get(record.epoch - 1);
    if (record.mode !== 'ratchet' || record.secret || !before?.secret) return;
    await this.#setSecret(record, await ratchet(before.secret));
  }

  async #envelope(event) {
    try {
      if (event.epoch < this.#newest) throw new Refusal('an envelope of a lower epoch');
      if (!this.#epochs.has(event.epoch)) await this.#resync();
      const record = this.#epochs.get(event.epoch);
      if (!record) throw new Refusal('an envelope of an epoch without a list');
      if (!record.secret) {
        await this.#setSecret(record, await record.open(event, { call: this.call, pair: this.#join.pair }));
      }
      return true;
    } catch (error) {
      this.#refuse(error);
      return false;
    }
  }

  async #switchTo(epoch) {
    if (epoch < this.#current) return;
    if (!this.#epochs.has(epoch)) await this.#resync();
    const record = this.#epochs.get(epoch);
    if (!record) return;
    this.#current = epoch;
    this.#forgetBefore(epoch);
    if (record.secret) this.#send(epoch);
    this.#setSilence();
    if (!record.secret) await this.#request('keys/request', { epoch });
    this.dispatchEvent(new Event('change'));
  }

  async #requested({ epoch, to }) {
    const record = this.#epochs.get(epoch);
    if (!record?.secret || epoch !== this.#newest) return;
    const name = `${epoch}/${to.user}/${to.device}`;
    const answers = this.#answers.get(name) ?? 0;
    if (answers >= ANSWERS_PER_DEVICE) return;
    this.#answers.set(name, answers + 1);
    try {
      const envelopes = await record.envelopes(this.call, record.secret, [to]);
      // Who is not trusted yet asks once: the user may come to trust it.
      if (envelopes.length === 0) this.#unanswered.set(name, { epoch, to });
      else await this.#request('keys', { epoch, envelopes });
    } catch (error) {
      this.#refuse(error);
    }
  }

  async #resync() {
    const newest = await this.#request('keys/list', {});
    if (!newest.list || newest.epoch < this.#newest) return;
    const record = this.#epochs.get(newest.epoch) ?? (await this.#announce(newest));
    if (!record) return;
    await this.#ratchet(record);
    if (!record.secret) await this.#request('keys/request', { epoch: newest.epoch });
  }

  async #reconsider() {
    for (const record of this.#epochs.values()) await this.#examine(record);
    this.#setSilence();
    const record = this.#epochs.get(this.#newest);
    if (!record) return;
    if (record.secret) await this.#install(record);
    else await this.#request('keys/request', { epoch: record.epoch });
    const unanswered = [...this.#unanswered.values()];
    this.#unanswered.clear();
    for (const event of unanswered) await this.#requested(event);
    this.dispatchEvent(new Event('change'));
  }

  async #announce(event) {
    try {
      const list = event.list ?? this.#changed(event);
      if (!list) {
        await this.#resync();
        return this.#epochs.get(event.epoch);
      }
      const listHash = await listHashOf(list);
      if (!equal(listHash, fromBase64(event.listHash))) {
        if (event.list) throw new Refusal('a list that is not what its hash says');
        // The changes do not fit the list before, as when the server dropped ring envelopes: the whole list does.
        await this.#resync();
        return this.#epochs.get(event.epoch);
      }
      const before = this.#epochs.get(event.epoch - 1);
      if (event.mode === 'ratchet' && before && !before.list.every((old) => holds(list, old))) {
        throw new Refusal('a ratchet for a list that somebody is no longer on');
      }
      return await this.#admit({ epoch: event.epoch, mode: event.mode, list, listHash });
    } catch (error) {
      this.#refuse(error);
      return undefined;
    }
  }

  /** The list before with the event's changes; undefined when that list is not here. */
  #changed({ epoch, added = [], removed = [] }) {
    const before = this.#epochs.get(epoch - 1);
    if (!before) return undefined;
    const gone = [...removed, ...added];
    return [...before.list.filter((entry) => !gone.some((other) => sameDevice(other, entry))), ...added];
  }

  async #admit(description) {
    const record = new Epoch({ ...description, identity: this.#identity });
    const own = record.list.find((entry) => sameDevice(entry, this.#identity));
    const isThisJoin = record.isRing ? !own?.joinKey : own?.joinId === this.#join.wire.joinId;
    if (!own || !isOwn(own, this.#identity) || !isThisJoin) throw new Refusal('a list that this join is not on');
    await this.#examine(record);
    this.#epochs.set(record.epoch, record);
    this.#newest = Math.max(this.#newest, record.epoch);
    return record;
  }

  /** Each problem is told once, a new device whenever it is one. */
  async #examine(record) {
    for (const { entry, problem } of await record.examine(this.#directory)) {
      const { user, device, fingerprint } = entry;
      const name = `${user}/${device}/${problem}`;
      if (this.#warned.has(name)) continue;
      this.#warned.add(name);
      this.dispatchEvent(new CustomEvent('warning', { detail: { problem, user, device, fingerprint } }));
    }
  }

  /**
   * Who lacks the key in use sends nothing: under the one before somebody may listen who has gone. With `verifiedOnly` nothing is sent while
   * somebody is on the list who is not verified: another may give them the key.
   */
  get #mustBeSilent() {
    const record = this.#epochs.get(this.#current);
    return !record?.secret || (this.#directory.verifiedOnly && record.hasProblem);
  }

  #setSilence() {
    if (this.#mustBeSilent === this.#isSilent) return;
    this.#isSilent = !this.#isSilent;
    this.#post({ type: 'silence', isSilent: this.#isSilent });
  }

  async #setSecret(record, secret) {
    if (record.secret || secret.length !== SECRET_BYTES) throw new Refusal('a secret that is not wanted');
    record.secret = secret;
    await this.#install(record);
    if (record.epoch === this.#current) this.#send(record.epoch);
  }

  /** The worker gets a key that only derives, and the senders whose keys are trusted. */
  async #install(record) {
    const { epoch, listHash, secret } = record;
    const senders = record.senders({ participant: this.participant, joinId: this.#join.wire.joinId }, this.#seats);
    const key = await crypto.subtle.importKey('raw', secret, 'HKDF', false, ['deriveBits']);
    this.#post({ type: 'epoch', epoch, call: this.call, listHash, secret: key, senders });
  }

  #send(epoch) {
    if (this.#sending >= epoch) return;
    this.#sending = epoch;
    this.#isSilent = this.#mustBeSilent;
    // In one message: no frame may leave between the two.
    this.#post({ type: 'switch', epoch, isSilent: this.#isSilent });
  }

  #forgetBefore(epoch) {
    for (const [number, record] of this.#epochs) {
      if (number >= epoch) continue;
      record.forget();
      this.#epochs.delete(number);
    }
  }

  async #lead(record, deliver) {
    try {
      const { epoch, mode } = record;
      if (!record.secret && mode === 'ratchet') return void (await this.#request('keys/request', { epoch }));
      const secret = record.secret ?? random(SECRET_BYTES);
      const envelopes = await record.envelopes(this.call, secret, deliver);
      await this.#request('keys', { epoch, envelopes });
      if (!record.secret) await this.#setSecret(record, secret);
    } catch (error) {
      this.#refuse(error);
    }
  }

  #refuse(error) {
    // What was refused, never what was in it.
    console.warn(`Conclave: ${error instanceof Refusal ? `refused ${error.message}` : `${error.name} ${error.code ?? ''}`}`);
  }
}

const holds = (list, old) => list.some((entry) => entry.fingerprint === old.fingerprint);
