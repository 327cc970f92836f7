// Compares the list of those who can decrypt with those who are said to be in the call (protocol section 5.12). No sockets, no clock: time is an argument, in
// ms.

import { nameOf } from './roster.js';

const ASK_AFTER_MS = 5_000; // a listed device without a participant, or that nobody let in: after this `state` and `keys/list` are requested
const ANSWER_MS = 5_000; // a question that is open longer counts as answered
const GONE_WARNS_MS = 3_000;
const GONE_STOPS_MS = 15_000; // each dead leader costs the server 3 s
const REMEMBERED_MS = 60_000; // a suspicion about a device that is no longer on a list
const SECOND_STOP_MS = 60_000;
const FIRST_EPOCH_CONNECTED_MS = 10_000;
const FIRST_EPOCH_MS = 60_000;
const MINUTE_MS = 60_000;
const OLDEST_EPOCH_MINUTES = 120;
const LEFT_KEPT = 256;
const SETTLED_MS = 30_000; // after a reconnect, before the age of an epoch says anything

const NOTHING_DONE = { isAsked: false, isStopping: false, isTold: false };
const within = (ms) => Math.min(Math.max(ms, 0), GONE_STOPS_MS);
const seatName = ({ user, device, participant }) => `${user}/${device}/${participant}`;
const keyName = ({ user, device, fingerprint }) => `${user}/${device}/${fingerprint}`;

/** A device as shown to a person: with another key or another join it is a different one, even under the same name. */
export const exactName = ({ user, device, fingerprint, joinId }) => [user, device, fingerprint, joinId].join('/');

/**
 * The rules of protocol section 5.12 about the list and the call.
 *
 * For the page, by way of `Call`:
 * - `people`: everybody on the list or in the call, `{user, device, participant, fingerprint, joinId, listed, member, hasLeft, isStranger}`. `listed`: can
 *   decrypt what this device sends now. `member`: the server says that it is this participant. Both should be true of everybody. A device that is only listed
 *   is `isStranger` (it was never seen as a participant while it was listed) or `hasLeft`. A member that is not listed cannot hear yet. All of this is reported
 *   without delay: each listed device is shown. `Call.roster` is made from it.
 * - `stopped`: why nothing is sent, or undefined: `{cause, people, isHeld, needsPerson}`; cause `stranger`, `uninvited`, `gone` or `epoch-1` ("securing the
 *   call"). It ends with its cause; with `isHeld` only by `sendAnyway`. `needsPerson`: the person may do that now.
 * - `isOld`: the key in use should have been replaced long ago.
 *
 * A suspicion is about a device of a user, whatever its number. Its time runs while signaling is connected and accumulates across reconnects. It runs back
 * while the device is listed and in the call: otherwise a device that returns often would be suspected because of the moments in which its numbers differ. It
 * is forgotten a minute after the device was last listed.
 */
export class RosterWatch {
  people = [];
  stopped;
  isOld = false;
  /** @type {{isConnected: boolean, isAsking: boolean, participant: number, epoch: number, freshEpoch?: number, list: any[], members: any[], rotateMinutes: number, uninvited?: (entry: any) => string | undefined}} */
  #facts = { isConnected: false, isAsking: false, participant: 0, epoch: 0, list: [], members: [], rotateMinutes: 10 };
  #at; // the last look
  #openMs = 0; // how long a question has been without an answer
  #seen = new Set(); // devices that were participants while the list in use showed them as such
  /** @type {Map<string, {entry: any, kind?: string, isOpen?: boolean, ms: number, isListed: boolean, listedAt: number, isAsked: boolean, isStopping: boolean, isTold: boolean}>} */
  #suspects = new Map(); // by `user/device`; without `kind` where the suspicion has ended
  #left = new Map(); // devices that nobody let in, by name, which left the list before the person was told
  #news = [];
  #stopEndedAt = -Infinity;
  #allowed = new Set(); // devices in spite of which the person sends, by `exactName`
  #connectedAt = 0;
  #epochSince = 0;
  #second; // {since, connectedMs}: when the second participant came, in epoch 1

  /**
   * Takes the current state: `{isConnected, isAsking, participant, epoch, list, members, rotateMinutes, uninvited}`. `uninvited(entry)` says whether nobody let
   * in that device: `yes`, or `open` while that may still change. `members` are the members of the state, `list` is that of the epoch in use, `freshEpoch` the
   * one of the last fresh secret, `participant` is this device's own, `isAsking` says whether `state` or `keys/list` is under way.
   */
  update(now, facts) {
    this.#elapse(now);
    const before = this.#facts;
    this.#facts = { ...before, ...facts };
    const { isConnected, isAsking, epoch, freshEpoch = epoch } = this.#facts;
    if (isConnected && !before.isConnected) this.#connectedAt = now;
    if (freshEpoch !== (before.freshEpoch ?? before.epoch)) this.#epochSince = now;
    this.#compare(now);
    this.#firstEpoch(now);
    if (isConnected && !isAsking && before.isAsking) this.#answered();
    this.#judge(now);
  }

