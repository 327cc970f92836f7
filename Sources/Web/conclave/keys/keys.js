// The keys of one call, as one join has them: lists, epochs, the leader's duties (protocol section 5).

import { sameDevice } from '../trust/index.js';
import { Refusal, SECRET_BYTES, announcementIn, demandIn, envelopeIn, epochIn, isWhole, listReplyIn, participantIn, random } from '../wire/index.js';
import { distrustedOf } from './call-trust.js';
import { Confirmations } from './confirmations.js';
import { ownEntry } from './envelopes.js';
import { Epoch } from './epoch.js';
import { Epochs } from './epochs.js';
import { Handout } from './handout.js';
import { KeyDemands } from './key-demands.js';
import { KeyWarnings } from './key-warnings.js';
import { Lists } from './lists.js';
import { LookUps } from './look-ups.js';
import { ReceivedEnvelopes } from './received-envelopes.js';
import { StaleRing } from './ring-keys.js';
import { exactName } from './roster-watch.js';
import { nameOf } from './roster.js';
import { Seats } from './seats.js';
import { Switching } from './switching.js';

const NEWCOMER_MS = 5_000; // without a list of this join: requests it
const MEMBER_MS = 10; // more for each member of a large call, up to LARGE: after a restart of the server all return before the list
const LARGE = 1_000;

/**
 * One join's key agreement. `request(path, body)` sends to `/app/calls/{id}/…`, `post(message)` to the worker. `participant` is from the join's reply,
 * `members` how many its call had. `admissions` are the call's, across stays.
 *
 * Events: `change` (the list in use, trust or confirmations); `keyed` (the secret of an epoch has come); `broken` (the history of lists does not fit: only a new join helps); `unlisted` (a list without
 * this join came); `warning` with `{problem, epoch, user, device, fingerprint, participant}`, of which `problem` is
 * - about a device: `waiting` (it does not trust this device, and waits with the key until its person does), `new-device`, `unverified`, `changed-key`,
 *   `unknown-keys`, `bad-join-key`, `revoked`, `old-join-key`, `wrong-confirmation`, `taken-number`;
 * - about the call: `refused-list`, `broken-history`, `refused-envelope`, `withheld-join-key`, `no-key`, `unconfirmed`, `false-confirmation`, `refused-ring`.
 */
export class KeyAgreement extends EventTarget {
  #identity;
  #directory;
  #admissions;
  #request;
  #post;
  #join;
  #lists;
  #lookUps;
  #switching;
  #epochs = new Epochs();
  #handout;
  #warnings = new KeyWarnings((detail) => this.dispatchEvent(new CustomEvent('warning', { detail })));
  #seats;
  #waiting = new Map(); // participant -> the epoch whose key it has but does not open, because it does not trust this device
  /** The epoch of the last fresh secret that was used here; before that, the first epoch. Ratchets heal nothing. */
  freshEpoch = 0;
  /** The work of a leader, until it is done. */
  leading;
  #received;
  #allowed = new Set(); // devices to which the person sends although they are distrusted
  #isClosed = false;
  #resyncing;
  #newcomer;
  #turn = Promise.resolve();

