// One epoch of a call as this device knows it: its list, who on it is trusted, and its secret once that is here.

import { SENT_TO, sameDevice } from '../trust/index.js';
import { Refusal, SECRET_BYTES, confirmationKeyOf, equal, fromBase64, importSecret, isSecret, random, ratchet } from '../wire/index.js';
import { makeEnvelope } from './envelopes.js';
import { isJoinKeySigned } from './join-keys.js';
import { nameOf } from './roster.js';

const HEARD = [undefined, 'unverified']; // an unverified device is heard, but gets no keys

export class Epoch {
  /** The fields of the accepted list: see `ListHistory`. */
  epoch;
  mode;
  isRing = false;
  roster;
  listHash;
  isWhole;
  /** This device's entry. */
  own;
  /** The epoch is over for this device, or its stay is: no secret is accepted for it, and nothing is sealed. */
  isOver = false;
  /** Derives the keys of frames: for the worker, as long as the secret is here. */
  key;
  /** Makes this epoch's confirmations; remains when the secret is gone. */
  confirmationKey;
  #identity;
  #call;
  #secret; // these bytes are wiped: everybody else gets a copy
  #proposal; // what this device hands out as the epoch's leader, before the server has accepted it
  #keys = new Map();
  #facts = new Map();
  #unread; // names of devices that were not even looked up in the local store
  #isStrict;
  #isUninvited;
  #looking = 0;

  /**
   * `accepted` as returned by `ListHistory`. `leastGeneration`: envelopes to lower generations of this device's join key are refused. `isStrict()` says whether
   * only verified and vouched devices are sent to now, `isUninvited(entry)` whether nobody let in that device.
   */
  constructor(accepted, { identity, call, leastGeneration = 0, isStrict = () => false, isUninvited = (_entry) => false }) {
    Object.assign(this, accepted, { leastGeneration });
    this.#identity = identity;
    this.#call = call;
    this.#isStrict = isStrict;
    this.#isUninvited = isUninvited;
    this.#unread = new Set(this.others.map(nameOf));
  }

  get list() {
    return this.roster.entries;
  }

