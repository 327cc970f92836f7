// The keys of one call: lists, epochs, envelopes, the leader's duties and the call code (protocol section 5).

import { concat, equal, fromBase64, lp, random, sha256, toBase64, u32, utf8 } from './bytes.js';
import { isOwn, isSignedBy, sameDevice } from './identity.js';
import { canWrap, hpkeOpen, wrap } from './wrap.js';

const SECRET_BYTES = 32;
const ANSWERS_PER_DEVICE = 3; // epoch rule 6

const byUserThenDevice = (a, b) =>
  a.user < b.user ? -1 : a.user > b.user ? 1 : a.device < b.device ? -1 : a.device > b.device ? 1 : 0;

/** The list as bytes: fingerprint ‖ joinId ‖ SHA-256(join key SPKI) of each device, sorted by user, then device. */
export async function listBytes(list) {
  const rows = [...list].sort(byUserThenDevice).map(async ({ fingerprint, joinId, joinKey }) =>
    concat(
      fromBase64(fingerprint),
      joinId ? fromBase64(joinId) : new Uint8Array(16),
      joinKey ? await sha256(fromBase64(joinKey.publicKey)) : new Uint8Array(32),
    ),
  );
  return concat(...(await Promise.all(rows)));
}

export const listHashOf = async (list) => sha256(await listBytes(list));

/** The 40 digits that are the same on all honest screens. */
export async function callCodeOf(call, list) {
  const digest = await sha256(concat(utf8('conclave-code-v1'), lp(call), await listBytes(list)));
  const number = digest.reduce((value, byte) => (value << 8n) | BigInt(byte), 0n);
  return (number % 10n ** 40n).toString().padStart(40, '0');
}

/** The secret of the next epoch, for everybody who has this one's. */
export async function ratchet(secret) {
  const source = await crypto.subtle.importKey('raw', secret, 'HKDF', false, ['deriveBits']);
  const parameters = { name: 'HKDF', hash: 'SHA-512', salt: new Uint8Array(0), info: utf8('SFrame 1.0 Ratchet') };
  return new Uint8Array(await crypto.subtle.deriveBits(parameters, source, SECRET_BYTES * 8));
}

/** What an envelope's signature covers. */
export async function envelopeBytes({ call, epoch, from, to, alg, ciphertext, listHash }) {
  const names = [from.user, from.device, to.user, to.device, alg].map(lp);
  return concat(utf8('conclave-envelope-v1'), lp(call), u32(epoch), ...names, await sha256(ciphertext), listHash);
}

/** Why something the server sent is not taken; a reason in words for the console. */
class Refusal extends Error {}

