// One call on this device: joining, and people's actions. Facts are in `call-state.js`, sent tracks in `sending.js`; `recovery.js` rejoins, `call-events.js`
// handles the server's events; a `Stay` has the keys and the path of the participant that a join created.

import { RequestError } from '../connection/index.js';
import { CallRecording } from '../consent/index.js';
import { isGuest } from '../guests.js';
import { Untold, confirmationOf, exactName, rosterOf, stopOf } from '../keys/index.js';
import { GONE, Sending } from '../media/index.js';
import { Admissions } from '../trust/index.js';
import { CallEvents } from './call-events.js';
import { CallRequests } from './call-requests.js';
import { CallState } from './call-state.js';
import { CallWatch } from './call-watch.js';
import { Door } from './door.js';
import { Facets } from './facets.js';
import { Knocking } from './knocking.js';
import { Recovery } from './recovery.js';
import { Stay } from './stay.js';
import { ownerOf, tilesOf } from './tiles.js';

/** @typedef {import('./call-requests.js').CallConnection} CallConnection */

const WITHDRAWN = { cause: 'withdrawn', people: [], needsPerson: false };
const left = () => new RequestError({ code: 'call.ended', message: 'The call was left.' });

/**
 * Events: `change`; those of `Facets`, each with a part of it; `speaking`; `failures` with `{count}`, frames of somebody did not open for some seconds;
 * `notice` with `{kind, …}` for people; `warning` with `{problem, user, device, fingerprint}` (see `KeyAgreement`, `CallWatch` and `CallRecording`; and `refused-track`,
 * `removed-from-list`); `door`, when `waitingGuests` changed; `waiting`, when `isWaiting` did; `message` with `{participant, isPrivate}` and `text`, `reaction`, `hand`, `removed` or a caption; `ended` with `{reason, by}`: the call is over here, perhaps
 * not for others.
 */
export class Call extends CallRequests {
  hasEnded = false;
  code = '';
  /** The result of each ring by user, in a call that this device started. */
  results;
  /** Whether the camera is wanted, if possible. */
  wantsCamera = false;
  isHeld = false; // requested by this user
  /** @type {CallConnection} */
  #connection;
  #stay;
  #sending;
  #wasConnected = false;
  #isCameraShed = false; // the path was too poor for it
  /** @type {Untold | undefined} */
  #untold = new Untold(); // while nobody looks at this call
  #asked; // the pending join, until the server has answered
  #allowed = new Set(); // devices to which the person sends although they are distrusted, by `exactName`
  #watch;
  #recovery;
  #events;
  #facets = new Facets();
  /** @type {Door | undefined} */
  #door;
  #knocking = new Knocking();
  #recording;
  #secret;
  #isLasting;
  #rootBefore;
  #openPath;

  /** `secret` is that of the link by which the call is joined, `isLasting` if it is a lasting one; `openPath` is as in `Stay.open`. */
  constructor({ id, connection, secret = '', isLasting = false, root = undefined, openPath = undefined }) {
    const { user, device } = connection.identity ?? {};
    super(new CallState({ id, user, device }), connection);
    this.#connection = connection;
    this.#secret = secret;
    this.#isLasting = isLasting;
    this.#rootBefore = root;
    this.#openPath = openPath;
    const tellMuted = (track, muted) => this.request(`tracks/${track}`, { muted }).catch(() => {}); // sent again when the connection is back
    this.#sending = new Sending({ capture: connection.capture, tellMuted });
    this.#watch = new CallWatch(() => this.#watched());
    this.#recovery = new Recovery(connection);
    this.#recording = new CallRecording({ id: () => this.id, connection });
    this.#events = new CallEvents(this.facts, this.#recording);
    this.#follow();
  }

