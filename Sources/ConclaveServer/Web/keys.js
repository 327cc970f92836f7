// The keys of one call, as one join has them: lists, epochs, the leader's duties (protocol section 5).

import { random } from './bytes.js';
import { Refusal, announcementIn, bucketsIn, demandIn, envelopeIn, epochIn, isWhole, listReplyIn, participantIn } from './checks.js';
import { Confirmations } from './confirmations.js';
import { ownEntry } from './envelopes.js';
import { Epoch } from './epoch.js';
import { Epochs } from './epochs.js';
import { Handout } from './handout.js';
import { sameDevice } from './identity.js';
import { KeyDemands } from './key-demands.js';
import { KeyWarnings } from './key-warnings.js';
import { BrokenHistory, ListHistory } from './list-history.js';
import { StaleRing, ringKeys } from './ring-keys.js';
import { ReceivedEnvelopes } from './received-envelopes.js';
import { NotListed } from './roster.js';
import { Seats } from './seats.js';
import { SECRET_BYTES, confirmationKeyOf, importSecret, ratchet } from './transcript.js';

const NEWCOMER_MS = 5_000; // without a list of this join: asks for it
const OWN_SWITCH_MS = 10_000; // the server's `keys.switch` is waited for so long
const OWN_SWITCH_AFTER_LOSS_MS = 3_000; // and so long where the key in use is also somebody's who has gone

/**
 * One join's key agreement. `request(path, body)` sends to `/app/calls/{id}/…`, `post(message)` to the worker. `participant` is what the join's reply said.
 *
 * Events: `change` (the list in use, trust or confirmations); `broken` (the history of lists does not fit: only a new join helps); `unlisted` (a
 * list without this join came); `warning` with `{problem, epoch, user, device, fingerprint, participant}`, of which `problem` is
 * - about a device: `waiting` (it does not trust this device, and waits with the key until its person does), `new-device`, `unverified`, `changed-key`, `unknown-keys`, `bad-join-key`, `revoked`, `old-join-key`, `wrong-confirmation`,
 *   `taken-number`;
 * - about the call: `refused-list`, `broken-history`, `refused-envelope`, `withheld-join-key`, `no-key`, `unconfirmed`, `false-confirmation`, `refused-ring`.
 */
export class KeyAgreement extends EventTarget {
  #identity;
  #directory;
  #request;
  #post;
  #join;
  #own;
  #history;
  #epochs = new Epochs();
  #sending = 0;
  #handout;
  #warnings = new KeyWarnings((detail) => this.dispatchEvent(new CustomEvent('warning', { detail })));
  #seats;
  /** What a leader does, until it is done. */
  leading;
  #received;
  #isSilent = false;
  #isStopped = false;
  #isBroken = false;
  #isClosed = false;
  #resyncing;
  #switchTimers = new Map();
  #timers = new Set();
  #turn = Promise.resolve();