  /** Lets time pass. Returns `ask` if `state` and `keys/list` must be requested; call `asked` afterwards. */
  tick(now) {
    this.#elapse(now);
    this.#judge(now);
    if (!this.#isRunning) return undefined;
    const due = this.#active.filter(({ kind, isAsked, ms }) => kind !== 'gone' && !isAsked && ms >= ASK_AFTER_MS);
    for (const suspect of due) suspect.isAsked = true;
    return due.length > 0 ? 'ask' : undefined;
  }

  /** The answers have arrived and were passed to `update`: a device that is still listed without being in the call stops the sending. */
  asked(now) {
    this.#answered();
    this.#judge(now);
  }

  /** The warnings since the last call: `{problem, user, device, participant, fingerprint}`; problem `stranger`, `uninvited` or `gone`. */
  takeNews() {
    return this.#news.splice(0);
  }

  /** The person sends although `shown`, the devices that the stop named, may hear: exactly these, with this key and this join. */
  sendAnyway(now, shown = []) {
    for (const device of shown) this.#allowed.add(exactName(device));
    this.#forgetAllowed();
    this.#end(now);
    this.#judge(now);
  }

  /** The rules pause while a question may still explain what they see. */
  get #isRunning() {
    const { isConnected, isAsking } = this.#facts;
    return isConnected && (!isAsking || this.#openMs >= ANSWER_MS);
  }

  get #active() {
    return [...this.#suspects.values()].filter(({ kind }) => kind);
  }

  #elapse(now) {
    const passed = now - (this.#at ?? now);
    this.#at = now;
    const { isConnected, isAsking } = this.#facts;
    if (!isConnected) return;
    if (this.#second) this.#second.connectedMs += passed;
    // A connection that breaks answers nothing: the question stays open.
    this.#openMs = isAsking ? this.#openMs + passed : 0;
    if (this.#isRunning) for (const suspect of this.#suspects.values()) if (suspect.isListed) suspect.ms = within(suspect.ms + (suspect.kind ? passed : -passed));
    if (isAsking && this.#openMs >= ANSWER_MS) this.#answered();
  }

  #answered() {
    for (const suspect of this.#active) if (suspect.isAsked) suspect.isStopping = true;
  }

  #compare(now) {
    const { list, members, participant: own, uninvited = () => undefined } = this.#facts;
    const seats = members.flatMap(({ user, participants }) => participants.map((seat) => ({ ...seat, user })));
    const seated = new Set(seats.map(seatName));
    const users = new Set(members.map(({ user }) => user));
    for (const suspect of this.#suspects.values()) suspect.isListed = false;
    const listed = list.map((entry) => {
      const seat = entry.participant === own ? undefined : this.#kindOf(entry, users, seated);
      const how = entry.participant === own ? undefined : uninvited(entry);
      const kind = how && seat !== 'stranger' ? 'uninvited' : seat;
      if (kind || this.#suspects.has(nameOf(entry))) this.#suspect(now, entry, kind, how === 'open');
      return { ...entry, listed: true, member: !seat && entry.participant > 0, isStranger: seat === 'stranger', hasLeft: seat === 'gone' };
    });
    for (const [name, suspect] of this.#suspects) {
      if (!suspect.isListed) this.#endSuspicion(name, suspect);
      const isOver = suspect.isListed ? !suspect.kind && suspect.ms === 0 : now - suspect.listedAt >= REMEMBERED_MS;
      if (isOver) this.#suspects.delete(name);
    }
    this.#forgetAllowed();
    const names = new Set(list.map(seatName));
    const others = seats.filter((seat) => !names.has(seatName(seat)));
    const unlisted = others.map(({ user, device, participant }) => ({ user, device, participant, listed: false, member: true, isStranger: false, hasLeft: false }));
    this.people = [...listed, ...unlisted];
  }

  /** The device is no longer on the list. */
  #endSuspicion(name, suspect) {
    if (suspect.kind === 'uninvited' && !suspect.isTold) this.#left.set(name, suspect.entry);
    if (this.#left.size > LEFT_KEPT) this.#left.delete(this.#left.keys().next().value);
    Object.assign(suspect, { ...NOTHING_DONE, kind: undefined });
  }

  /** A device that is suspected again later stops again. */
  #forgetAllowed() {
    const current = new Set(this.#active.map(({ entry }) => exactName(entry)));
    for (const name of this.#allowed) if (!current.has(name)) this.#allowed.delete(name);
  }

  /** Notes the suspicion about a listed device; its time continues under another kind, key or number. */
  #suspect(now, entry, kind, isOpen) {
    const name = nameOf(entry);
    const known = this.#suspects.get(name) ?? { ...NOTHING_DONE, ms: 0, kind };
    const done = known.kind === kind ? {} : NOTHING_DONE;
    this.#suspects.set(name, Object.assign(known, { ...done, entry, kind, isOpen, isListed: true, listedAt: now }));
  }

  /**
   * `stranger`, `gone`, or undefined for a device that is in the call. A ring's entry has no participant: its user is a member. `seated` are the names of
   * participants.
   */
  #kindOf(entry, users, seated) {
    if (entry.participant === 0) return users.has(entry.user) || seated.size === 0 ? undefined : 'stranger';
    if (!seated.has(seatName(entry))) return this.#seen.has(keyName(entry)) ? 'gone' : 'stranger';
    this.#seen.add(keyName(entry));
    return undefined;
  }

  /** Epoch 1 is sealed to long-lived keys, of devices that possibly never answered: it may be used only for the first moments. */
  #firstEpoch(now) {
    const { epoch, members } = this.#facts;
    const count = members.reduce((sum, { participants }) => sum + participants.length, 0);
    if (epoch !== 1) this.#second = undefined;
    else if (count > 1) this.#second ??= { since: now, connectedMs: 0 };
  }

  #judge(now) {
    if (this.#isRunning) {
      for (const suspect of this.#active) this.#judgeSuspect(suspect);
      this.#judgeLeft();
    }
    const { epoch, rotateMinutes, isConnected } = this.#facts;
    const limit = Math.min(2 * rotateMinutes, OLDEST_EPOCH_MINUTES) * MINUTE_MS;
    this.isOld = epoch > 0 && isConnected && now - this.#connectedAt >= SETTLED_MS && now - this.#epochSince >= limit;
    this.#settle(now);
  }

  /** It may have heard: a server must not take it off and list another one before each look-up is over. */
  #judgeLeft() {
    const { uninvited = () => undefined } = this.#facts;
    for (const [name, entry] of this.#left) {
      const how = uninvited(entry);
      if (how === 'open') continue;
      this.#left.delete(name);
      if (how) this.#tell('uninvited', entry);
    }
  }

  #tell(problem, { user, device, participant, fingerprint }) {
    this.#news.push({ problem, user, device, participant, fingerprint });
  }

  #judgeSuspect(suspect) {
    const { kind, entry, ms, isTold, isOpen } = suspect;
    const tellsAfter = kind === 'gone' ? GONE_WARNS_MS : kind === 'uninvited' && isOpen ? ASK_AFTER_MS : 0;
    if (!isTold && ms >= tellsAfter) {
      suspect.isTold = true;
      this.#tell(kind, entry);
    }
    if (kind === 'gone' && ms >= GONE_STOPS_MS) suspect.isStopping = true;
  }