/**
 * The key agreement of one join of one call. `request(path, body)` sends to `/app/calls/{id}/…`; `post(message)` goes to the
 * worker. What is asked of it is done one after the other.
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
  #warned = new Set();
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
    return this.#sending > 0 && this.#sending === this.#current;
  }

  code() {
    return callCodeOf(this.call, this.list);
  }

  setParticipant(participant) {
    this.participant = participant;
    this.#post({ type: 'self', participant });
  }

  /** Who starts a call makes epoch 1, and is alone on its list. */
  async begin() {
    const { user, device, fingerprint } = this.#identity;
    const entry = { user, device, participant: this.participant, fingerprint: toBase64(fingerprint), ...this.#join.wire };
    const record = await this.#admit({ epoch: 1, mode: 'fresh', list: [entry], listHash: await listHashOf([entry]) });
    await this.#setSecret(record, random(SECRET_BYTES));
    await this.#switchTo(1);
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

  /** After a gap in the events: which epoch there is, and its key if it is not here. */
  resync() {
    return this.#inTurn(() => this.#resync());
  }

  /** The user takes a device's changed key. */
  trust(user, device) {
    return this.#inTurn(() => this.#trust(user, device));
  }

  /** The call is over, or joined anew: nothing of it stays in the page. */
  close() {
    for (const record of this.#epochs.values()) record.secret?.fill(0);
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
    if (event.mode === 'ratchet' && !record.secret) {
      const before = this.#epochs.get(event.epoch - 1);
      if (before?.secret) await this.#setSecret(record, await ratchet(before.secret));
    }
    if (event.leader === this.participant && event.deliver) await this.#lead(record, event.deliver);
  }

  async #envelope(event) {
    try {
      if (event.epoch < this.#newest) throw new Refusal('an envelope of a lower epoch');
      if (!this.#epochs.has(event.epoch)) await this.#resync();
      const record = this.#epochs.get(event.epoch);
      if (!record) throw new Refusal('an envelope of an epoch without a list');
      if (!record.secret) await this.#setSecret(record, await this.#open(record, event));
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
    else await this.#request('keys/request', { epoch });
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
      const envelopes = await this.#envelopes(record, record.secret, [to]);
      if (envelopes.length > 0) await this.#request('keys', { epoch, envelopes });
    } catch (error) {
      this.#refuse(error);
    }
  }

  async #resync() {
    const newest = await this.#request('keys/list', {});
    if (newest.epoch < this.#newest) return;
    const record = this.#epochs.get(newest.epoch) ?? (await this.#announce(newest));
    if (!record) return;
    const before = this.#epochs.get(newest.epoch - 1);
    if (!record.secret && newest.mode === 'ratchet' && before?.secret) {
      await this.#setSecret(record, await ratchet(before.secret));
    }
    if (!record.secret) await this.#request('keys/request', { epoch: newest.epoch });
  }

  async #trust(user, device) {
    await this.#directory.trust(user, device);
    this.#warned.delete(`${user}/${device}`);
    const record = this.#epochs.get(this.#newest);
    if (!record) return;
    await this.#examine(record);
    if (record.secret) await this.#install(record);
    else await this.#request('keys/request', { epoch: record.epoch });
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
      if (!equal(listHash, fromBase64(event.listHash))) throw new Refusal('a list that is not what its hash says');
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

  async #admit(record) {
    const own = record.list.find((entry) => sameDevice(entry, this.#identity));
    if (!own || !isOwn(own, this.#identity) || own.joinId !== this.#join.wire.joinId) {
      throw new Refusal('a list that this join is not on');
    }
    await this.#examine(record);
    this.#epochs.set(record.epoch, record);
    this.#newest = Math.max(this.#newest, record.epoch);
    return record;
  }

  /** Finds each entry's keys; `record.keys` maps `user/device` to them for those that are to be trusted. */
  async #examine(record) {
    const others = record.list.filter((entry) => !sameDevice(entry, this.#identity));
    record.keys = new Map();
    for (const { entry, keys, problem } of await this.#directory.examine(others)) {
      const name = `${entry.user}/${entry.device}`;
      if (keys) record.keys.set(name, keys);
      else if (!this.#warned.has(name)) {
        this.#warned.add(name);
        const { user, device, fingerprint } = entry;
        this.dispatchEvent(new CustomEvent('warning', { detail: { problem, user, device, fingerprint } }));
      }
    }
  }

  async #setSecret(record, secret) {
    if (record.secret || secret.length !== SECRET_BYTES) throw new Refusal('a secret that is not wanted');
    record.secret = secret;
    await this.#install(record);
    if (record.epoch === this.#current) this.#send(record.epoch);
  }

  /** The worker gets a key that only derives, and the senders whose keys are trusted. */
  async #install({ epoch, listHash, secret, list, keys }) {
    const senders = list
      .filter((entry) => sameDevice(entry, this.#identity) || keys.has(`${entry.user}/${entry.device}`))
      .map(({ participant, fingerprint, joinId }) => ({
        participant,
        fingerprint: fromBase64(fingerprint),
        joinId: joinId ? fromBase64(joinId) : new Uint8Array(16),
      }));
    const key = await crypto.subtle.importKey('raw', secret, 'HKDF', false, ['deriveBits']);
    this.#post({ type: 'epoch', epoch, call: this.call, listHash, secret: key, senders });
  }

  #send(epoch) {
    if (this.#sending >= epoch) return;
    this.#sending = epoch;
    this.#post({ type: 'switch', epoch });
  }

  #forgetBefore(epoch) {
    for (const [number, record] of this.#epochs) {
      if (number >= epoch) continue;
      record.secret?.fill(0);
      this.#epochs.delete(number);
    }
  }

  async #lead(record, deliver) {
    try {
      const { epoch, mode } = record;
      if (!record.secret && mode === 'ratchet') return void (await this.#request('keys/request', { epoch }));
      const secret = record.secret ?? random(SECRET_BYTES);
      const envelopes = await this.#envelopes(record, secret, deliver);
      await this.#request('keys', { epoch, envelopes });
      if (!record.secret) await this.#setSecret(record, secret);
    } catch (error) {
      this.#refuse(error);
    }
  }

  /** Envelopes for the trusted ones of `entries`; throws when one is not on the list. */
  async #envelopes(record, secret, entries) {
    const own = { user: this.#identity.user, device: this.#identity.device };
    const sealed = entries.map(async (asked) => {
      const entry = record.list.find((other) => sameDevice(other, asked) && other.fingerprint === asked.fingerprint);
      if (!entry) throw new Refusal('a key is asked for somebody who is not on the list');
      const keys = record.keys.get(`${entry.user}/${entry.device}`);
      const target = entry.joinKey ?? keys?.find((key) => key.use === 'wrap');
      if (!keys || !canWrap(target.alg)) return undefined;
      const ciphertext = await wrap(target.alg, fromBase64(target.publicKey), secret);
      const { epoch, listHash } = record;
      const to = { user: entry.user, device: entry.device };
      const facts = { call: this.call, epoch, from: own, to, alg: target.alg, ciphertext, listHash };
      const { sigAlg, signature } = await this.#identity.sign(await envelopeBytes(facts));
      const wire = { epoch, to, alg: target.alg, ciphertext: toBase64(ciphertext) };
      return { ...wire, sigAlg, signature: toBase64(signature) };
    });
    return (await Promise.all(sealed)).filter(Boolean);
  }

  async #open(record, { epoch, to, from, alg, sigAlg, signature, ...event }) {
    if (!sameDevice(to, this.#identity)) throw new Refusal('an envelope for somebody else');
    if (!signature || !from) throw new Refusal('an envelope that nobody signed');
    const keys = record.keys.get(`${from.user}/${from.device}`);
    if (!keys) throw new Refusal('an envelope from a device that is not on the list, or not trusted');
    const ciphertext = fromBase64(event.ciphertext ?? event.encryptedAESKey);
    const facts = { call: this.call, epoch, from, to, alg, ciphertext, listHash: record.listHash };
    if (!(await isSignedBy(keys, sigAlg, fromBase64(signature), await envelopeBytes(facts)))) {
      throw new Refusal('an envelope with a wrong signature');
    }
    if (alg !== this.#join.wire.joinKey.alg) throw new Refusal('an envelope of another algorithm');
    return hpkeOpen(this.#join.pair, ciphertext);
  }

  #refuse(error) {
    // What was refused, never what was in it.
    console.warn(`Conclave: ${error instanceof Refusal ? `refused ${error.message}` : `${error.name} ${error.code ?? ''}`}`);
  }
}

const holds = (list, old) => list.some((entry) => entry.fingerprint === old.fingerprint);