  constructor({ call, identity, directory, join, participant, request, post }) {
    super();
    this.call = call;
    this.participant = participantIn(participant);
    this.#identity = identity;
    this.#directory = directory;
    this.#join = join;
    this.#request = request;
    this.#post = post;
    const entry = ownEntry(identity, join, participant);
    this.#own = { ...entry, publicKey: entry.joinKey.publicKey };
    this.#history = new ListHistory({ call, own: this.#own });
    this.#seats = new Seats(this.#own);
    this.#handout = new Handout({
      request,
      examine: (record, entries) => this.#examine(record, entries),
      warn: (problem, listed) => this.#warnings.warn(problem, { epoch: this.#history.newest.epoch, ...listed }),
    });
    this.#received = new ReceivedEnvelopes({
      call,
      identity,
      join,
      request,
      accept: (record, secret) => this.#setSecret(record, secret),
      refused: (error) => this.#refuseEnvelope(error),
      warn: (problem, epoch) => this.#warnings.warn(problem, { epoch }),
    });
    this.demands = new KeyDemands({
      ask: (epoch) => void this.#request('keys/request', { epoch }).catch(() => {}),
      isMissing: (epoch) => this.#history.newest?.epoch === epoch && !this.#epochs.get(epoch)?.secret,
      failed: (epoch) => this.#warnings.warn('no-key', { epoch }),
    });
    this.confirmations = new Confirmations({
      join,
      request: (path, body) => this.#request(`keys/${path}`, body),
      warn: (problem, entry_) => this.#warnings.warn(problem, { epoch: this.#epochs.current, ...entry_ }),
      changed: () => this.#changed(),
    });
    this.#post({ type: 'self', call, participant, fingerprint: identity.fingerprint, joinId: join.joinId });
    this.#after(NEWCOMER_MS, () => this.#history.newest || this.resync().catch(() => {}));
  }

  get epoch() {
    return this.#epochs.current;
  }

  get isBroken() {
    return this.#isBroken;
  }

  /** The list of the epoch in use: everybody who can decrypt. */
  get list() {
    return this.#epochs.list;
  }

  /** Why nothing is sent, as far as keys decide it: `broken-history`, `no-key` or `unverified`; undefined while it is. */
  get silence() {
    const record = this.#epochs.inUse;
    if (this.#isBroken) return 'broken-history';
    if (!record?.secret) return 'no-key';
    return this.#directory.verifiedOnly && record.hasProblem ? 'unverified' : undefined;
  }

  get canSend() {
    return this.#sending > 0 && this.#sending === this.#epochs.current && !this.#mustBeSilent;
  }

  /** Each device of the list in use: `{user, device, participant, fingerprint, problem?, isVerified, level, isConfirmed}`. */
  get devices() {
    const devices = this.#epochs.inUse?.devices ?? [];
    return devices.map((device) => ({ ...device, isConfirmed: this.confirmations.isConfirmed(device.participant) || sameDevice(device, this.#identity) }));
  }

  /** Whether a device that is not verified, where only verified ones are talked to, is on the list in use or on one that comes next. */
  get hasUnverified() {
    return this.#epochs.hasUnverified;
  }

  /** The epoch of that number while its list is remembered, for private messages. */
  record(epoch) {
    return this.#epochs.get(epoch);
  }

  get joinPair() {
    return this.#join.pair;
  }

  code() {
    return this.#epochs.code(this.call);
  }

  /** The initiator makes epoch 1: for itself, or what `ringEpoch` made for the callees' devices too. */
  begin(ring) {
    return this.#inTurn(async () => {
      const list = ring?.list ?? [ownEntry(this.#identity, this.#join, this.participant)];
      const record = this.#admit(await this.#history.begin(list));
      await this.#setSecret(record, ring?.secret ?? random(SECRET_BYTES));
      this.#switchTo(record);
    });
  }

  /** Accepting a ring that brought a list and an envelope gives epoch 1 at once. What is wrong with them is no harm: epoch 2 comes. `used` is the store's memory. */
  beginRung(ring, used) {
    return this.#inTurn(async () => {
      if (!ring.list || !ring.envelope || this.#history.newest) return;
      const history = new ListHistory({ call: this.call, own: this.#own });
      try {
        const found = await ringKeys(ring, { history, call: this.call, identity: this.#identity, directory: this.#directory, used });
        this.#history = history;
        const record = this.#admit(found.accepted);
        await record.examine(this.#directory);
        await this.#setSecret(record, found.secret);
        this.#switchTo(record);
      } catch (error) {
        if (!(error instanceof StaleRing)) this.#warnings.warn('refused-ring');
        this.#warnings.refuse(error);
      }
    });
  }

  /** Which participant each device has joined as, and with which joinId: `seats` maps `user/device` to it. A number or joinId that is taken already counts for nobody else. */
  seated(seats) {
    const record = this.#epochs.inUse;
    if (record && !record.roster.hasRung) return undefined;
    for (const participant of this.#seats.add(seats)) this.#warnings.warn('taken-number', { participant });
    if (!record?.secret) return undefined;
    return this.#inTurn(() => this.#install(record));
  }

  /** `keys.rotate`. */
  async rotate(body) {
    await this.#turn; // a ring that is still examined brings epoch 1: what comes after it may leave a gap
    if (this.#isBroken || this.#isClosed) return;
    let announcement;
    try {
      announcement = announcementIn(body);
      if (!this.#history.newest && !this.#history.isFirst(announcement)) return; // for an earlier stay
      if (this.#history.newest && announcement.epoch > this.#history.newest.epoch + 1) await this.resync();
    } catch (error) {
      this.#refuseList(error);
      return;
    }
    const record = await this.#inTurn(() => this.#rotate(announcement));
    // Aside: what comes next does not wait for the server's answers.
    if (record && announcement.deliver) this.leading = this.#lead(record, announcement.deliver);
  }

  /** `keys.envelope`: resolves with whether it was opened, now or before; with `{later}`, a promise of that, while its signer is not trusted. */
  async envelope(body) {
    if (this.#isClosed) return true;
    try {
      const envelope = envelopeIn(body);
      if (envelope.epoch > (this.#history.newest?.epoch ?? 0)) await this.resync();
      const signer = this.#epochs.get(envelope.epoch)?.roster.find(envelope.from);
      const record = this.#epochs.get(envelope.epoch);
      if (signer && !record.isLookedUp(signer)) await this.#examined(record);
      return await this.#inTurn(() => this.#envelope(envelope));
    } catch (error) {
      return this.#refuseEnvelope(error);
    }
  }

  /** `keys.switch`. One to an unknown epoch, or to one before, changes nothing. */
  async switchTo({ epoch }) {
    if (!isWhole(epoch, this.#epochs.current + 1, 0xffff_ffff)) return;
    await this.#turn;
    if (!this.#epochs.has(epoch)) await this.resync();
    this.#switchTo(this.#epochs.get(epoch));
  }

  /** `keys.request`: hands the newest key to one that lacks it. */
  async requested(body) {
    try {
      const { epoch, to } = demandIn(body);
      const record = this.#epochs.get(epoch);
      if (record?.secret && epoch === this.#history.newest.epoch) await this.#handout.answer(record, to);
    } catch (error) {
      this.#warnings.refuse(error);
    }
  }

  /** `keys.confirmed`. */
  confirmed(body) {
    try {
      this.confirmations.received(epochIn(body.epoch), bucketsIn(body.buckets));
    } catch (error) {
      this.#warnings.warn('false-confirmation', { epoch: this.#epochs.current });
      this.#warnings.refuse(error);
    }
  }

  /** `keys.waiting`: that device does not trust the one that handed it the key. */
  waiting({ epoch, participant, reason }) {
    const entry = this.#epochs.get(epochIn(epoch))?.others.find((other) => other.participant === participant);
    if (entry && reason === 'trust') this.#warnings.warn('waiting', { epoch, ...entry });
  }

  /** After a gap in the events: which epoch there is, and its key if it is not here. */
  resync() {
    this.#resyncing ??= this.#resync().finally(() => {
      this.#resyncing = undefined;
    });
    return this.#resyncing;
  }

  /** The epoch that a state of the call names: its switch may be what was lost. One from before this join is not its business. */
  async inUse(epoch) {
    await this.#turn;
    if (isWhole(epoch, this.#epochs.current + 1, 0xffff_ffff) && this.#epochs.has(epoch)) this.#switchTo(this.#epochs.get(epoch));
  }

  /** The directory judges otherwise now: the person trusts or verified a device, `verifiedOnly` was switched, or a device's keys changed. */
  async reconsider() {
    // Looked up aside: a server that keeps an answer back must not keep back what follows.
    for (const record of this.#epochs.values()) await this.#examine(record);
    await this.#inTurn(async () => {
      for (const record of this.#epochs.values()) await this.#judged(record);
    });
  }

  /** Nothing is sent while the list of keys and the call differ (`roster-watch.js`). */
  setStopped(isStopped) {
    this.#isStopped = isStopped;
    this.#setSilence();
  }

  /** The call is over, or joined anew: nothing of it stays in the page. */
  close() {
    this.#isClosed = true;
    for (const timer of [...this.#timers, ...this.#switchTimers.values()]) clearTimeout(timer);
    this.demands.close();
    this.confirmations.close();
    this.#epochs.forgetAll();
    this.#received.forgetBefore(Infinity);
  }

  #inTurn(action) {
    const turn = this.#turn.then(() => (this.#isClosed ? undefined : action()));
    this.#turn = turn.catch(() => {});
    return turn;
  }

  #after(ms, action) {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      action();
    }, ms);
    this.#timers.add(timer);
    return timer;
  }

  async #rotate(announcement) {
    if (this.#isBroken) return undefined;
    try {
      const place = this.#history.place(announcement);
      if (place === 'next') this.#admit(await this.#history.next(announcement));
      if (place === 'gap') throw new Refusal('an epoch that the server’s own list does not know');
      if (place === 'old') return undefined;
    } catch (error) {
      this.#refuseList(error);
      return undefined;
    }
    const record = this.#epochs.get(announcement.epoch);
    if (record) await this.#ratchet(record);
    return record;
  }

  /** A list that was accepted: its devices are looked up aside, and what comes next does not wait for it. */
  #admit(accepted) {
    const before = this.#epochs.get(accepted.epoch - 1) ?? this.#epochs.inUse;
    const record = new Epoch(accepted, { identity: this.#identity, call: this.call, leastGeneration: this.#join.published });
    record.own = record.roster.find(this.#identity);
    if (before) record.inherit(before);
    this.#epochs.add(record);
    this.#seats.takeFrom(record.list);
    this.#handout.begin(record);
    this.#received.forgetBefore(record.epoch);
    const unknown = record.others.filter((entry) => !record.isLookedUp(entry));
    if (unknown.length > 0) record.lookedUp = this.#lookUp(record, unknown);
    return record;
  }

  async #lookUp(record, entries) {
    await this.#examine(record, entries);
    await this.#inTurn(() => this.#judged(record));
  }

  /** Until the look-ups of a record's devices are over. */
  async #examined(record) {
    await record.lookedUp?.catch(() => {});
  }

  /** Each problem is told once for a key. */
  async #examine(record, entries = record.others) {
    if (entries.length === 0) return;
    try {
      for (const { entry, problem } of await record.examine(this.#directory, entries)) this.#warnings.warn(problem, { epoch: record.epoch, ...entry });
    } catch (error) {
      this.#warnings.refuse(error);
    }
  }

  /** What follows when it is known of more devices, or otherwise, whether they are trusted. */
  async #judged(record) {
    if (!this.#epochs.has(record.epoch)) return;
    this.#setSilence();
    if (record.secret) await this.#install(record);
    await this.#received.retry(record);
    const isNewest = record.epoch === this.#history.newest.epoch;
    if (record.secret && isNewest) this.#handout.answerAgain(record).catch((error) => this.#warnings.refuse(error));
    this.#changed();
  }

  /** By the mode with which the epoch was announced; over a list that was not seen the newest key is asked for. */
  async #ratchet(record) {
    if (record.mode !== 'ratchet' || record.secret) return;
    const secret = this.#epochs.get(record.epoch - 1)?.secret;
    if (record.isWhole && secret) await this.#setSecret(record, await ratchet(secret, { call: this.call, epoch: record.epoch, listHash: record.listHash }));
  }

  async #envelope(envelope) {
    const record = this.#epochs.get(envelope.epoch);
    if (!record && envelope.epoch >= (this.#history.newest?.epoch ?? 0)) throw new Refusal('an envelope of an epoch without a list');
    if (!record || record.secret || record.epoch < this.#epochs.current) return true; // of no use any more
    return this.#received.take(envelope, record);
  }

  /** Sends under `record` from now on, or as soon as its secret is here; never goes back. */
  #switchTo(record) {
    if (this.#isClosed || !record || record.epoch <= this.#epochs.current) return;
    for (const [epoch, timer] of this.#switchTimers) {
      if (epoch > record.epoch) continue;
      clearTimeout(timer);
      this.#switchTimers.delete(epoch);
    }
    this.#epochs.use(record, (ms, action) => this.#after(ms, action));
    if (record.secret) this.#send(record);
    else this.confirmations.ended();
    this.#setSilence();
    if (!record.secret) this.demands.begin(record.epoch);
    this.#changed();
  }

  async #resync() {
    const { newest } = this.#history;
    const reply = await this.#request('keys/list', newest ? { since: newest.epoch } : {});
    await this.#inTurn(async () => {
      if (this.#isBroken || !reply.list) return; // no epoch yet
      try {
        const parsed = listReplyIn(reply);
        if (!this.#history.newest && !this.#history.isFirst(parsed)) return;
        const accepted = await this.#history.catchUp(parsed);
        if (accepted) await this.#ratchet(this.#admit(accepted));
        this.confirmations.received(parsed.epoch, parsed.confirmed);
      } catch (error) {
        return void this.#refuseList(error);
      }
      const record = this.#epochs.get(this.#history.newest.epoch);
      if (!record) return;
      if (!record.secret) this.demands.begin(record.epoch, { isAnew: true });
      const unknown = record.others.filter((entry) => !record.keysOf(entry));
      if (unknown.length > 0 && !record.isLookingUp) record.lookedUp = this.#lookUp(record, unknown);
    });
  }

  /**
   * Without the key in use nothing is sent: under the one before somebody may listen who has gone. With `verifiedOnly` nothing is sent while somebody is on
   * the list who is not verified, or not looked up: another may give them the key.
   */
  get #mustBeSilent() {
    return this.#isStopped || this.silence !== undefined;
  }

  #setSilence() {
    if (this.#isClosed || this.#mustBeSilent === this.#isSilent) return;
    this.#isSilent = !this.#isSilent;
    this.#post({ type: 'silence', isSilent: this.#isSilent });
  }

  async #setSecret(record, secret) {
    if (record.secret || secret.length !== SECRET_BYTES) throw new Refusal('a secret that is not wanted');
    record.confirmationKey = await confirmationKeyOf(secret, { call: this.call, epoch: record.epoch, listHash: record.listHash });
    record.secret = secret;
    await this.#install(record);
    if (record.epoch === this.#epochs.current) this.#send(record);
    else if (record.epoch > this.#epochs.current) this.#switchLater(record);
  }

  /** The server's word is waited for, but not for ever: somebody may have gone who still has the key in use. */
  #switchLater(record) {
    const inUse = this.#epochs.inUse;
    const isLoss = record.mode === 'fresh' && inUse?.roster.losesSomebody(record.roster);
    const timer = setTimeout(() => this.#switchTo(record), isLoss ? OWN_SWITCH_AFTER_LOSS_MS : OWN_SWITCH_MS);
    this.#switchTimers.set(record.epoch, timer);
  }

  /** The worker gets a key that only derives, and the senders that are heard. */
  async #install(record) {
    const { epoch, listHash, secret } = record;
    if (!secret) return;
    const senders = record.senders(this.#seats, this.participant);
    this.#post({ type: 'epoch', epoch, listHash, secret: await importSecret(secret), senders });
  }

  #send(record) {
    if (this.#sending >= record.epoch) return;
    this.#sending = record.epoch;
    this.#isSilent = this.#mustBeSilent;
    // In one message: no frame may leave between the two.
    this.#post({ type: 'switch', epoch: record.epoch, isSilent: this.#isSilent });
    this.confirmations.began(record, () => this.#history.newest.epoch === record.epoch);
  }

  async #lead(record, deliver) {
    const { epoch, mode } = record;
    if (!record.secret && mode === 'ratchet') return void this.demands.begin(epoch);
    try {
      const secret = record.secret ?? random(SECRET_BYTES);
      await this.#handout.give(record, secret, deliver);
      await this.#inTurn(() => (record.secret ? undefined : this.#setSecret(record, secret)));
    } catch (error) {
      this.#warnings.refuse(error);
    }
    return undefined;
  }

  #refuseList(error) {
    this.#warnings.refuse(error);
    if (error instanceof BrokenHistory) {
      this.#isBroken = true;
      this.#setSilence();
      this.#warnings.warn('broken-history');
      this.dispatchEvent(new Event('broken'));
    } else if (error instanceof NotListed) this.dispatchEvent(new Event('unlisted'));
    if (error instanceof Refusal && !(error instanceof BrokenHistory)) this.#warnings.warn('refused-list', { epoch: this.#history.newest?.epoch ?? 0 });
  }

  /** Brings false: the server is told that it did not open. */
  #refuseEnvelope(error) {
    this.#warnings.refuse(error);
    if (error instanceof Refusal) this.#warnings.warn('refused-envelope', { epoch: this.#history.newest?.epoch ?? 0 });
    return false;
  }

  #changed() {
    this.dispatchEvent(new Event('change'));
  }
}
