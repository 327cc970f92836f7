// A call's recording as one participant's device sees it (protocol section 13.7): who asks, what the person agreed to, and the keys that this device hands out
// because of that. Consent is the export: without a key of this device nothing of its person can be opened, whatever a server keeps or says.

import { isGuest } from '../guests.js';
import { Timers } from '../timers.js';
import { sameDevice } from '../trust/index.js';
import { Refusal, fromBase64, toBase64 } from '../wire/index.js';
import { holdersOf, makeGrants, makeRecordingKey } from './grants.js';
import { makeStatement, openStatement, statementIn } from './statement.js';
import { areSigned, signTrackKeys, wordIn } from './track-keys.js';

/** The sources of each medium. */
const SOURCES = { audio: ['microphone'], video: ['camera'], screen: ['screen', 'screen-audio'] };
const KNOWN = 64; // statements that are remembered
const WORDS = 8; // of the starter, by epoch
const LIST_MS = 3_000; // how long the starter may be missing on the list in use: its epoch may be on its way
const NO_EPOCH_MS = 5_000;
const NO_WORD_MS = 15_000;
const NEW_KEY_MS = 10_000; // after a withdrawal, until nothing is sent under the key that readers have
const TICK_MS = 1_000;
const AGAIN_MS = 2_000; // between two answers that the server has forgotten
const PASSING = ['connection-lost', 'timeout', 'server.busy', 'rate.limited', 'keys.not-allowed'];

/**
 * `id()` is the call's, `connection` a `CallConnection`. `stay` is set by each join.
 *
 * Events: `change`; `warning` with `{problem: 'refused-recording', user, device}`: the server told of a recording that is not what that device signed, or that it may not
 * start; `ended` with `{by, reason}`; `silence`, when `isSilent` changed.
 */
export class CallRecording extends EventTarget {
  #id;
  #connection;
  /** @type {any} */
  #stay;
  #told; // {statement, since}: what the server says is running
  #current; // {statement, st, publicKey, fingerprint, level, isOwn, since}: what counts
  #known = new Map(); // id -> the statement as text: an id is never another's
  #over = new Set(); // ids of recordings that have ended
  #begun = new Set(); // ids of those that this device has begun since the page was loaded
  #agreed = new Map(); // medium -> the newest epoch that was known then: later ones count
  #isAnswered = false;
  #withdrawn = new Set(); // media to which the person agreed no longer
  #answeredAt = 0;
  #consents = new Map(); // participant -> media, as the server says
  #words = new Map(); // epoch -> the starter's word
  #good = new Map(); // epoch -> the tracks of a word that counts
  #exports = new Map(); // epoch -> Set of sources: what readers may open from now on
  #sent = new Map(); // epoch -> Set of `source/n`; `''` is the starter's word
  #missingSince;
  #warned = new Set();
  #serving = Promise.resolve();
  #isDue = false;
  #telling = 0;
  #correcting;
  #correctedAt = -Infinity;
  #silentAfter = NEW_KEY_MS;
  #isSilent = false;
  #isWatching = false;
  #timers = new Timers();
  #isClosed = false;

  constructor({ id, connection }) {
    super();
    this.#id = id;
    this.#connection = connection;
  }

