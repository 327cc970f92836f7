// One call on this device: joining and coming back, what the server says, what people do. Facts are in `call-state.js`, what is sent is
// in `sending.js`; a `seat` has the keys and the path of one join.

import { CallRequests } from './call-requests.js';
import { CallState } from './call-state.js';
import { confirmationOf, rosterOf, stopOf } from './call-trust.js';
import { CallWatch } from './call-watch.js';
import { Seat } from './seat.js';
import { Sending } from './sending.js';
import { RequestError } from './stomp.js';
import { tilesOf } from './tiles.js';

const REJOIN_RETRY_MS = 1_000;
const REJOINS = 5; // refused in a row, before the call is given up; a server that is away does not count

const EARLY_WARNINGS = 16;

const GONE = ['call.not-found', 'call.ended', 'call.not-joined']; // the call, or this part in it, is over
const CLOSED = ['refused', 'replaced', 'removed', 'closed'];
const AWAY = ['connection-lost', 'timeout', 'server.busy', 'rate.limited', 'internal'];

/**
 * Events: `change`; `speaking`; `failures` with `{count}`, frames that did not open; `notice` with `{kind, …}` for people; `warning` with `{problem, user, device, fingerprint}` (see
 * `KeyAgreement` and `CallWatch`; and `refused-track`, `removed-from-list`); `message` with `{participant, text}` or `{participant, reaction}`,
 * and `isPrivate`; `ended` with `{reason, by}`: the call is over here, perhaps not for others.
 *
 * `connection` is the part of `Conclave` that a call needs: `request(path, body)`, `hurry()`, `status`, `identity`,
 * `directory`, `connectionNumber`.
 */
export class Call extends CallRequests {
  participant = 0;
  hasEnded = false;
  code = '';
  /** 0 to 4, as the server sees this device's reception; undefined until it has said so. */
  quality;
  /** Whether the camera is to be on, when it can be. */
  wantsCamera = false;
  isHeld = false; // by this user's wish
  #connection;
  #seat;
  #sending;
  #wasConnected = false;
  #joinedOn = 0;
  #joining;
  #early = [];
  #asked; // the join that the server was asked for, until it has answered
  #watch;
  #hasRejoinedForKeys = false;

