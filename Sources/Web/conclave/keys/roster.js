// A list of devices, checked as a whole: those that get an epoch's key, and what the next list must not change (protocol section 5, "List").

import { MAX_ENTRIES, Refusal, byUserThenDevice, rosterHashOf } from '../wire/index.js';

export const nameOf = ({ user, device }) => `${user}/${device}`;

/** A list that does not contain this join as required. */
export class NotListed extends Refusal {}

const isRung = ({ participant }) => participant === 0;

export class Roster {
  entries;
  byName;
  hash;

  /** `entries` are in order and were checked one by one (`entryIn`). Throws `Refusal` for a list that names anything twice. */
  static async of(entries) {
    const roster = new Roster();
    roster.entries = entries;
    roster.byName = checked(entries);
    roster.hash = await rosterHashOf(entries);
    return roster;
  }

  /** This list without the numbers in `removed`, and with `added`. A ring's entries disappear with the first list after theirs. */
  async changed({ added, removed }) {
    const gone = new Set(removed);
    const stay = this.entries.filter((entry) => !isRung(entry) && !gone.delete(entry.participant));
    if (gone.size > 0) throw new Refusal('a change that removes somebody who is not there');
    return Roster.of([...stay, ...added].sort(byUserThenDevice));
  }

  get hasRung() {
    return this.entries.some(isRung);
  }

  /** The entry of a device. */
  find(device) {
    return this.byName.get(nameOf(device));
  }

  /** Throws unless this join is on the list, once and unchanged. `isRing`: it came with a ring, before this device joined. */
  checkOwn(own, { isRing = false } = {}) {
    const entry = this.find(own);
    if (!entry || entry.fingerprint !== own.fingerprint) throw new NotListed('a list that this device is not on');
    if (isRing) {
      if (!isRung(entry)) throw new Refusal('a ring’s list on which this device has joined');
    } else if (entry.joinId !== own.joinId || entry.joinKey.publicKey !== own.publicKey) {
      throw new NotListed('a list that this join is not on');
    } else if (entry.participant !== own.participant) throw new NotListed('a list with another number for this device');
    const isDouble = (other) => other !== entry && (other.joinId === own.joinId || other.joinKey?.publicKey === own.publicKey || other.participant === own.participant);
    if (!isRing && this.entries.some(isDouble)) throw new Refusal('a list on which another has something of this join');
  }

  /** Throws if somebody who stays has changed, or somebody who left returns. `gone` contains the numbers and joinIds that left. */
  checkAgainst(before, gone) {
    const joins = new Map(before.entries.filter(({ joinId }) => joinId).map((entry) => [entry.joinId, entry]));
    const numbers = new Map(before.entries.map((entry) => [entry.participant, entry]));
    for (const entry of this.entries) {
      if (isRung(entry)) continue;
      const old = joins.get(entry.joinId);
      if (old && !isSame(old, entry)) throw new Refusal('a list on which somebody who stays is another');
      if (!old && numbers.has(entry.participant)) throw new Refusal('a list with a number of somebody else');
      if (gone.has(entry.joinId) || gone.has(entry.participant)) throw new Refusal('a list with somebody who went before');
    }
  }

  /** The numbers and joinIds that are here and not on `next`. */
  lostTo(next) {
    const staying = new Set(next.entries.map(({ joinId }) => joinId));
    return this.entries.filter((entry) => !isRung(entry) && !staying.has(entry.joinId)).flatMap(({ joinId, participant }) => [joinId, participant]);
  }

  /** Whether every key on this list is on `next`: only then is nobody excluded who could still ratchet. */
  isKeptBy(next) {
    const fingerprints = new Set(next.entries.map(({ fingerprint }) => fingerprint));
    return this.entries.every(({ fingerprint }) => fingerprints.has(fingerprint));
  }

  /** Whether somebody who can decrypt with this list could not with `next`. */
  losesSomebody(next) {
    const staying = new Set(next.entries.map(({ joinId }) => joinId));
    return this.entries.some(({ joinId }) => !staying.has(joinId));
  }
}

function isSame(old, entry) {
  const { user, device, participant, fingerprint, joinKey } = entry;
  const key = old.joinKey;
  return (
    old.user === user && old.device === device && old.participant === participant && old.fingerprint === fingerprint &&
    key.publicKey === joinKey.publicKey && key.alg === joinKey.alg
  );
}

function checked(entries) {
  if (entries.length > MAX_ENTRIES) throw new Refusal('a list that is too long');
  const byName = new Map();
  const seen = new Set();
  let before;
  for (const entry of entries) {
    if (before && byUserThenDevice(before, entry) >= 0) throw new Refusal('a list that is not in order, or names a device twice');
    before = entry;
    byName.set(nameOf(entry), entry);
    const facts = isRung(entry) ? [entry.fingerprint] : [entry.fingerprint, entry.joinId, entry.participant];
    for (const fact of facts) {
      if (seen.has(fact)) throw new Refusal('a list with one number, key or joinId twice');
      seen.add(fact);
    }
  }
  return byName;
}