  /** `{participant, keys, ask, path?}` of a join. The answer lasts, because it is about the statement. */
  set stay(stay) {
    this.#stay = stay;
    for (const map of [this.#words, this.#good, this.#exports, this.#sent, this.#consents]) map.clear();
    for (const medium of this.#agreed.keys()) this.#agreed.set(medium, Infinity); // until the server knows it of this stay
    this.#watchSilence();
    this.look();
  }

  close() {
    this.#isClosed = true;
    this.#timers.clear();
  }

  // The view of a page

  /**
   * The recording that runs: `{id, by, level, isOwn, readers, media, since, answer, lack}`. `by` is the device that has signed it, `level` how far it is trusted. `answer` are the
   * media to which the person agreed, undefined before the answer. `lack` says why nothing was handed out yet although the person agreed: `no-epoch` or `no-word`, of the
   * starter. Undefined while none runs.
   */
  get view() {
    if (!this.#current) return undefined;
    const { statement, level, isOwn, since } = this.#current;
    const { id, by, readers, media } = statement;
    return { id, by, level, isOwn, readers, media, since, answer: this.#isAnswered ? [...this.#agreed.keys()] : undefined, lack: this.#lack };
  }

  /** The media of this device that readers can open now: those whose keys it has handed out in the epoch in use, whatever a server says about the recording. */
  get exported() {
    const sources = this.#exports.get(this.#stay?.keys?.epoch) ?? new Set();
    return Object.keys(SOURCES).filter((medium) => SOURCES[medium].some((source) => sources.has(source)));
  }

  /**
   * Whether a participant is recorded: `exported`, this device, by what it has handed out; `signed`, the starter, by its signed word for the epoch in use; `told`, somebody who
   * has agreed as the server says. Undefined otherwise.
   */
  recordedOf(participant) {
    const own = this.#stay?.participant;
    if (participant === own) return this.exported.length > 0 ? 'exported' : undefined;
    if (!this.#current) return undefined;
    if (participant === this.#starterNumber) return this.#good.get(this.#stay?.keys?.epoch)?.length > 0 ? 'signed' : undefined;
    return this.#consents.get(participant)?.length > 0 ? 'told' : undefined;
  }

  /** Nothing may be sent: the person has withdrawn, and the key that readers have was not replaced for too long. */
  get isSilent() {
    return this.#isSilent;
  }

  get #starterNumber() {
    return this.#stay?.keys?.record(this.#stay.keys.epoch)?.roster.find(this.#current.statement.by)?.participant;
  }

  get #lack() {
    if (this.#current.isOwn || this.#agreed.size === 0 || this.#exports.size > 0) return undefined;
    const waited = performance.now() - this.#answeredAt;
    const hasEpoch = this.#stay?.keys && this.#stay.keys.newestEpoch > Math.min(...this.#agreed.values());
    if (!hasEpoch) return waited >= NO_EPOCH_MS ? 'no-epoch' : undefined;
    return waited >= NO_WORD_MS && !this.#good.has(this.#stay.keys.newestEpoch) ? 'no-word' : undefined;
  }

  // The person's actions

  /**
   * Begins a recording of `media` that this user and `readers` may open. Everybody is asked; for this device that is an agreement. Resolves with how many devices of each reader
   * can open it.
   */
  async start({ media, readers }) {
    const { identity, directory } = this.#connection;
    const id = crypto.randomUUID();
    const { publicKey, scalar } = await makeRecordingKey();
    try {
      const names = [...new Set([identity.user, ...readers.filter((user) => !isGuest(user))])];
      const { statement, st } = await makeStatement(identity, { id, kind: 'call', call: this.#id(), publicKey, media, readers: names, at: Date.now() });
      const holders = (await holdersOf(names, { identity, directory })).filter(({ user }) => names.includes(user));
      const { grants, devices } = await makeGrants(identity, scalar, { id, st, holders, at: Date.now() });
      this.#begun.add(id);
      await this.#request('start', { statement, grants });
      this.started({ statement, since: Date.now() });
      await this.#judge();
      if (this.#current?.statement.id === id) await this.answer(id, media);
      return devices;
    } finally {
      scalar.fill(0);
    }
  }

  /** The person agrees to be recorded in these media, and no others, of the recording `id`; without any it declines or withdraws, and with `isErased` its part is deleted. */
  async answer(id, media, { isErased = false } = {}) {
    if (this.#current?.statement.id !== id || !this.#stay?.keys) throw new Refusal('a recording that does not run');
    const wanted = media.filter((medium) => this.#current.statement.media.includes(medium));
    for (const medium of this.#agreed.keys()) if (!wanted.includes(medium)) this.#withdrawn.add(medium);
    for (const medium of Object.keys(SOURCES)) (wanted.includes(medium) ? this.#withdrawn : this.#agreed).delete(medium);
    [this.#isAnswered, this.#answeredAt] = [true, performance.now()];
    this.#watchSilence();
    this.#changed();
    const added = wanted.filter((medium) => !this.#agreed.has(medium));
    await this.#tell(id, wanted, { added, isErased });
    for (const ms of [NO_EPOCH_MS, NO_WORD_MS]) this.#timers.after(ms, () => this.#changed());
  }

  /** For the media `added` only epochs count that are announced after the server and this device know of the answer. */
  async #tell(id, media, { added, isErased = false }) {
    const stay = this.#stay;
    this.#telling += 1;
    const { epoch } = await this.#request('consent', { recording: id, media, ...(isErased ? { erase: true } : {}) }).finally(() => (this.#telling -= 1));
    if (stay !== this.#stay || this.#current?.statement.id !== id) return;
    this.#consents.set(stay.participant, media);
    for (const medium of added) this.#agreed.set(medium, Math.max(stay.keys.newestEpoch, epoch));
    this.#changed();
    this.look();
  }

  /** Ends the recording for everybody. This device gives no word for it from now on, whatever the server does. */
  async stop() {
    const { id } = this.#current?.statement ?? {};
    if (!id) return;
    if (this.#current.isOwn) this.#end('stopped');
    await this.#request('stop', { recording: id });
  }

  // The server's words

  /** `recording.started`, or a part of the call's state. */
  started({ statement: told, since }) {
    const { id, by, call } = told;
    const text = JSON.stringify([told.kind, call, told.publicKey, told.media, told.readers, told.at, by.user, by.device, told.signature]);
    if (sameDevice(by, this.#connection.identity) && !this.#isOwnRunning(id)) return this.#correct(() => this.#request('stop', { recording: id }));
    if ((this.#known.get(id) ?? text) !== text || this.#over.has(id) || call !== this.#id()) return this.#refuse(told, text);
    if (this.#told?.statement.id === id) return undefined;
    if (this.#current) this.#end('stopped'); // a call has one recording at a time
    this.#known.set(id, text);
    if (this.#known.size > KNOWN) this.#known.delete(this.#known.keys().next().value);
    this.#told = { statement: told, since };
    this.#missingSince = undefined;
    this.look();
    return undefined;
  }

  /** A statement of this device from before the page was loaded, or that it has stopped, is no recording of this device. */
  #isOwnRunning(id) {
    return this.#begun.has(id) && !this.#over.has(id);
  }

  /** `recording.consent`. */
  consented({ recording, participant, media }) {
    if (recording !== this.#told?.statement.id) return;
    this.#consents.set(participant, media);
    this.#changed();
  }

  /** `recording.running`: the starter's word for an epoch. It counts once its signature was checked. */
  running(told) {
    if (told.recording !== this.#told?.statement.id) return;
    const word = wordIn(told);
    if (word.epoch < (this.#stay?.keys?.epoch ?? 0)) return;
    this.#words.set(word.epoch, word);
    if (this.#words.size > WORDS) this.#words.delete(Math.min(...this.#words.keys()));
    this.look();
  }

  /** `recording.stopped`. */
  stopped({ recording, reason }) {
    if (recording === this.#told?.statement.id) this.#end(reason);
  }

  /** The recording in the call's state, if there is one. */
  take(recording) {
    if (!recording) {
      if (this.#told) this.#end('unavailable');
      return;
    }
    this.started(recording);
    if (this.#told?.statement.id !== recording.statement.id) return;
    this.#consents = new Map(recording.consents.map(({ participant, media }) => [participant, media]));
    if (recording.running) this.running({ ...recording.running, recording: recording.statement.id });
    this.look();
  }

  /** The keys, the tracks or what is known of others has changed: judges the statement, and hands out what is due. */
  look() {
    if (this.#isClosed || this.#isDue) return;
    this.#isDue = true;
    this.#serving = this.#serving.then(async () => {
      this.#isDue = false;
      await this.#judge();
      this.#insist();
      await this.#serve();
    }).catch((error) => {
      if (!(error instanceof Refusal)) console.warn(`Conclave: a recording: ${error.code ?? error.name}`);
    });
  }

  #end(reason) {
    const { statement } = this.#told ?? this.#current;
    const wasShown = this.#current !== undefined;
    this.#over.add(statement.id);
    [this.#told, this.#current, this.#isAnswered] = [undefined, undefined, false];
    for (const map of [this.#agreed, this.#consents, this.#words, this.#good]) map.clear();
    this.#watchSilence();
    if (wasShown) this.dispatchEvent(new CustomEvent('ended', { detail: { by: statement.by, reason } }));
    this.#changed();
  }

  // The statement

  /** Whether the person is asked: the statement is signed by a device on the list in use, as it is known here. */
  async #judge() {
    const told = this.#told;
    if (!told || this.#current) return;
    const signer = this.#signerOf(told.statement.by);
    if (!signer) return this.#miss(told);
    try {
      const statement = statementIn(told.statement);
      if (statement.kind !== 'call') throw new Refusal('a statement about no call');
      const st = await openStatement(statement, { keys: signer.keys, fingerprint: fromBase64(signer.fingerprint), now: Date.now() });
      if (told !== this.#told || this.#current) return;
      const { publicKey } = statement;
      this.#current = { statement, st, publicKey, since: told.since, fingerprint: signer.fingerprint, level: signer.level, isOwn: signer.isOwn };
      this.#changed();
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      if (told !== this.#told) return;
      this.#told = undefined;
      this.#refuse(told.statement);
    }
  }

  /** The keys of the device, its fingerprint in base64 and its level; undefined while it may not record. */
  #signerOf(by) {
    const { identity } = this.#connection;
    if (sameDevice(by, identity)) return { keys: identity.keys, fingerprint: toBase64(identity.fingerprint), level: 'verified', isOwn: true };
    const { keys } = this.#stay ?? {};
    const found = keys?.devices.find((each) => sameDevice(each, by));
    const pinned = found && this.#mayBeHeard(keys.record(keys.epoch), found);
    return pinned && { keys: pinned, fingerprint: found.fingerprint, level: found.level, isOwn: false };
  }

  /** The keys of a device on the list of `record` if it is one that this device sends to. */
  #mayBeHeard(record, entry) {
    return record.problemOf(entry) || this.#stay.keys.uninvited(entry) ? undefined : record.keysOf(entry);
  }

  /** It may still turn out who that is: the person is warned after a while, and asked once it does. */
  #miss(told) {
    if (this.#stay?.keys && !(this.#stay.keys.epoch > 0)) return;
    this.#missingSince ??= performance.now();
    if (performance.now() - this.#missingSince >= LIST_MS) this.#refuse(told.statement);
    else this.#timers.after(LIST_MS, () => this.look());
  }

  #refuse({ id, by }, text = '') {
    const name = `${id}/${text}`;
    if (this.#warned.has(name) || this.#warned.size >= KNOWN) return;
    this.#warned.add(name);
    this.dispatchEvent(new CustomEvent('warning', { detail: { problem: 'refused-recording', user: by.user, device: by.device } }));
  }

  // The export

  async #serve() {
    const [stay, current] = [this.#stay, this.#current];
    if (!stay?.keys || !current) return;
    for (const map of [this.#exports, this.#sent, this.#good]) for (const epoch of map.keys()) if (epoch < stay.keys.epoch) map.delete(epoch);
    for (const record of stay.keys.keyed) {
      const mayExport = current.isOwn || (await this.#hasWord(record, current));
      if (stay !== this.#stay || current !== this.#current) return;
      if (mayExport) await this.#export(record, stay, current);
    }
    this.#watchSilence();
  }

  /** Whether the starter's device goes on recording in exactly this epoch, on this list, by its signature. */
  async #hasWord(record, { statement, st, fingerprint }) {
    const word = this.#words.get(record.epoch);
    const entry = record.roster.find(statement.by);
    if (!word || !entry) return false;
    const keys = this.#mayBeHeard(record, entry);
    if (!keys) return false;
    if (this.#good.has(record.epoch)) return true;
    const stay = this.#stay;
    const isGood = await areSigned(word, { st, listHash: record.listHash, fingerprint: fromBase64(fingerprint), joinId: fromBase64(entry.joinId), keys });
    if (stay !== this.#stay || word !== this.#words.get(record.epoch)) return false;
    if (isGood) this.#good.set(record.epoch, word.tracks);
    else {
      this.#words.delete(record.epoch);
      this.#refuse(statement, `word ${record.epoch}`);
    }
    this.#changed();
    return isGood;
  }

  async #export({ epoch }, stay, current) {
    const sent = this.#sent.get(epoch) ?? new Set();
    this.#sent.set(epoch, sent);
    const sources = this.#sourcesFor(epoch, stay).filter((source) => !sent.has(`${source}/${stay.path.trackID(source)}`));
    const isWord = current.isOwn && !sent.has('');
    if (sources.length === 0 && !isWord) return;
    const exported = await stay.ask({ type: 'export-keys', sources, epoch, st: current.st, publicKey: current.publicKey });
    if (!exported || stay !== this.#stay || current !== this.#current || epoch < stay.keys.epoch) return;
    const due = this.#sourcesFor(epoch, stay);
    if (exported.sources.some((source) => !due.includes(source)) || (exported.tracks.length === 0 && !isWord)) return;
    // From now on readers may have it.
    if (exported.sources.length > 0) this.#exports.set(epoch, new Set([...(this.#exports.get(epoch) ?? []), ...exported.sources]));
    const names = [...exported.sources.map((source) => `${source}/${stay.path.trackID(source)}`), ...(isWord ? [''] : [])];
    for (const name of names) sent.add(name);
    this.#changed();
    try {
      await this.#request('keys', await signTrackKeys(this.#connection.identity, { recording: current.statement.id, epoch, exported }));
    } catch (error) {
      if (!PASSING.includes(error.code)) return; // the epoch, or the recording, is over
      for (const name of names) sent.delete(name);
      this.#timers.after(AGAIN_MS, () => this.look());
    }
  }

  /** The sources that this device sends now, and to which the person agreed before the epoch was announced. */
  #sourcesFor(epoch, { path }) {
    const media = [...this.#agreed].filter(([, after]) => epoch > after).map(([medium]) => medium);
    return media.flatMap((medium) => SOURCES[medium]).filter((source) => path?.trackID(source));
  }

  // The server has forgotten the answer, or never got it

  #insist() {
    if (!this.#isAnswered || !this.#current || !this.#stay?.keys || this.#telling > 0) return;
    const { id } = this.#current.statement;
    const media = [...this.#agreed.keys()];
    const told = this.#consents.get(this.#stay.participant) ?? [];
    if (told.length === media.length && media.every((medium) => told.includes(medium))) return;
    this.#correct(() => this.#tell(id, media, { added: media.filter((medium) => !told.includes(medium)) }));
  }

  /** One correction at a time, and not more often than every 2 s, whatever the server says. */
  #correct(action) {
    const now = performance.now();
    if (this.#correcting || this.#isClosed) return;
    if (now - this.#correctedAt < AGAIN_MS) {
      this.#correcting = true;
      this.#timers.after(AGAIN_MS, () => {
        this.#correcting = false;
        this.#insist();
      });
      return;
    }
    [this.#correctedAt, this.#correcting] = [now, true];
    action().catch(() => {}).finally(() => (this.#correcting = false));
  }

  // After a withdrawal

  /** Readers have a key that the person no longer agrees to: without another key, nothing is sent after a while in which the server could have announced one. */
  #watchSilence() {
    if (!this.exported.some((medium) => this.#withdrawn.has(medium))) {
      this.#silentAfter = NEW_KEY_MS;
      this.#setSilent(false);
    } else if (!this.#isWatching) {
      this.#isWatching = true;
      this.#timers.after(TICK_MS, () => {
        this.#isWatching = false;
        if (this.#connection.status === 'ready') this.#silentAfter -= TICK_MS;
        this.#watchSilence();
      });
    }
    if (this.#silentAfter <= 0) this.#setSilent(true);
  }

  #setSilent(isSilent) {
    if (this.#isSilent === isSilent) return;
    this.#isSilent = isSilent;
    this.dispatchEvent(new Event('silence'));
  }

  #request(what, body) {
    return this.#connection.request(`calls/${this.#id()}/record/${what}`, body);
  }

  #changed() {
    if (!this.#isClosed) this.dispatchEvent(new Event('change'));
  }
}