  get others() {
    return this.list.filter((entry) => !sameDevice(entry, this.#identity));
  }

  get hasSecret() {
    return this.#secret !== undefined;
  }

  /** A copy of the 32 bytes, until the next epoch is in use. */
  get secret() {
    return this.#secret?.slice();
  }

  /** Stores a copy of `secret`. Returns whether it counts: the first one does, unless the epoch is over by then. Throws if it is not a secret. */
  async setSecret(secret) {
    if (!isSecret(secret)) throw new Refusal('a secret that is none');
    const own = secret.slice();
    const scope = { call: this.#call, epoch: this.epoch, listHash: this.listHash };
    const [key, confirmationKey] = await Promise.all([importSecret(own), confirmationKeyOf(own, scope)]);
    if (!this.isWanting) {
      own.fill(0);
      return false;
    }
    this.#secret = own;
    this.#forgetProposal();
    Object.assign(this, { key, confirmationKey });
    return true;
  }

  /** Whether a secret would be accepted. */
  get isWanting() {
    return !this.isOver && !this.#secret;
  }

  /** Makes the only secret that this device proposes as the leader, however often it is asked to lead. */
  propose() {
    if (this.isWanting) this.#proposal ??= random(SECRET_BYTES);
  }

  /**
   * Returns the result of `work(copy)` on a copy of the secret, or of the proposed one while there is none. The copy is wiped when the work is done, and not
   * while it is running.
   */
  async lend(work) {
    const copy = this.#lent?.slice();
    if (!copy) throw new Refusal('a key of an epoch that is over');
    try {
      return await work(copy);
    } finally {
      copy.fill(0);
    }
  }

  get #lent() {
    return this.#secret ?? this.#proposal;
  }

  /** The secret that follows from the epoch `before`; undefined if a fresh one is expected, or lists between the two were missed. */
  async ratcheted(before) {
    if (this.mode !== 'ratchet' || !this.isWanting || !this.isWhole || !before?.hasSecret) return undefined;
    return before.lend((secret) => ratchet(secret, { call: this.#call, epoch: this.epoch, listHash: this.listHash }));
  }

  /** Each device of the list, with `problem`, `isVerified` and the other facts of the directory. */
  get devices() {
    return this.list.map((entry) => {
      const facts = this.#facts.get(nameOf(entry));
      return facts ? { ...entry, ...facts, problem: this.problemOf(entry) } : { ...entry };
    });
  }

  /** An entry that was not looked up yet, or could not be, is a problem. */
  get hasProblem() {
    return this.others.some((entry) => this.problemOf(entry));
  }

  get isLookingUp() {
    return this.#looking > 0;
  }

  /** Whether there is a device that may be revoked, or have another key, according to the local store, which was not read yet. */
  get isUnread() {
    return this.#unread.size > 0;
  }

  /** The person may have become strict since the device was looked up. */
  problemOf(entry) {
    const facts = this.#facts.get(nameOf(entry));
    if (!facts) return 'unknown-keys';
    return facts.problem ?? (this.#isStrict() && !SENT_TO.includes(facts.level) ? 'unverified' : undefined);
  }

  isLookedUp(entry) {
    return this.#facts.has(nameOf(entry));
  }

  /** The fingerprints of the devices that are not looked up yet. */
  get awaited() {
    return new Set(this.others.filter((entry) => !this.isLookedUp(entry)).map(({ fingerprint }) => fingerprint));
  }

  /** The devices whose keys are here, and match what is pinned: `{user, device, fingerprint, keys}`. */
  get known() {
    return this.others.flatMap((entry) => {
      const keys = this.keysOf(entry);
      return keys ? [{ ...entry, keys }] : [];
    });
  }

  /** The keys of a device whose pin matches: what it signs counts, and it is heard. */
  keysOf(entry) {
    return HEARD.includes(this.problemOf(entry)) ? this.#keys.get(nameOf(entry)) : undefined;
  }

  /** The keys of a device whose envelopes are opened. */
  keysOfGiver(entry) {
    return this.isUninvited(entry) ? undefined : this.keysOf(entry);
  }

  /** A ring's list is in its initiator's envelope: nobody on it is uninvited. */
  isUninvited(entry) {
    return !this.isRing && this.#isUninvited(entry);
  }

  /** Keeps what is known about devices that were on the previous list. */
  inherit(before) {
    for (const entry of this.others) {
      const old = before.roster.find(entry);
      if (!old || old.fingerprint !== entry.fingerprint || old.joinId !== entry.joinId) continue;
      const name = nameOf(entry);
      if (!before.#unread.has(name)) this.#unread.delete(name);
      if (before.#facts.has(name)) this.#facts.set(name, before.#facts.get(name));
      if (before.#keys.has(name)) this.#keys.set(name, before.#keys.get(name));
    }
  }

  /**
   * Looks up `entries`; returns what people should know: `{entry, problem}`. The earlier result remains in force until all look-ups are done; a failed one
   * changes nothing. `distrusted(results)` is called before the server is asked, with those that are distrusted according to the local store.
   */
  async examine(directory, entries = this.others, distrusted = (_results) => {}) {
    this.#looking += 1;
    try {
      const remembered = (results) => {
        for (const result of results) this.#note(result);
        this.#read(entries);
        distrusted(results);
      };
      const results = await directory.examine(entries, { remembered });
      const looked = await Promise.all(results.map((result) => this.#withJoinKey(result)));
      for (const result of looked) this.#note(result);
      return looked.flatMap(({ entry, problem, isNew, isOfVerified, isSelfRevoked }) => [
        ...(isNew ? [{ entry, problem: 'new-device', isOfVerified }] : []),
        ...(problem ? [{ entry, problem, isSelfRevoked }] : []),
      ]);
    } finally {
      this.#read(entries);
      this.#looking -= 1;
    }
  }

  #note({ entry, keys, problem, isNew, isFirst, isVerified, level, isSelfRevoked }) {
    const name = nameOf(entry);
    this.#facts.set(name, { problem, isVerified, level, isNew, isFirst, isSelfRevoked });
    if (keys) this.#keys.set(name, keys);
    else this.#keys.delete(name);
  }

  #read(entries) {
    for (const entry of entries) this.#unread.delete(nameOf(entry));
  }

  async #withJoinKey(result) {
    const { entry, keys } = result;
    if (!keys || entry.participant === 0 || (await isJoinKeySigned(entry, entry.joinKey, this.#call, keys))) return result;
    return { ...result, keys: undefined, problem: 'bad-join-key' };
  }

  /**
   * The senders whose frames the worker opens; never this device. `seats` maps `user/device` to `{participant, joinId}` for devices that have neither on a
   * ring's list. Their sender key uses the joinId with which they joined: without one, a second ring could make them seal twice under one key.
   */
  senders(seats, ownParticipant) {
    const senders = [];
    for (const entry of this.others) {
      const seat = entry.participant ? entry : seats.get(nameOf(entry));
      if (!this.keysOf(entry) || !seat || seat.participant === ownParticipant) continue;
      senders.push({ participant: seat.participant, fingerprint: fromBase64(entry.fingerprint), joinId: fromBase64(seat.joinId) });
    }
    return senders;
  }

  /** The entry of this list that `asked` requests; throws if there is none. */
  listed(asked) {
    const entry = this.roster.find(asked);
    const isSame = ({ fingerprint, joinId, joinKey }) => fingerprint === asked.fingerprint && joinId === asked.joinId && joinKey?.publicKey === asked.joinKey?.publicKey;
    if (!entry || !isSame(entry)) {
      throw new Refusal('a key is asked for somebody who is not on the list');
    }
    return entry;
  }

  /**
   * The envelope of the secret, or of the proposed one, for `asked`, an entry that the server passes to a leader; undefined if it is not trusted. `seen` are
   * the join keys seen of others: `{problem: 'old-join-key'}` for one that is older, or not signed. Throws if the epoch is over when the envelope is made, or
   * has another secret by then.
   */
  async envelope(asked, seen) {
    const entry = this.listed(asked);
    const keys = this.#keys.get(nameOf(entry));
    if (!keys || this.problemOf(entry) || this.isUninvited(entry) || !entry.joinKey) return undefined;
    const target = asked.refresh ?? entry.joinKey;
    const isSigned = !asked.refresh || (await isJoinKeySigned(entry, asked.refresh, this.#call, keys));
    if (!isSigned || !seen.accepts(entry, target)) return { problem: 'old-join-key' };
    const { epoch, listHash } = this;
    return this.lend(async (secret) => {
      const envelope = await makeEnvelope({ identity: this.#identity, call: this.#call, epoch, listHash, entry, target, secret });
      if (!this.#lent || !equal(this.#lent, secret)) throw new Refusal('a key of an epoch that is over');
      return envelope;
    });
  }

  /** The entry of a participant whose keys and join key are trusted; throws if there is none. */
  trustedEntry(participant) {
    const entry = this.others.find((other) => other.participant === participant);
    if (!entry?.joinKey || !this.keysOf(entry)) throw new Refusal('a participant that is not on the list, or not trusted');
    return entry;
  }

  /** The epoch is over. */
  forget() {
    this.isOver = true;
    this.#secret?.fill(0);
    this.#secret = undefined;
    this.key = undefined;
    this.#forgetProposal();
  }

  #forgetProposal() {
    this.#proposal?.fill(0);
    this.#proposal = undefined;
  }
}