  /** Stops or resumes sending according to the findings. */
  #settle(now) {
    const stopping = this.#active.filter(({ isStopping, entry }) => isStopping && !this.#allowed.has(exactName(entry)));
    if (stopping.length > 0) {
      const isSecond = now - this.#stopEndedAt < SECOND_STOP_MS;
      const isHeld = this.stopped?.isHeld || (isSecond && !this.#isStoppedByList);
      // A stranger is explained by a next list. A missing word may stay missing for as long as the call lasts.
      const needsPerson = isHeld || stopping.every(({ kind }) => kind === 'uninvited');
      this.stopped = { cause: stopping[0].kind, people: stopping.map(({ entry }) => entry), isHeld, needsPerson };
    } else if (this.#isStoppedByList && !this.stopped.isHeld) this.#end(now);
    if (this.#isStoppedByList) return;
    const { since, connectedMs } = this.#second ?? {};
    const isLate = this.#second && (connectedMs >= FIRST_EPOCH_CONNECTED_MS || now - since >= FIRST_EPOCH_MS);
    this.stopped = isLate ? { cause: 'epoch-1', people: [], isHeld: false, needsPerson: false } : undefined;
  }

  get #isStoppedByList() {
    return this.stopped !== undefined && this.stopped.cause !== 'epoch-1';
  }

  #end(now) {
    this.#stopEndedAt = now;
    this.stopped = undefined;
  }
}
