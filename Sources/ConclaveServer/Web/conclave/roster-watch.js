// The list of those who can decrypt, compared with those who are said to be in the call. No sockets, no clock: time is an argument, in ms.

const ASK_AFTER_MS = 5_000; // a listed device without a participant: then `state` and `keys/list` are asked for
const LEFT_SHOWN_MS = 3_000;
const LEFT_STOPS_MS = 15_000; // each dead leader costs the server 3 s
const SECOND_STOP_MS = 60_000;
const FIRST_EPOCH_CONNECTED_MS = 10_000;
const FIRST_EPOCH_MS = 60_000;
const MINUTE_MS = 60_000;
const OLDEST_EPOCH_MINUTES = 120;
const SETTLED_MS = 30_000; // after a reconnect, before the age of an epoch says anything

const nameOf = ({ user, device, participant }) => `${user}/${device}/${participant}`;
// A departed device that comes back honestly has a new number; a stranger is one whatever its number.
const pastOf = ({ kind, entry }) => (kind === 'stranger' ? `${entry.user}/${entry.device}` : nameOf(entry));

/**
 * The rules of protocol section 5, "What a client decides itself".
 *
 * For the page, by way of `Call`:
 * - `people`: everybody of the list or of the call, `{user, device, participant, fingerprint, listed, member, hasLeft, isStranger}`.
 *   `listed`: can decrypt what this device sends now. `member`: the server says that it is a participant. Both should hold of everybody.
 *   Listed alone is `isStranger` (the server never said that it joined: draw a tile with a warning at once) or, 3 s after it went, `hasLeft`
 *   ("has left, may still hear"). A member that is not listed "can't hear you yet". `Call.roster` is made of it.
 * - `stopped`: why nothing is sent, or undefined: `{cause, people, needsPerson}`; cause `stranger`, `gone` or `epoch-1` ("securing the
 *   call"). With `needsPerson` it lasts until `sendAnyway`.
 * - `isOld`: the key in use should have been replaced long ago.
 */
export class RosterWatch {
  people = [];
  stopped;
  isOld = false;
  /** @type {{isConnected: boolean, isAsking: boolean, participant: number, epoch: number, freshEpoch?: number, list: any[], members: any[], rotateMinutes: number}} */
  #facts = { isConnected: false, isAsking: false, participant: 0, epoch: 0, list: [], members: [], rotateMinutes: 10 };
  #seen = new Set(); // participants that were in the call at some time
  #suspects = new Map(); // name -> {entry, kind, since, isAsked, isStopping}
  #past = new Map(); // `pastOf` -> {lasted, endedAt}: naming a ghost a member now and then must not reset the time
  #news = [];
  #stopEndedAt = -Infinity;
  #allowed = new Set(); // what the person sends in spite of
  #connectedAt = 0;
  #epochSince = 0;
  #second; // {since, connectedMs, countedAt}: when the second participant came, in epoch 1

  /**
   * Takes the current state: `{isConnected, isAsking, participant, epoch, list, members, rotateMinutes}`. `members` are the members of the state,
   * `list` is that of the epoch in use, `freshEpoch` the one of the last fresh secret, `participant` is this device's own, `isAsking` says that `state` or `keys/list` is under way.
   */
  update(now, facts) {
    this.#countConnected(now);
    const before = this.#facts;
    this.#facts = { ...before, ...facts };
    const { isConnected, epoch, freshEpoch = epoch } = this.#facts;
    if (isConnected && !before.isConnected) this.#restart(now);
    if (freshEpoch !== (before.freshEpoch ?? before.epoch)) this.#epochSince = now;
    this.#compare(now);
    this.#firstEpoch(now);
    this.#judge(now);
  }