  constructor({ id, connection }) {
    const { user, device } = connection.identity ?? {};
    super(new CallState({ id, user, device }), connection);
    this.#connection = connection;
    this.#sending = new Sending({
      tellMuted: (track, muted) => this.request(`tracks/${track}`, { muted }).catch(() => {}), // told again when the connection is back
      negotiate: () => this.#negotiate(),
      changed: () => this.#changed(),
      notice: (detail) => this.#notice(detail),
    });
    this.#watch = new CallWatch({
      facts: () => this.#watched(),
      ask: () => this.#askForList(),
      stop: (isStopped) => {
        this.#keys?.setStopped(isStopped);
        this.#changed();
      },
      warn: (detail) => this.#warn(detail),
    });
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

  /** `connecting`, `connected`, `reconnecting` or `held`: the path of the media. */
  get path() {
    if (this.isHeld) return 'held';
    if (this.#transport?.connection === 'connected' && !this.#joining) return 'connected';
    return this.#wasConnected ? 'reconnecting' : 'connecting';
  }

  /** Microphone, camera, screen: `{isOn, track}` of what this device sends. */
  local(source) {
    return this.#sending.state(source);
  }

  /** Everybody who can decrypt, by the list of the epoch in use: `{user, device, fingerprint, problem?, isVerified}`. */
  get devices() {
    return this.#keys?.devices ?? [];
  }

  /** Everybody who can decrypt or is in the call: see `rosterOf`. */
  get roster() {
    return rosterOf(this.#watch.people, this.devices);
  }

  /** Why nothing is sent, `{cause, user, device, needsPerson}`: see `stopOf`. */
  get stop() {
    return stopOf(this.#watch.stopped, this.#keys, Boolean(this.#joining));
  }

  /** Whether the others have said that they share this key: `{state, missing, confirmed}`, see `confirmationOf`. */
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

  get hasUnverified() {
    return Boolean(this.#keys?.hasUnverified);
  }

  get audioTracks() {
    return this.isHeld ? [] : (this.#transport?.audioTracks ?? []);
  }

  get speaking() {
    const speaking = this.#transport?.speaking ?? new Set();
    if (speaking.has(0) && this.local('microphone').isOn) speaking.add(this.participant);
    return speaking;
  }

  /** What there is to show: see `tiles.js`. */
  tiles() {
    return tilesOf(this, (participant, n) => this.#transport?.videoOf(participant, n));
  }

  get #transport() {
    return this.#seat?.transport;
  }

  get #keys() {
    return this.#seat?.keys;
  }

  // Joining

  /**
   * Joins by `kind`: `start`, `accept`, `join`, `rejoin` or `transfer`. `body` goes with it; `ring` is the ring that is accepted. Resolves
   * with the reply once the call is known.
   */
  async join(kind, body = {}, ring = {}) {
    const asked = Seat.join({ kind, id: this.id, body, connection: this.#connection });
    this.#asked = asked.catch(() => {});
    const seat = await asked;
    const { reply } = seat;
    if (this.hasEnded) {
      // Left before the answer came.
      seat.close();
      this.#connection.request(`calls/${seat.id}/leave`).catch(() => {});
      throw new RequestError({ code: 'call.ended', message: 'The call was left.' });
    }
    this.facts.take(reply.call);
    this.participant = seat.participant;
    this.#joinedOn = this.#connection.connectionNumber;
    this.#seat = seat;
    this.#listen(seat);
    await seat.begin(this.facts, ring);
    this.#keys.setStopped(Boolean(this.#watch.stopped));
    this.#sending.transport = seat.transport;
    this.#changed();
    return reply;
  }

  #listen(seat) {
    const on = (name, action) => seat.addEventListener(name, (event) => seat === this.#seat && !this.hasEnded && action(event.detail));
    on('change', () => this.#changed());
    on('connection', () => {
      this.#wasConnected ||= seat.transport.connection === 'connected';
      this.#changed();
    });
    on('speaking', () => this.dispatchEvent(new Event('speaking')));
    on('failures', (detail) => this.#keys?.canSend && this.dispatchEvent(new CustomEvent('failures', { detail })));
    // Without the server there is no joining: `connectionReady` sees to it.
    on('lost', () => void (this.#connection.status === 'ready' && this.rejoin()));
    on('keys', () => this.#keysChanged(seat));
    on('warning', (detail) => this.#warn(detail));
    on('refused-track', () => this.#warn({ problem: 'refused-track' }));
    on('broken', () => this.#rejoinForKeys());
    on('unlisted', () => this.#unlisted());
  }

  /** Once a call by itself: a server that breaks the history again and again has to convince the person. */
  #rejoinForKeys() {
    if (this.#hasRejoinedForKeys) return this.#changed();
    this.#hasRejoinedForKeys = true;
    return void this.rejoin();
  }

  /** A list without this join: where the call's state lacks it too, coming back makes another. */
  async #unlisted() {
    await this.#watch.during(this.#refresh());
    if (this.hasEnded || this.#joining) return;
    if (!this.facts.participant(this.participant)) this.#rejoinForKeys();
    else this.#warn({ problem: 'removed-from-list' });
  }

  #watched() {
    const { epoch, rotateMinutes } = { epoch: this.#keys?.epoch ?? 0, rotateMinutes: this.facts.rotateMinutes };
    const isConnected = this.#connection.status === 'ready' && !this.#joining && this.participant > 0;
    return { isConnected, participant: this.participant, epoch, list: this.#keys?.list ?? [], members: [...this.members.values()], rotateMinutes };
  }

  async #askForList() {
    this.#take(await this.request('state'));
    await this.#keys?.resync();
  }

  /** The person sends in spite of what stopped it. */
  sendAnyway() {
    this.#watch.sendAnyway();
  }

  /** Opens the microphone and, if wished, the camera; what can't be opened is a notice, not an end. */
  async capture({ camera = true } = {}) {
    this.wantsCamera = camera;
    await this.#sending.capture({ camera });
  }

  /** Sends what was captured, and receives. */
  async begin() {
    if (!this.hasEnded) await this.#sending.sendAll();
  }

  /** A failed offer is made again when the connection is back. */
  async #negotiate() {
    try {
      await this.#transport?.negotiate();
    } catch (error) {
      if (GONE.includes(error.code)) this.rejoin();
      else if (error.code !== 'connection-lost') this.#notice({ kind: 'media-failed', error: error.code ?? error.name });
    }
  }

  /** Comes back as a new participant, with what this device sent before. */
  rejoin() {
    this.#joining ??= this.#rejoin().finally(() => {
      this.#joining = undefined;
      this.#changed();
    });
    this.#changed();
    return this.#joining;
  }

  async #rejoin() {
    this.#seat?.close();
    this.#sending.forgetScreen();
    for (let refused = 0; refused < REJOINS && !this.hasEnded; ) {
      try {
        await this.join('rejoin');
        if (this.isHeld) await this.request('hold', { held: true });
        await this.#sending.sendAll();
        return this.#insist();
      } catch (error) {
        if (['call.not-found', 'call.ended', 'auth.forbidden'].includes(error.code)) break;
        if (error.code === 'call.answered-elsewhere') return this.#over({ reason: 'elsewhere' });
        if (CLOSED.includes(this.#connection.status)) break;
        if (!AWAY.includes(error.code)) refused += 1;
        await new Promise((resolve) => setTimeout(resolve, REJOIN_RETRY_MS));
      }
    }
    return this.#over({ reason: 'lost' });
  }

  // What people do

  setMicrophone(isOn) {
    return this.#sending.setMicrophone(isOn);
  }

  setCamera(isOn) {
    this.wantsCamera = isOn;
    return this.#sending.setCamera(isOn);
  }

  /** Shares a screen; with `replace` another's makes room. Throws `screen.busy` when there is one already. */
  shareScreen(options) {
    return this.#sending.shareScreen(options);
  }

  stopScreen() {
    return this.#sending.stopScreen();
  }

  /** Holds the call: nothing is sent or played, and its microphone and camera are free. Or resumes it. */
  async hold(isHeld) {
    if (this.isHeld === isHeld || this.hasEnded) return;
    this.isHeld = isHeld;
    this.#changed();
    // Silence first: what the server is told may take a while.
    if (isHeld) await this.#sending.suspend();
    try {
      await this.request('hold', { held: isHeld });
    } finally {
      if (!isHeld) await this.#sending.resume();
    }
  }

  /** Sends `{text}` or `{reaction}` to the others, or to the participants `to` alone. Throws where it can't be sealed now. */
  async send(message, { to } = {}) {
    const body = await this.#seat?.messages?.seal(message, to);
    if (!body) throw new RequestError({ code: 'message.not-sealed', message: 'The message could not be encrypted. Try again.' });
    await this.request('message', to ? { to, body } : { body });
    const detail = { participant: this.participant, isPrivate: Boolean(to), ...message };
    this.dispatchEvent(new CustomEvent('message', { detail }));
  }

  async leave() {
    const told = this.id && this.request('leave').catch(() => {}); // before what the page asks when the call is over
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

  // What the server says

  /** An event of this call. Resolves with false for an envelope that did not open, with `{later}` for one that waits for the person. */
  async handle(name, body) {
    const handler = this.#handlers[name];
    if (!handler || this.hasEnded) return true;
    // What is said of keys is judged by what the join's reply says.
    if (name.startsWith('keys.')) await this.#asked;
    const isTaken = await handler.call(this, body);
    this.#changed();
    return isTaken ?? true;
  }

  #handlers = {
    'call.state': (body) => this.#take(body),
    'call.member': (body) => this.#memberChanged(body),
    'call.ended': ({ reason, by }) => this.#over({ reason, by }),
    'track.added': (body) => this.#setTrack(body),
    'track.updated': (body) => this.#setTrack(body),
    'track.removed': (body) => this.#removeTrack(body),
    'keys.rotate': (body) => this.#keys?.rotate(body),
    'keys.envelope': (body) => this.#keys?.envelope(body),
    'keys.switch': (body) => this.#keys?.switchTo(body),
    'keys.request': (body) => void this.#keys?.requested(body),
    'keys.confirmed': (body) => this.#keys?.confirmed(body),
    'keys.waiting': (body) => this.#keys?.waiting(body),
    'media.slots': (body) => this.#transport?.showSlots(body),
    'media.need': (body) => {
      if (this.#transport?.want(body)) this.#negotiate();
    },
    quality: ({ level }) => {
      this.quality = level;
    },
    message: (body) => void this.#opened(body),
  };

  async #opened(body) {
    const message = await this.#seat?.messages?.open(body);
    if (message && !this.hasEnded) this.dispatchEvent(new CustomEvent('message', { detail: message }));
  }

  /** The connection to the server is back, or events were lost (`hasMissed`): asks for what may have been missed. */
  async connectionReady({ hasMissed = false } = {}) {
    if (this.hasEnded || this.#joining || !this.participant) return;
    await this.#watch.during(this.#refresh());
    if (this.hasEnded || this.#joining) return;
    await this.#watch.during(this.#resync());
    // What the slots show may have been in a lost event too: the answer to an offer says it.
    this.#transport?.resume({ isStale: hasMissed });
    this.#sending.tellAll();
  }

  async #resync() {
    await this.#keys?.resync().catch(() => {});
    await this.#keys?.inUse(this.facts.epoch);
  }

  async #refresh() {
    try {
      this.#take(await this.request('state'));
    } catch (error) {
      if (GONE.includes(error.code)) this.#over({ reason: 'lost' });
    }
  }

  #take(state) {
    this.facts.take(state);
    if (state.state === 'ended') return void this.#over({ reason: 'lost' });
    this.#keys?.seated(this.facts.seats);
    this.#keys?.inUse(state.epoch).catch(() => {});
    this.#rejoinWhenGone();
  }

  /** Protocol 4, rule 16: absent or not connected after the connection was lost means joining anew. */
  #rejoinWhenGone() {
    if (!this.participant || this.#joining || this.#joinedOn === this.#connection.connectionNumber) return;
    this.#joinedOn = this.#connection.connectionNumber;
    if (this.facts.elsewhere) this.#over({ reason: 'elsewhere' });
    else if (!this.facts.participant(this.participant)?.connected) this.rejoin();
    else this.#insist();
  }

  #memberChanged(body) {
    const news = this.facts.memberChanged(body);
    this.#keys?.seated(this.facts.seats);
    if (news) return this.#notice(news);
    return this.#ownMemberChanged(body);
  }

  /** This user's other device has taken the call, or this one was removed; a loss is another matter, and means coming back. */
  #ownMemberChanged({ cause }) {
    if (!this.participant || this.#joining) return undefined;
    if (this.facts.participant(this.participant)) return this.#insist();
    if (cause === 'disconnected' || cause === 'failed') return void this.rejoin();
    return this.#over({ reason: this.facts.elsewhere ? 'elsewhere' : 'removed' });
  }

  /** A call that comes back on hold makes the server hold the one that is talked in; the user did not ask for that. */
  #insist() {
    const isHeldThere = this.facts.participant(this.participant)?.held;
    if (isHeldThere && !this.isHeld && !this.hasEnded) this.request('hold', { held: false }).catch(() => {});
  }

  #setTrack(track) {
    const { isNew, news } = this.facts.trackSet(track);
    if (news) this.#notice(news);
    // Not waiting for `media.need` brings a new track onto the screen a second earlier.
    if (isNew && this.#transport?.wantFor(this.facts.tracksOfOthers)) this.#negotiate();
  }

  #removeTrack({ track, participant, cause }) {
    this.facts.trackRemoved({ track, participant });
    if (participant !== this.participant || track !== this.#transport?.trackID('screen')) return;
    if (cause === 'replaced') this.#notice({ kind: 'screen-replaced' });
    this.stopScreen();
  }

  async #keysChanged(seat) {
    const code = await seat.keys.code();
    if (seat !== this.#seat) return;
    this.code = code;
    this.#changed();
  }

  /** What was warned of while the call was joined, before anybody could listen. From now on warnings are events alone. */
  takeEarlyWarnings() {
    const early = this.#early ?? [];
    this.#early = undefined;
    return early;
  }

  #over(detail) {
    if (this.hasEnded) return;
    this.hasEnded = true;
    this.#seat?.close();
    this.#sending.close();
    this.#watch.close();
    this.dispatchEvent(new CustomEvent('ended', { detail }));
  }

  #warn(detail) {
    if (this.#early?.length < EARLY_WARNINGS) this.#early.push(detail);
    this.dispatchEvent(new CustomEvent('warning', { detail }));
  }

  #notice(detail) {
    this.dispatchEvent(new CustomEvent('notice', { detail }));
  }

  #changed() {
    if (!this.hasEnded) this.#watch?.look();
    this.dispatchEvent(new Event('change'));
  }
}