  constructor({ call, identity, directory, admissions, join, participant, members = 0, request, post }) {
    super();
    this.call = call;
    this.#admissions = admissions;
    this.participant = participantIn(participant);
    this.#identity = identity;
    this.#directory = directory;
    this.#join = join;
    // Nothing leaves a stay that is over, whatever was under way in it.
    this.#request = async (path, body) => {
      if (this.#isClosed) throw new Refusal('a request of a stay that is over');
      return request(path, body);
    };
    this.#post = (message) => this.#isClosed || post(message);
    const entry = ownEntry(identity, join, participant);
    const own = { ...entry, publicKey: entry.joinKey.publicKey };
    const [warnings, epochs] = [this.#warnings, this.#epochs];
    const lists = new Lists({ call, own, warnings });
    this.#lists = lists;
    this.#lookUps = new LookUps({
      directory,
      warnings,
      judged: (record) => this.#inTurn(() => this.#judged(record)),
      read: () => this.#reviewed(),
    });
    this.#seats = new Seats(own);
    this.demands = new KeyDemands({ request: this.#request, lists, epochs, warnings });
    this.#handout = new Handout({
      request: this.#request,
      examine: async (record, entries) => {
        await this.#lookUps.examine(record, entries);
        await this.#followWords(record);
      },
      accept: (record) => this.#inTurn(() => record.isWanting && record.lend((secret) => this.#setSecret(record, secret))),
      lists,
      demands: this.demands,
      warnings,
    });
    this.#received = new ReceivedEnvelopes({
      call,
      identity,
      join,
      request: this.#request,
      warnings,
      accept: (record, secret) => this.#setSecret(record, secret),
      lists,
    });
    this.confirmations = new Confirmations({ join, request: (path, body) => this.#request(`keys/${path}`, body), lists, epochs, warnings });
    this.#switching = new Switching({
      epochs,
      post: this.#post,
      isSilent: () => this.silence !== undefined || this.#isAlone || Boolean(this.#epochs.inUse?.isUnread),
    });
    this.#follow();
    this.#post({ type: 'self', call, participant, fingerprint: identity.fingerprint, joinId: join.joinId });
    admissions.addEventListener('change', this.#admitted);
    this.#newcomer = setTimeout(() => this.#lists.newest || this.resync().catch(() => {}), NEWCOMER_MS + MEMBER_MS * Math.min(members, LARGE));
  }

  /** Acts on what its parts report. */
  #follow() {
    this.#lists.addEventListener('broken', () => this.#broken());
    this.#lists.addEventListener('unlisted', () => this.dispatchEvent(new Event('unlisted')));
    this.confirmations.addEventListener('change', () => this.#changed());
    this.#switching.addEventListener('began', ({ detail: record }) => this.confirmations.began(record));
    this.#switching.addEventListener('switched', ({ detail: record }) => this.#switched(record));
  }

  get epoch() {
    return this.#epochs.current;
  }

  get isBroken() {
    return this.#lists.isBroken;
  }

  /** The list of the epoch in use: everybody who can decrypt. */
  get list() {
    return this.#epochs.list;
  }

  /**
   * Why nothing is sent, as far as keys decide that: `broken-history`, `no-key`, `unverified`, `revoked` or `changed-key`; undefined while something is sent.
   */
  get silence() {
    const record = this.#epochs.inUse;
    if (this.isBroken) return 'broken-history';
    if (!record?.hasSecret) return 'no-key';
    if (this.#directory.verifiedOnly && record.hasProblem) return 'unverified';
    return this.distrusted[0]?.problem;
  }

  /** The devices of the list in use that this device distrusts and the person has not allowed. */
  get distrusted() {
    return distrustedOf(this.#epochs.inUse?.devices ?? [], this.#allowed);
  }

  /** The person sends although these devices may hear: a set of `exactName`s. */
  set allowed(names) {
    this.#allowed = names;
    this.#reviewed();
    this.#admitted();
  }

  /** In epoch 1, in which rung devices can hear: whether none of them has joined yet. Nothing is sent then, and nothing is wrong. */
  get #isAlone() {
    const record = this.#epochs.inUse;
    return record?.epoch === 1 && !record.others.some((entry) => entry.participant > 0 || this.#seats.has(nameOf(entry)));
  }

  get canSend() {
    return this.#switching.canSend;
  }

  /** Whether the secret of the epoch in use is here. */
  get hasKey() {
    return Boolean(this.#epochs.inUse?.hasSecret);
  }

  /**
   * Each device of the list in use: `{user, device, participant, fingerprint, problem?, isVerified, level, isConfirmed, isWaiting, admission?, isUninvited}`.
   * `admission` says who let it in (see `Admissions.of`). `isWaiting`: it was handed the key, but does not use it as long as its person does not trust the
   * device that handed it out.
   */
  get devices() {
    const devices = this.#epochs.inUse?.devices ?? [];
    return devices.map((device) => {
      const isConfirmed = this.confirmations.isConfirmed(device.participant) || sameDevice(device, this.#identity);
      const isWaiting = !isConfirmed && this.#waiting.get(device.participant) === this.epoch;
      return { ...device, isConfirmed, isWaiting, admission: this.#admissions.of(device), isUninvited: this.uninvited(device) === 'yes' };
    });
  }

  /** Whether nobody let in the device of an entry of the list in use: `yes`, or `open` while that may still change. */
  uninvited(entry) {
    return this.#epochs.inUse?.isRing || sameDevice(entry, this.#identity) ? undefined : this.#admissions.uninvited(entry);
  }

  /**
   * `{user, device}` of a number whose frames and messages this device opens: according to the lists, and under epoch 1 according to the joins of its devices.
   * The server gives it to nobody else later.
   */
  ownerOf(participant) {
    return this.#seats.ownerOf(participant);
  }

  /** Whether an unverified device, although only verified ones are sent to, is on the list in use or on a following one. */
  get hasUnverified() {
    return this.#epochs.hasUnverified;
  }

  /** The epoch with that number while its list is remembered, for private messages. */
  record(epoch) {
    return this.#epochs.get(epoch);
  }

  /** The newest epoch whose list was accepted; 0 before the first. */
  get newestEpoch() {
    return this.#lists.newest?.epoch ?? 0;
  }

  /** The epochs whose secret is here: that in use and later ones, the earliest first. */
  get keyed() {
    return [...this.#epochs.values()].filter(({ hasSecret, epoch }) => hasSecret && epoch >= this.epoch).sort((a, b) => a.epoch - b.epoch);
  }

  get joinPair() {
    return this.#join.pair;
  }

  code() {
    return this.#epochs.code(this.call);
  }

  /** The initiator makes epoch 1: for itself, or with the result of `ringEpoch` also for the callees' devices. */
  start(ring) {
    return this.#inTurn(async () => {
      const list = ring?.list ?? [ownEntry(this.#identity, this.#join, this.participant)];
      const record = this.#admit(await this.#lists.begin(list));
      const secret = ring?.secret ?? random(SECRET_BYTES);
      await this.#setSecret(record, secret).finally(() => secret.fill(0));
      this.#switching.switchTo(record);
      await this.#tellNews(ring?.news ?? []);
    });
  }

  /** The person is told about devices that the ring's look-up has found; only then are they known. */
  async #tellNews(news) {
    for (const entry of news) this.#warnings.warn('new-device', { epoch: 1, ...entry });
    if (news.length > 0) await this.#directory.examine(news);
  }

  /**
   * Accepting a ring that brought a list and an envelope gives epoch 1 immediately. A bad list or envelope does no harm: epoch 2 follows. `used` is the store's
   * memory.
   */
  startRung(ring, used) {
    return this.#inTurn(async () => {
      if (!ring.list || !ring.envelope || this.#lists.newest) return;
      try {
        const found = await this.#lists.beginRung(ring, { identity: this.#identity, directory: this.#directory, used });
        const record = this.#admit(found.accepted);
        await this.#lookUps.look(record); // a new device of a known caller is reported here
        await this.#followWords(record);
        await this.#setSecret(record, found.secret).finally(() => found.secret.fill(0));
        this.#switching.switchTo(record);
      } catch (error) {
        if (!(error instanceof StaleRing)) this.#warnings.warn('refused-ring');
        this.#warnings.refuse(error);
      }
    });
  }

  /**
   * As which participant, and with which joinId, each device has joined: `seats` maps `user/device` to it. A number or joinId that is already taken counts for
   * nobody else.
   */
  seated(seats) {
    const record = this.#epochs.inUse;
    if (record && !record.roster.hasRung) return undefined;
    for (const participant of this.#seats.add(seats)) this.#warnings.warn('taken-number', { participant });
    this.#switching.review();
    if (!record?.hasSecret) return undefined;
    return this.#inTurn(() => this.#install(record));
  }

  /** `keys.rotate`. */
  async rotate(body) {
    await this.#turn; // a ring that is still being examined brings epoch 1: what comes after it may leave a gap
    if (this.isBroken || this.#isClosed) return;
    let announcement;
    try {
      announcement = announcementIn(body);
      if (this.#lists.isEarlier(announcement)) return;
      if (this.#lists.isAhead(announcement.epoch)) await this.resync();
    } catch (error) {
      this.#lists.refuse(error);
      return;
    }
    const record = await this.#inTurn(() => this.#rotate(announcement));
    // Asynchronously: later events do not wait for the server's answers.
    if (record && announcement.deliver) this.leading = this.#handout.lead(record, announcement.deliver).catch((error) => this.#warnings.refuse(error));
  }

  /** `keys.envelope`: resolves with whether it was opened, now or before; with `{later}`, a promise of that, while its signer is not trusted. */
  async envelope(body) {
    if (this.#isClosed) return true;
    try {
      const envelope = envelopeIn(body);
      if (envelope.epoch > (this.#lists.newest?.epoch ?? 0)) await this.resync();
      const signer = this.#epochs.get(envelope.epoch)?.roster.find(envelope.from);
      const record = this.#epochs.get(envelope.epoch);
      if (signer && !record.isLookedUp(signer)) await this.#lookUps.finished(record);
      return await this.#inTurn(() => this.#envelope(envelope));
    } catch (error) {
      return this.#received.refuse(error);
    }
  }

  /** `keys.switch`. One to an unknown or an earlier epoch changes nothing. */
  async switchTo({ epoch }) {
    if (!isWhole(epoch, this.#epochs.current + 1, 0xffff_ffff)) return;
    await this.#turn;
    if (!this.#epochs.has(epoch)) await this.resync();
    this.#switching.switchTo(this.#epochs.get(epoch));
  }

  /** `keys.request`: hands the newest key to a device that lacks it. */
  async requested(body) {
    try {
      const { epoch, to } = demandIn(body);
      const record = this.#epochs.get(epoch);
      if (record?.hasSecret && !this.isBroken && epoch === this.#lists.newest.epoch) await this.#handout.answer(record, to);
    } catch (error) {
      this.#warnings.refuse(error);
    }
  }

  /** `keys.confirmed`. */
  confirmed(body) {
    this.confirmations.told(body);
  }

  /** `keys.waiting`: that device does not trust the one that handed out the key. */
  waiting({ epoch, participant, reason }) {
    const entry = this.#epochs.get(epochIn(epoch))?.others.find((other) => other.participant === participant);
    if (!entry || reason !== 'trust') return;
    this.#waiting.set(entry.participant, epoch);
    this.#warnings.warn('waiting', { epoch, ...entry });
    this.#changed();
  }

  /** After a gap in the events: which epoch there is, and its key if it is missing. */
  resync() {
    this.#resyncing ??= this.#resync().finally(() => {
      this.#resyncing = undefined;
    });
    return this.#resyncing;
  }

  /** The epoch that a state of the call names: its switch may have been lost. One from before this join does not concern it. */
  async inUse(epoch) {
    await this.#turn;
    if (isWhole(epoch, this.#epochs.current + 1, 0xffff_ffff) && this.#epochs.has(epoch)) this.#switching.switchTo(this.#epochs.get(epoch));
  }

  /** The directory judges differently now: the person trusts or verified a device, `verifiedOnly` was switched, or a device's keys changed. */
  async reconsider() {
    this.#reviewed(); // what was switched on applies before anything is requested
    // Looked up asynchronously: a server that withholds an answer must not delay what follows.
    for (const record of this.#epochs.values()) await this.#lookUps.examine(record);
    await this.#inTurn(async () => {
      await this.#admissions.reconsider();
      for (const record of this.#epochs.values()) await this.#judged(record);
    });
  }

  /** Nothing is sent while the list of keys and the call differ (`roster-watch.js`). */
  setStopped(isStopped) {
    this.#switching.setStopped(isStopped);
  }

  /** The call is over, or joined again: nothing of it stays in the page. */
  close() {
    this.#isClosed = true;
    this.#admissions.removeEventListener('change', this.#admitted);
    clearTimeout(this.#newcomer);
    this.#switching.close();
    this.demands.close();
    this.confirmations.close();
    this.#epochs.close();
    this.#received.forgetBefore(Infinity);
  }

  #inTurn(action) {
    const turn = this.#turn.then(() => (this.#isClosed ? undefined : action()));
    this.#turn = turn.catch(() => {});
    return turn;
  }

  async #rotate(announcement) {
    if (this.isBroken) return undefined;
    try {
      const accepted = await this.#lists.next(announcement);
      if (accepted) this.#admit(accepted);
    } catch (error) {
      this.#lists.refuse(error);
      return undefined;
    }
    if (announcement.epoch < this.#lists.newest.epoch) return undefined;
    await this.#takeWords(announcement);
    const record = this.#epochs.get(announcement.epoch);
    if (record) await this.#ratchet(record);
    return record;
  }

  /** A list was accepted: its devices are looked up asynchronously, and what follows does not wait for that. */
  #admit(accepted) {
    const before = this.#epochs.get(accepted.epoch - 1) ?? this.#epochs.inUse;
    const isStrict = () => this.#directory.verifiedOnly;
    const isUninvited = (entry) => Boolean(this.#admissions.uninvited(entry)) && !this.#allowed.has(exactName(entry));
    const record = new Epoch(accepted, { identity: this.#identity, call: this.call, leastGeneration: this.#join.published, isStrict, isUninvited });
    record.own = record.roster.find(this.#identity);
    if (before) record.inherit(before);
    this.#epochs.add(record);
    for (const [participant, epoch] of this.#waiting) if (epoch < this.#epochs.current) this.#waiting.delete(participant);
    this.#seats.takeFrom(record.list);
    this.#admissions.listed(record.list, () => record.awaited);
    this.#handout.begin(record);
    this.#received.forgetBefore(record.epoch);
    this.#lookUps.begin(record, record.others.filter((entry) => !record.isLookedUp(entry)));
    return record;
  }

  /** The words that came with a list. */
  async #takeWords(body) {
    await this.#admissions.take(body, { isList: true });
    void this.#admissions.judge();
  }

  /** Until all words were followed, as far as the devices of `record` are known. */
  #followWords(record) {
    this.#admissions.learn(record.known);
    return this.#admissions.judge();
  }

  /** Somebody was let in, and may be given the key, or may have brought it. */
  #admitted = () => {
    const record = this.#epochs.get(this.#lists.newest?.epoch);
    if (!this.#isClosed && record) void this.#inTurn(() => this.#serve(record));
    this.#changed();
  };

  /** Acts on new or changed knowledge of which devices are trusted. */
  async #judged(record) {
    if (!this.#epochs.has(record.epoch)) return;
    await this.#followWords(record);
    this.#switching.review();
    if (record.hasSecret) this.#install(record);
    // Its secret is gone, but the worker still opens frames under it: not those of a device that was revoked meanwhile.
    else if (record.epoch < this.#epochs.current) this.#post({ type: 'senders', epoch: record.epoch, senders: record.senders(this.#seats, this.participant) });
    await this.#serve(record);
    this.#changed();
  }

  /** Opens the waiting envelope, and gives the key to those that wait for it, if they are trusted by now. */
  async #serve(record) {
    await this.#received.retry(record);
    const isNewest = record.epoch === this.#lists.newest.epoch;
    if (record.hasSecret && isNewest) this.#handout.answerAgain(record).catch((error) => this.#warnings.refuse(error));
  }

  /** Derives the key of an epoch announced as a ratchet. After a missed list, requests the newest key instead. */
  async #ratchet(record) {
    const secret = await record.ratcheted(this.#epochs.get(record.epoch - 1));
    if (!secret) return;
    try {
      await this.#setSecret(record, secret);
    } finally {
      secret.fill(0);
    }
  }

  async #envelope(envelope) {
    const record = this.#epochs.get(envelope.epoch);
    if (!record && envelope.epoch >= (this.#lists.newest?.epoch ?? 0)) throw new Refusal('an envelope of an epoch without a list');
    if (!record?.isWanting) return true; // no longer of use
    const offered = this.#handout.offered(record);
    if (offered) return { later: offered.then(() => this.#again(envelope)) };
    return this.#received.take(envelope, record);
  }

  /** Handles an envelope that had to wait. */
  async #again(envelope) {
    try {
      const taken = (await this.#inTurn(() => this.#envelope(envelope))) ?? true;
      return taken.later ?? taken;
    } catch (error) {
      return this.#received.refuse(error);
    }
  }

  async #resync() {
    if (this.#isClosed) return;
    const { newest } = this.#lists;
    const reply = await this.#request('keys/list', newest ? { since: newest.epoch } : {});
    await this.#inTurn(async () => {
      if (this.isBroken || !reply.list) return; // no epoch yet
      try {
        const parsed = listReplyIn(reply);
        if (this.#lists.isEarlier(parsed)) return;
        const accepted = await this.#lists.catchUp(parsed);
        const record = accepted && this.#admit(accepted);
        if (parsed.epoch === this.#lists.newest?.epoch) await this.#takeWords(parsed);
        if (record) await this.#ratchet(record);
        this.confirmations.received(parsed.epoch, parsed.confirmed);
      } catch (error) {
        this.#lists.refuse(error);
        return;
      }
      const record = this.#epochs.get(this.#lists.newest.epoch);
      if (!record) return;
      if (!record.hasSecret) this.demands.begin(record.epoch, { isAnew: true });
      if (!record.isLookingUp) this.#lookUps.begin(record, record.others.filter((entry) => !record.keysOf(entry)));
    });
  }

  async #setSecret(record, secret) {
    if (!(await record.setSecret(secret))) return;
    this.#install(record);
    // Before the switch: whoever is recorded hands out its keys of this epoch before it sends under them.
    this.dispatchEvent(new Event('keyed'));
    this.#switching.keyed(record);
  }

  /** The worker gets a key that only derives, and the senders that are heard. Immediately: a switch in between would be to a key that it does not have. */
  #install(record) {
    const { epoch, listHash, key } = record;
    if (!key) return;
    const senders = record.senders(this.#seats, this.participant);
    this.#post({ type: 'epoch', epoch, listHash, secret: key, senders });
  }

  #switched(record) {
    if (record.mode === 'fresh' || this.freshEpoch === 0) this.freshEpoch = record.epoch;
    if (!record.hasSecret) this.confirmations.ended();
    if (!record.hasSecret) this.demands.begin(record.epoch);
    this.#changed();
  }

  /** Whether something is sent may have changed. */
  #reviewed() {
    if (this.#isClosed) return;
    this.#switching.review();
    this.#changed();
  }

  #broken() {
    this.#switching.review();
    this.dispatchEvent(new Event('broken'));
  }

  #changed() {
    this.dispatchEvent(new Event('change'));
  }
}
