// The chain of lists announced in a call, as one join saw it: which list may follow which (protocol section 5, "Accepting a list").

import { MAX_LINKS, NO_LIST, Refusal, equal, listHashOf } from '../wire/index.js';
import { Roster } from './roster.js';

/** A list that does not follow from the lists announced before: this join cannot continue. */
export class BrokenHistory extends Refusal {}

export class ListHistory {
  /** The newest accepted list: `{epoch, mode, roster, listHash, isRing, isWhole}`; `isWhole`: the previous one was seen, too. */
  newest;
  #call;
  #own;
  #gone = new Set();

  /** `own` is this join: `{user, device, participant, fingerprint, joinId, publicKey}`, in base64. */
  constructor({ call, own }) {
    this.#call = call;
    this.#own = own;
  }

  /** Epoch 1 as made by this device. */
  async begin(list) {
    const roster = await Roster.of(list);
    return this.#accept({ epoch: 1, mode: 'fresh', roster, listHash: await this.#hash(1, NO_LIST, roster.hash), isWhole: true });
  }

  /** Epoch 1 as brought by a ring. */
  async beginRung(list) {
    const roster = await Roster.of(list);
    roster.checkOwn(this.#own, { isRing: true });
    return this.#accept({ epoch: 1, mode: 'fresh', roster, listHash: await this.#hash(1, NO_LIST, roster.hash), isRing: true, isWhole: true });
  }

  /** Whether an announcement can be the first for this join, and is not one for an earlier stay. */
  isFirst({ list }) {
    return list?.some(({ joinId }) => joinId === this.#own.joinId) ?? false;
  }

  /** The position of an announcement: `old`, `same`, `next` or `gap`. Throws `BrokenHistory` for a different list of the newest epoch. */
  place({ epoch, listHash }) {
    if (!this.newest) return 'next';
    if (epoch < this.newest.epoch) return 'old';
    if (epoch > this.newest.epoch) return epoch === this.newest.epoch + 1 ? 'next' : 'gap';
    if (!equal(listHash, this.newest.listHash)) throw new BrokenHistory('the same epoch with another list');
    return 'same';
  }

  /** Accepts the announcement of the next epoch, or the first that contains this join. Throws and changes nothing if it must be refused. */
  async next(announcement) {
    const { epoch, mode, previous, list } = announcement;
    const before = this.newest;
    if (before && !equal(previous, before.listHash)) throw new BrokenHistory('a list that does not follow from the one before');
    if (!before && !list) throw new Refusal('changes of a list that is not here');
    const roster = list ? await Roster.of(list) : await before.roster.changed(announcement);
    return this.#checked(announcement, { epoch, mode, roster, isWhole: Boolean(before) });
  }

  /** Accepts the reply of `keys/list`, requested with the newest known epoch. Undefined if it brings nothing new. */
  async catchUp(reply) {
    if (this.newest && this.place(reply) !== 'gap') return this.place(reply) === 'next' ? this.next(reply) : undefined;
    const roster = await Roster.of(reply.list);
    if (this.newest) await this.#checkLinks(reply, roster);
    return this.#checked(reply, { epoch: reply.epoch, mode: reply.mode, roster, isWhole: false });
  }

  async #checkLinks({ epoch, previous, links }, roster) {
    const missing = links.filter((link) => link.epoch > this.newest.epoch);
    if (epoch - this.newest.epoch > MAX_LINKS) throw new BrokenHistory('a gap of too many epochs');
    let hash = this.newest.listHash;
    for (let number = this.newest.epoch + 1; number <= epoch; number += 1) {
      const link = missing[number - this.newest.epoch - 1];
      if (link?.epoch !== number) throw new BrokenHistory('links with a gap');
      if (number === epoch && !(equal(hash, previous) && equal(link.roster, roster.hash))) throw new BrokenHistory('links that do not join');
      hash = await this.#hash(number, hash, link.roster);
    }
  }

  async #checked({ previous, listHash }, { epoch, mode, roster, isWhole }) {
    const before = this.newest;
    if (epoch === 1 && !equal(previous, NO_LIST)) throw new Refusal('a first epoch with one before it');
    if (!equal(await this.#hash(epoch, previous, roster.hash), listHash)) throw new Refusal('a list that is not what its hash says');
    roster.checkOwn(this.#own);
    if (before) roster.checkAgainst(before.roster, this.#gone);
    if (mode === 'ratchet' && isWhole) {
      if (before.roster.hasRung) throw new Refusal('a ratchet of a ring’s epoch');
      if (!before.roster.isKeptBy(roster)) throw new Refusal('a ratchet for a list that somebody is no longer on');
      if (!roster.losesSomebody(before.roster)) throw new Refusal('a ratchet that nobody came for');
    }
    return this.#accept({ epoch, mode, roster, listHash, isRing: false, isWhole });
  }

  #accept(accepted) {
    if (this.newest) for (const fact of this.newest.roster.lostTo(accepted.roster)) this.#gone.add(fact);
    this.newest = { isRing: false, ...accepted };
    return this.newest;
  }

  #hash(epoch, previous, roster) {
    return listHashOf({ call: this.#call, epoch, previous, roster });
  }
}
