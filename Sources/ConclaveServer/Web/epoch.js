// One epoch of a call as this device knows it: its list, who of it is trusted, and its secret once it is here.

import { fromBase64 } from './bytes.js';
import { Refusal, openEnvelope, signEnvelope, wrapped } from './envelopes.js';
import { sameDevice } from './identity.js';

export const nameOf = ({ user, device }) => `${user}/${device}`;

export class Epoch {
  secret;
  #identity;
  #keys = new Map();
  #facts = new Map();

  /** `isRing`: the list came with a ring, before this device has joined. */
  constructor({ epoch, mode, list, listHash, isRing = false, identity }) {
    Object.assign(this, { epoch, mode, list, listHash, isRing });
    this.#identity = identity;
  }

  get others() {
    return this.list.filter((entry) => !sameDevice(entry, this.#identity));
  }

  /** Each device of the list, with `problem` and `isVerified`. */
  get devices() {
    return this.list.map((entry) => ({ ...entry, ...this.#facts.get(nameOf(entry)) }));
  }

  get hasProblem() {
    return [...this.#facts.values()].some(({ problem }) => problem);
  }

  problemOf(entry) {
    return this.#facts.get(nameOf(entry))?.problem;
  }

  /** Finds each entry's keys; brings what people should know: `{entry, problem}`. */
  async examine(directory) {
    this.#keys = new Map();
    this.#facts = new Map();
    const news = [];
    for (const { entry, keys, problem, isNew, isVerified } of await directory.examine(this.others)) {
      this.#facts.set(nameOf(entry), { problem, isVerified });
      if (keys) this.#keys.set(nameOf(entry), keys);
      if (isNew) news.push({ entry, problem: 'new-device' });
      if (problem) news.push({ entry, problem });
    }
    return news;
  }

  /**
   * Whose frames are opened, as the worker wants them. `own` is this join; `seats` maps `user/device` to `{participant, joinId}` for
   * devices that have neither on a ring's list. Their sender key takes the joinId that they joined with: with none, a second ring could
   * make them seal twice under one key.
   */
  senders(own, seats) {
    const seatOf = (entry) => {
      if (sameDevice(entry, this.#identity)) return own;
      if (!this.#keys.has(nameOf(entry))) return undefined;
      return entry.participant ? entry : seats.get(nameOf(entry));
    };
    const seated = this.list.map((entry) => ({ entry, seat: seatOf(entry) })).filter(({ seat }) => seat);
    return seated.map(({ entry, seat: { participant, joinId } }) => ({
      participant,
      fingerprint: fromBase64(entry.fingerprint),
      joinId: joinId ? fromBase64(joinId) : new Uint8Array(16),
    }));
  }

  /** Envelopes for the trusted ones of `entries`; throws when one is not on the list. */
  async envelopes(call, secret, entries) {
    const listed = entries.map((asked) => {
      const entry = this.list.find((other) => sameDevice(other, asked) && other.fingerprint === asked.fingerprint);
      if (!entry) throw new Refusal('a key is asked for somebody who is not on the list');
      return entry;
    });
    return (await Promise.all(listed.map((entry) => this.#envelope(call, secret, entry)))).filter(Boolean);
  }

  async #envelope(call, secret, entry) {
    const keys = this.#keys.get(nameOf(entry));
    if (!keys || this.problemOf(entry)) return undefined;
    const target = entry.joinKey ?? keys.find((key) => key.use === 'wrap');
    const ciphertext = await wrapped(target, secret);
    if (!ciphertext) return undefined;
    const { epoch, listHash } = this;
    return signEnvelope({ identity: this.#identity, call, epoch, listHash, entry, alg: target.alg, ciphertext });
  }

  /** The secret in `envelope`, wrapped to `pair`; throws for one that is not by a trusted device of this list. */
  open(envelope, { call, pair }) {
    const keysOf = (from) => (this.problemOf(from) ? undefined : this.#keys.get(nameOf(from)));
    return openEnvelope(envelope, { identity: this.#identity, call, listHash: this.listHash, pair, keysOf });
  }

  forget() {
    this.secret?.fill(0);
  }
}