  /** Acts on what its parts report. */
  #follow() {
    const on = (part, name, action) => part.addEventListener(name, ({ detail }) => action(detail));
    for (const part of [this.#sending, this.#recovery]) on(part, 'change', () => this.#changed());
    for (const part of [this.#sending, this.#events]) on(part, 'notice', (detail) => this.#notice(detail));
    on(this.#sending, 'gone', () => this.rejoin());
    on(this.#watch, 'ask', () => this.#watch.asked(this.#askForList()));
    on(this.#watch, 'stop', () => this.#stopChanged());
    on(this.#watch, 'warning', (detail) => this.#warn(detail));
    on(this.#events, 'over', (detail) => this.#over(detail));
    on(this.#events, 'state', () => this.#recover(this.#recovery.afterState(this.participant, this.facts)));
    on(this.#events, 'own-change', (change) => this.#recover(this.#recovery.afterOwnChange(change, this.participant, this.facts)));
    on(this.#events, 'wanted', () => this.#sending.negotiate());
    on(this.#events, 'message', (body) => this.#opened(body));
    on(this.#events, 'screen-over', () => this.stopScreen());
    on(this.#events, 'knock', (body) => this.#door?.knocked(body));
    on(this.#events, 'knock-over', ({ user, outcome }) => (user === this.user ? this.#knocking.answered(outcome) : this.#door?.over(user)));
    on(this.#recording, 'change', () => this.#changed());
    on(this.#recording, 'silence', () => this.#stopChanged());
    on(this.#recording, 'warning', (detail) => this.#warn(detail));
    on(this.#recording, 'ended', (detail) => this.#notice({ kind: 'recording-ended', ...detail }));
    on(this.#knocking, 'change', () => this.dispatchEvent(new Event('waiting')));
  }

  get user() {
    return this.#connection.identity.user;
  }

  get device() {
    return this.#connection.identity.device;
  }

  get state() {
    return this.hasEnded ? 'ended' : this.facts.state;
  }

  /** `connecting`, `connected`, `reconnecting` or `held`: the state of the media's path. */
  get path() {
    if (this.isHeld) return 'held';
    if (this.#mediaPath?.connection === 'connected' && !this.#recovery.isJoining) return 'connected';
    return this.#wasConnected ? 'reconnecting' : 'connecting';
  }

  /** Microphone, camera, screen: `{isOn, track}` of what this device sends. */
  local(source) {
    return this.#sending.state(source);
  }

  /** Everybody who can decrypt, according to the list of the epoch in use: `{user, device, fingerprint, problem?, isVerified}`. */
  get devices() {
    return this.#keys?.devices ?? [];
  }

  /** Everybody who can decrypt or is in the call: see `rosterOf`. */
  get roster() {
    return rosterOf(this.#watch.people, this.devices);
  }

  /** Why nothing is sent, `{cause, devices, needsPerson}`: see `stopOf`. */
  get stop() {
    return stopOf(this.#stopped, this.#keys, this.#recovery.isJoining);
  }

  get #stopped() {
    return this.#watch.stopped ?? (this.#recording.isSilent ? WITHDRAWN : undefined);
  }

  /** Whether the others have confirmed that they share this key: `{state, missing, confirmed}`, see `confirmationOf`. */
  get confirmation() {
    return confirmationOf(this.#keys?.confirmations.state, this.devices);
  }

  /** Whether the key in use should have been replaced long ago. */
  get isKeyOld() {
    return this.#watch.isOld;
  }

  /** The number of the key in use. */
  get epoch() {
    return this.#keys?.epoch ?? 0;
  }

  /** Whether the key in use is here: without it nobody is heard or seen, and this device is neither heard nor seen. */
  get hasKey() {
    return Boolean(this.#keys?.hasKey);
  }

  get hasUnverified() {
    return Boolean(this.#keys?.hasUnverified);
  }

  /** The user who let in `entry`, `{user, fingerprint?}`: see `Admissions.of`. */
  admissionOf(entry) {
    return this.admissions?.of(entry);
  }

  /** The user who started this call, once that is certain; undefined in a call of the app's service. An app that reloads gives it back (`Conclave.enter`). */
  get root() {
    return this.admissions?.root;
  }

  /** Whether this device was let in only by the app's service, which lets people in: nobody then counts as uninvited. */
  get isByService() {
    return Boolean(this.admissions?.isByService);
  }

  /** The recording of this call that runs, and what this device has to do with it: see `CallRecording.view`. */
  get recording() {
    return this.#recording.view;
  }

  /** The media of this device that a recording's readers can open now: what it has handed out the keys of. */
  get exported() {
    return this.#recording.exported;
  }

  /** Whether a participant is recorded, and how that is known: see `CallRecording.recordedOf`. */
  recordedOf(participant) {
    return this.#recording.recordedOf(participant);
  }

  get audioTracks() {
    return this.isHeld ? [] : (this.#mediaPath?.audioTracks ?? []);
  }

  get speaking() {
    const speaking = this.#mediaPath?.speaking ?? new Set();
    if (speaking.has(0) && this.local('microphone').isOn) speaking.add(this.participant);
    return speaking;
  }

  /** The tiles to show: see `tiles.js`. */
  tiles() {
    return tilesOf(this, this.#mediaPath);
  }

  /** The member whose participant has this number; undefined when it is gone. */
  ownerOf(participant) {
    return ownerOf(this, participant);
  }

  /** `{user, device}` of a number according to the lists of keys; undefined if it was on none. */
  numberOwner(participant) {
    return this.#keys?.ownerOf(participant);
  }

  get #mediaPath() {
    return this.#stay?.path;
  }

  get #keys() {
    return this.#stay?.keys;
  }

  // Joining

  /**
   * Joins by `kind`: `start`, `accept`, `join`, `rejoin` or `transfer`. `body` goes with it; `ring` is the ring that is accepted,
   * If no ring is accepted, one of the users `inviters` must have let this one in. Resolves with the reply once the call is known.
   * @param {string[]} [inviters]
   */
  async join(kind, body = {}, ring = {}, inviters = undefined) {
    if (!this.admissions) this.#followWords();
    const asked = Stay.open({ kind, id: this.id, body, ring, secret: this.#secret, isLasting: this.#isLasting, inviters, root: this.#rootBefore, openPath: this.#openPath, admissions: this.admissions, knocking: this.#knocking, connection: this.#connection });
    this.#asked = asked.catch(() => {});
    const stay = await asked;
    const { reply } = stay;
    if (this.hasEnded) {
      // left before the answer arrived
      stay.close();
      this.#connection.request(`calls/${stay.id}/leave`).catch(() => {});
      throw left();
    }
    this.facts.take(reply.call);
    this.participant = stay.participant;
    this.#recovery.joined();
    this.#stay?.close(); // of an attempt whose media could not be sent
    this.#stay = stay;
    this.#events.stay = stay;
    this.#listen(stay);
    this.#recording.stay = stay;
    this.#recording.take(reply.call.recording);
    await stay.connect(this.facts, ring);
    if (stay !== this.#stay || this.hasEnded) return reply; // another join has begun meanwhile, or the call is over
    this.#keys.setStopped(Boolean(this.#stopped));
    this.#keys.allowed = this.#allowed;
    this.#sending.path = stay.path;
    this.#recording.look();
    this.#changed();
    return reply;
  }

  /** A call that was to start becomes this device's part in the call `id`, by `kind`; if that fails, it belongs to no call. `ring` and `inviters` are as in `join`. */
  async joinCrossed(id, kind, ring = {}, inviters = []) {
    this.facts.id = id;
    this.#followWords(); // the words of the call that was to start are void
    try {
      return await this.join(kind, {}, ring, inviters);
    } catch (error) {
      if (!this.participant) {
        this.facts.id = '';
        this.#followWords();
      }
      throw error;
    }
  }

  /** Once only the app's service has let this device in, the person is told. */
  #followWords() {
    this.admissions = new Admissions(this.#connection);
    this.#door = new Door(this.admissions);
    this.#door.addEventListener('change', () => this.dispatchEvent(new Event('door')));
    let isByService = false;
    this.admissions.addEventListener('change', () => {
      if (this.isByService && !isByService) this.#warn({ problem: 'by-service' });
      ({ isByService } = this);
      this.#changed();
    });
  }

  #listen(stay) {
    const on = (name, action) => stay.addEventListener(name, (event) => stay === this.#stay && !this.hasEnded && action(event.detail));
    on('change', () => {
      this.#recording.look(); // a track may be new
      this.#changed();
    });
    on('connection', () => {
      this.#wasConnected ||= stay.path?.connection === 'connected';
      this.#changed();
    });
    on('speaking', () => this.dispatchEvent(new Event('speaking')));
    on('failures', (detail) => this.#keys?.canSend && this.dispatchEvent(new CustomEvent('failures', { detail })));
    // Without the server joining is impossible: `connectionReady` handles that.
    on('lost', () => void (this.#connection.status === 'ready' && this.rejoin()));
    on('keys', () => this.#keysChanged(stay));
    on('keyed', () => this.#recording.look());
    on('warning', (detail) => this.#warn(detail));
    on('refused-track', () => this.#warn({ problem: 'refused-track' }));
    on('broken', () => this.#rejoinForKeys());
    on('unlisted', () => this.#unlisted());
    on('uplink', ({ isPoor }) => this.#uplinkChanged(isPoor));
  }

  /** If the path is too poor for the camera, only sound continues, unless video comes first. The person decides whether to turn the camera on again. */
  async #uplinkChanged(isPoor) {
    if (isPoor && this.local('camera').isOn && this.#connection.capture.choice.isVideoFirst) this.#notice({ kind: 'weak-picture' });
    else if (isPoor && this.local('camera').isOn) {
      this.#isCameraShed = true;
      const told = this.setCamera(false);
      this.#notice({ kind: 'weak-uplink' });
      await told;
    } else if (!isPoor && this.#isCameraShed && !this.local('camera').isOn) this.#notice({ kind: 'uplink-recovered' });
  }

  /** A list without this join: if the call's state lacks it, too, rejoining creates another. */
  async #unlisted() {
    await this.#watch.during(this.#refresh());
    if (this.hasEnded || this.#recovery.isJoining) return;
    if (!this.facts.participant(this.participant)) this.#rejoinForKeys();
    else this.#warn({ problem: 'removed-from-list' });
  }

  #watched() {
    const { epoch, freshEpoch } = this.#keys ?? { epoch: 0, freshEpoch: 0 };
    const { rotateMinutes } = this.facts;
    const isConnected = this.#connection.status === 'ready' && !this.#recovery.isJoining && this.participant > 0;
    const uninvited = (entry) => this.#keys?.uninvited(entry);
    return { isConnected, participant: this.participant, epoch, freshEpoch, list: this.#keys?.list ?? [], members: [...this.members.values()], rotateMinutes, uninvited };
  }

  #stopChanged() {
    this.#keys?.setStopped(Boolean(this.#stopped));
    this.#changed();
  }

  async #askForList() {
    this.#events.takeState(await this.request('state'));
    await this.#keys?.resync();
  }

  /** The person sends although `shown`, the `devices` of the displayed stop, may hear. Any other cause of a stop remains. */
  sendAnyway(shown) {
    for (const device of shown) this.#allowed.add(exactName(device));
    if (this.#keys) this.#keys.allowed = this.#allowed;
    this.#watch.sendAnyway(shown);
    this.#changed();
  }

  /** Whether the page could draw who hears: while it cannot, nothing is sent. */
  setShown(isShown) {
    if (!this.hasEnded) this.#watch.setShown(isShown);
  }

  /** Opens the microphone and the camera, if wanted. A device that cannot be opened causes a notice, not an end. */
  async capture({ camera = true, microphone = true } = {}) {
    this.wantsCamera = Boolean(camera);
    await this.#sending.capture({ camera, microphone });
  }

  /** Sends what was captured, and receives. */
  async sendCaptured() {
    if (!this.hasEnded) await this.#sending.sendAll();
  }

  /** Returns as a new participant, with what this device sent before. */
  rejoin() {
    return this.#recovery.during(() => this.#rejoin());
  }

  async #rejoin() {
    this.#stay?.close();
    this.#sending.forgetScreen();
    this.#recover(await this.#recovery.repeat(() => this.#joinAgain()));
  }

  async #joinAgain() {
    if (this.hasEnded) throw left();
    await this.join('rejoin');
    if (this.isHeld) await this.request('hold', { held: true });
    await this.#sending.sendAll();
  }

  #rejoinForKeys() {
    if (this.#recovery.takeTurnForKeys()) this.rejoin();
    else this.#changed();
  }

  /** Carries out a verdict of `Recovery`. */
  #recover(verdict) {
    if (verdict === 'rejoin') this.rejoin();
    else if (verdict === 'stay') this.#insist();
    else if (verdict) this.#over({ reason: verdict });
  }

  /** When a call comes back on hold, the server puts the active call on hold. The user did not ask for that. */
  #insist() {
    const isHeldByServer = this.facts.participant(this.participant)?.held && !this.isHeld;
    if (isHeldByServer && !this.hasEnded) this.request('hold', { held: false }).catch(() => {});
  }

  // People's actions

  setMicrophone(isOn) {
    return this.#sending.setMicrophone(isOn);
  }

  setCamera(isOn) {
    this.wantsCamera = isOn;
    if (isOn) this.#isCameraShed = false;
    return this.#sending.setCamera(isOn);
  }

  /** Another microphone or camera was chosen. */
  reopen(source) {
    return this.#sending.reopen(source);
  }

  /**
   * Sends a copy of the app's own `track` as `source`, `microphone` or `camera`, in place of the device; without a track, the device again. It lasts until the
   * call is over, or the track ends.
   */
  publish(source, track) {
    if (!['microphone', 'camera'].includes(source)) throw new TypeError(`${source} is neither microphone nor camera`);
    if (source === 'camera' && track) this.wantsCamera = true;
    return this.#sending.publish(source, track);
  }

  /**
   * Shares a screen, which the person chooses, or `stream`, a `MediaStream` of the app; with `replace` another's screen makes room. Throws `screen.busy` if
   * there already is one.
   */
  shareScreen(options) {
    return this.#sending.shareScreen(options);
  }

  stopScreen() {
    return this.#sending.stopScreen();
  }

  /** Holds the call: nothing is sent or played, and its microphone and camera are released. Or resumes it. */
  async hold(isHeld) {
    if (this.isHeld === isHeld || this.hasEnded) return;
    this.isHeld = isHeld;
    this.#changed();
    // Silence first, because telling the server may take a while.
    if (isHeld) await this.#sending.suspend();
    try {
      await this.request('hold', { held: isHeld });
    } finally {
      if (!isHeld) await this.#sending.resume();
    }
  }

  /**
   * Sends `{text}`, `{reaction}` or `{hand}`, whether the hand is raised, to the others, or only to the participants `to`. Throws if it cannot be sealed now.
   */
  async send(message, { to = undefined } = {}) {
    const stay = this.#stay;
    const body = await stay?.messages?.seal(message, to);
    // A message of a finished stay must not be sent as one of the next stay.
    if (!body || stay !== this.#stay || this.hasEnded) throw new RequestError({ code: 'message.not-sealed', message: 'The message could not be encrypted. Try again.' });
    await this.request('message', to ? { to, body } : { body });
    const detail = { participant: this.participant, isPrivate: Boolean(to), ...message };
    this.dispatchEvent(new CustomEvent('message', { detail }));
  }

  /**
   * Removes a guest, for all; every link made so far is void then. The others are told first, in a message, whose act it is: the server could name anybody.
   */
  async removeGuest(user) {
    await this.send({ removed: user }).catch(() => {}); // without a key nobody is named
    await this.request('remove-guest', { guest: user });
  }

  /** Whether this guest waits until a member admits it. */
  get isWaiting() {
    return this.#knocking.isWaiting;
  }

  /** The guests who wait until a member admits them, `{user, name, expiresAt}`: each has proven that it has a link of this call, and nobody has checked its name. */
  get waitingGuests() {
    return isGuest(this.user) ? [] : (this.#door?.waiting ?? []); // guests let nobody in
  }

  /** Admits a guest who waits: this device signs it. Resolves with false if somebody has answered before. */
  async admitGuest(user) {
    const word = this.#door?.wordOf(user);
    return Boolean(word) && this.#answerGuest(user, 'admit-guest', { admission: await this.admissions.admit(word) });
  }

  /** Refuses a guest who waits. Resolves with false if somebody has answered before. */
  refuseGuest(user) {
    return this.#answerGuest(user, 'refuse-guest', { guest: user });
  }

  async #answerGuest(user, request, body) {
    const isFirst = await this.request(request, body).then(() => true, (error) => {
      if (error.code === 'user.not-found') return false;
      throw error;
    });
    this.#door?.over(user);
    return isFirst;
  }

  /**
   * Records this call: everybody is asked, and each decides for itself. `media` are some of `audio`, `video` and `screen`; `readers` are the users who may play it, besides this
   * one. Resolves with how many devices of each can open it.
   */
  record({ media = ['audio', 'video', 'screen'], readers = [] } = {}) {
    return this.#recording.start({ media, readers });
  }

  /** The person's answer to the recording `id`: it is recorded in these media and no others. Without any it declines, or withdraws; with `isErased` its part is deleted. */
  answerRecording(id, media, { isErased = false } = {}) {
    return this.#recording.answer(id, media, { isErased });
  }

  /** Ends the recording for everybody: by its starter, or the one who has started the call. */
  stopRecording() {
    return this.#recording.stop();
  }

  async leave() {
    const told = this.id && this.request('leave').catch(() => {}); // before the page's requests at the end of the call
    this.#over({ reason: 'left', by: this.user });
    await told;
  }

  async endForAll() {
    await this.request('end');
    this.#over({ reason: 'ended-by-initiator', by: this.user });
  }

  /** The join did not succeed: the microphone and the camera are closed again. */
  giveUp() {
    this.#over({ reason: 'failed' });
  }

  reconsiderKeys() {
    return this.#keys?.reconsider();
  }

  // The server's events

  /** Handles an event of this call. Resolves with false for an envelope that did not open, with `{later}` for one that waits for the person. */
  async handle(name, body) {
    if (this.hasEnded || !this.#events.isKnown(name)) return true;
    // Events about keys and recordings are judged by the join's reply.
    if (name.startsWith('keys.') || name.startsWith('recording.')) await this.#asked;
    const isTaken = await this.#events.handle(name, body);
    this.#changed();
    return isTaken ?? true;
  }

  async #opened(body) {
    const stay = this.#stay;
    const message = await stay?.messages?.open(body);
    if (message && stay === this.#stay && !this.hasEnded) this.dispatchEvent(new CustomEvent('message', { detail: message }));
  }

  /** The connection to the server is back, or events were lost (`hasMissed`): requests what may have been missed. */
  async connectionReady({ hasMissed = false } = {}) {
    if (this.hasEnded || this.#recovery.isJoining || !this.participant) return;
    await this.#watch.during(this.#catchUp());
    if (this.hasEnded || this.#recovery.isJoining) return;
    // An event about the slots may be among the lost ones. The answer to an offer contains the same.
    this.#mediaPath?.resume({ isStale: hasMissed });
    this.#sending.tellAll();
  }

  networkChanged() {
    this.#mediaPath?.networkChanged();
  }

  /** Both belong together: the list explains the state, and vice versa. */
  async #catchUp() {
    await this.#refresh();
    if (!this.hasEnded && !this.#recovery.isJoining) await this.#resync();
  }

  async #resync() {
    await this.#keys?.resync().catch(() => {});
    await this.#keys?.inUse(this.facts.epoch);
  }

  async #refresh() {
    try {
      this.#events.takeState(await this.request('state'));
    } catch (error) {
      if (GONE.includes(error.code)) this.#over({ reason: 'lost' });
    }
  }

  /** The tiles follow the list immediately, the code once it is computed. */
  async #keysChanged(stay) {
    this.#recording.look();
    this.#changed();
    const code = await stay.keys.code();
    if (stay !== this.#stay || code === this.code) return;
    this.code = code;
    this.#changed();
  }

  /** Somebody looks at the call from now on. Returns the earlier events `warning` and `notice`, `[name, detail]` each; from now on they are only events. */
  attend() {
    const untold = this.#untold?.take() ?? [];
    this.#untold = undefined;
    return untold;
  }

  /** The call is no longer shown, for example because another one is: its warnings are kept until `attend`. */
  unattend() {
    this.#untold ??= new Untold();
  }

  #over(detail) {
    if (this.hasEnded) return;
    this.hasEnded = true;
    this.#knocking.stop();
    this.#recording.close();
    this.#stay?.close();
    this.#sending.close();
    this.#watch.close();
    this.dispatchEvent(new CustomEvent('ended', { detail }));
  }

  #warn(detail) {
    this.#tell('warning', detail);
  }

  #notice(detail) {
    this.#tell('notice', detail);
  }

  #tell(name, detail) {
    this.#untold?.add(name, detail);
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }

  #changed() {
    if (!this.hasEnded) this.#watch?.look();
    for (const name of this.#facets.changed(this)) this.dispatchEvent(new Event(name));
    this.dispatchEvent(new Event('change'));
  }
}