  /** Lets time pass. Answers `ask` when `state` and `keys/list` are to be asked for; `asked` is to follow. */
  tick(now) {
    this.#countConnected(now);
    this.#judge(now);
    if (!this.#isRunning) return undefined;
    const due = [...this.#suspects.values()].filter(({ kind, isAsked, since }) => kind === 'stranger' && !isAsked && now - since >= ASK_AFTER_MS);
    for (const suspect of due) suspect.isAsked = true;
    return due.length > 0 ? 'ask' : undefined;
  }

  /** The answers are in, and `update` has had them: who is still listed without being in the call stops the sending. */
  asked(now) {
    for (const suspect of this.#suspects.values()) if (suspect.isAsked) suspect.isStopping = true;
    this.#judge(now);
  }

  /** The warnings since the last call: `{problem, user, device, participant, fingerprint}`; problem `stranger` or `gone`. */
  takeNews() {
    return this.#news.splice(0);
  }

  /** The person sends in spite of what stopped it, as long as nothing else comes. */
  sendAnyway(now) {
    for (const name of this.#suspects.keys()) this.#allowed.add(name);
    this.#end(now);
    this.#judge(now);
  }

  get #isRunning() {
    return this.#facts.isConnected && !this.#facts.isAsking;
  }

  /** Starts anew: the events that were lost with the connection may explain everything. */
  #restart(now) {
    this.#connectedAt = now;
    for (const suspect of this.#suspects.values()) Object.assign(suspect, { since: now, isAsked: false });
  }

  #compare(now) {
    const { list, members, participant: own } = this.#facts;
    const seats = members.flatMap(({ user, participants }) => participants.map((seat) => ({ ...seat, user })));
    const seated = new Set(seats.map(nameOf));
    for (const name of seated) this.#seen.add(name);
    const byUser = new Map(members.map((member) => [member.user, member]));
    const suspects = new Map();
    const listed = list.map((entry) => {
      const kind = entry.participant === own ? undefined : this.#kindOf(entry, byUser.get(entry.user), seated);
      if (!kind) return { ...entry, listed: true, member: entry.participant > 0, isStranger: false, hasLeft: false };
      const name = nameOf(entry);
      const known = this.#suspects.get(name);
      suspects.set(name, known?.kind === kind ? known : this.#suspect(now, { entry, kind }));
      return { ...entry, listed: true, member: false, isStranger: kind === 'stranger', hasLeft: false };
    });
    for (const [name, suspect] of this.#suspects) {
      if (suspects.get(name) !== suspect) this.#past.set(pastOf(suspect), { lasted: now - suspect.since, endedAt: now });
    }
    for (const [key, { endedAt }] of this.#past) if (now - endedAt >= SECOND_STOP_MS) this.#past.delete(key);
    this.#suspects = suspects;
    for (const name of this.#allowed) if (!suspects.has(name)) this.#allowed.delete(name);
    const names = new Set(list.map(nameOf));
    const others = seats.filter((seat) => !names.has(nameOf(seat)));
    const unlisted = others.map(({ user, device, participant }) => ({ user, device, participant, listed: false, member: true, isStranger: false, hasLeft: false }));
    this.people = [...listed, ...unlisted];
  }

  /** A new suspicion; the time of the same one within the last minute counts. */
  #suspect(now, { entry, kind }) {
    const past = this.#past.get(pastOf({ entry, kind }));
    const lasted = past && now - past.endedAt < SECOND_STOP_MS ? past.lasted : 0;
    return { entry, kind, since: now - lasted, isAsked: false, isStopping: false, isTold: false };
  }

  /** `stranger`, `gone`, or undefined for a device that is in the call. A ring's entry has no participant: its user is a `member`. `seated` are the names of participants. */
  #kindOf(entry, member, seated) {
    if (entry.participant === 0) return member || seated.size === 0 ? undefined : 'stranger';
    if (seated.has(nameOf(entry))) return undefined;
    const isSaidGone = member && member.state !== 'joined';
    return isSaidGone || this.#seen.has(nameOf(entry)) ? 'gone' : 'stranger';
  }

  #countConnected(now) {
    if (!this.#second) return;
    if (this.#facts.isConnected) this.#second.connectedMs += now - this.#second.countedAt;
    this.#second.countedAt = now;
  }

  /** Epoch 1 goes under long-lived keys, to devices that perhaps never answered: only the first moments may. */
  #firstEpoch(now) {
    const { epoch, members } = this.#facts;
    const count = members.reduce((sum, { participants }) => sum + participants.length, 0);
    if (epoch !== 1) this.#second = undefined;
    else if (count > 1) this.#second ??= { since: now, connectedMs: 0, countedAt: now };
  }

  #judge(now) {
    if (this.#isRunning) {
      for (const suspect of this.#suspects.values()) this.#judgeSuspect(now, suspect);
    }
    for (const person of this.people) {
      const suspect = person.listed && this.#suspects.get(nameOf(person));
      person.hasLeft = suspect?.kind === 'gone' && suspect.isTold;
    }
    const { epoch, rotateMinutes, isConnected } = this.#facts;
    const limit = Math.min(2 * rotateMinutes, OLDEST_EPOCH_MINUTES) * MINUTE_MS;
    this.isOld = epoch > 0 && isConnected && now - this.#connectedAt >= SETTLED_MS && now - this.#epochSince >= limit;
    this.#settle(now);
  }

  #judgeSuspect(now, suspect) {
    const { kind, entry, since } = suspect;
    const isDue = kind === 'stranger' || now - since >= LEFT_SHOWN_MS;
    if (isDue && !suspect.isTold) {
      suspect.isTold = true;
      const { user, device, participant, fingerprint } = entry;
      this.#news.push({ problem: kind, user, device, participant, fingerprint });
    }
    if (kind === 'gone' && now - since >= LEFT_STOPS_MS) suspect.isStopping = true;
  }

  /** Stops, or starts again, by what was found. */
  #settle(now) {
    const stopping = [...this.#suspects].filter(([name, { isStopping }]) => isStopping && !this.#allowed.has(name)).map(([, suspect]) => suspect);
    if (stopping.length > 0) {
      const isSecond = now - this.#stopEndedAt < SECOND_STOP_MS;
      const needsPerson = this.stopped?.needsPerson || (isSecond && !this.#isStoppedByList);
      this.stopped = { cause: stopping[0].kind, people: stopping.map(({ entry }) => entry), needsPerson };
    } else if (this.#isStoppedByList && !this.stopped.needsPerson) this.#end(now);
    if (this.#isStoppedByList) return;
    const { since, connectedMs } = this.#second ?? {};
    const isLate = this.#second && (connectedMs >= FIRST_EPOCH_CONNECTED_MS || now - since >= FIRST_EPOCH_MS);
    this.stopped = isLate ? { cause: 'epoch-1', people: [], needsPerson: false } : undefined;
  }

  get #isStoppedByList() {
    return this.stopped !== undefined && this.stopped.cause !== 'epoch-1';
  }

  #end(now) {
    this.#stopEndedAt = now;
    this.stopped = undefined;
  }
}
