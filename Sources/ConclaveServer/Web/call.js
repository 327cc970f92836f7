// One call on this device: its state as the server tells it, what this device sends, and coming back after a loss.

import { KeyAgreement } from './keys.js';
import { LocalMedia } from './local.js';
import { Media, startWorker } from './media.js';
import { Members } from './members.js';
import { RequestError } from './stomp.js';
import { tilesOf } from './tiles.js';

const FAILURES_SHOWN_EVERY_MS = 10_000;
const REJOIN_RETRY_MS = 2_000;
const REJOINS = 4; // in a row, before the call is given up

/** Codes that say that the call, or this part in it, is over. */
const GONE = ['call.not-found', 'call.ended', 'call.not-joined'];

/**
 * Events: `change`; `speaking`; `notice` with `{kind, …}` for people; `warning` about keys with `{problem, user, device, fingerprint}`;
 * `ended` with `{reason, by}`: the call is over here, whatever it is for others.
 *
 * `connection` is the part of `Conclave` that a call needs: `request(path, body)`, `status`, `identity`, `directory`,
 * `connectionNumber`.
 */
export class Call extends EventTarget {
  state = 'joining';
  members = new Members([]);
  participant = 0;
  epoch = 0;
  media = 'video';
  initiator = undefined;
  startedAt = undefined;
  hasEnded = false;
  code = '';
  #connection;
  #keys;
  #transport;
  #local = new LocalMedia();
  #wasConnected = false;
  #joinedOn = 0;
  #joining;
  #failuresShownAt = -Infinity;

  constructor({ id, connection }) {
    super();
    this.id = id;
    this.#connection = connection;
  }

  get user() {
    return this.#connection.identity.user;
  }

  get isInitiator() {
    return this.initiator === this.user;
  }

  get mayInvite() {
    return this.policy?.invite !== 'initiator' || this.isInitiator;
  }

  /** `connecting`, `connected` or `reconnecting`: the path of the media. */
  get path() {
    if (!this.#transport || this.#joining) return this.#wasConnected ? 'reconnecting' : 'connecting';
    const { connection } = this.#transport;
    if (connection === 'connected') return 'connected';
    return this.#wasConnected ? 'reconnecting' : 'connecting';
  }

  /** Microphone, camera, screen: `{isOn, track}` of what this device sends. */
  local(source) {
    return this.#local.state(source);
  }

  /** Everybody who can decrypt, by the list of the epoch in use. */
  get devices() {
    return this.#keys?.list ?? [];
  }

  get audioTracks() {
    return this.#transport?.audioTracks ?? [];
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

  // Joining

  /** Joins by `kind`: `start`, `accept`, `join` or `rejoin`. `body` goes with it. Resolves with the reply once the call is known. */
  async join(kind, body = {}) {
    const { identity, directory } = this.#connection;
    const [join, worker] = await Promise.all([identity.makeJoin(), startWorker()]);
    const path = kind === 'start' ? 'calls/start' : `calls/${this.id}/${kind}`;
    let reply;
    try {
      reply = await this.#askUntilAnswered(path, { ...body, ...join.wire });
    } catch (error) {
      worker.terminate();
      throw error;
    }
    if (this.hasEnded) {
      // Left before the answer came.
      worker.terminate();
      this.#connection.request(`calls/${reply.call.id}/leave`).catch(() => {});
      throw new RequestError({ code: 'call.ended', message: 'The call was left.' });
    }
    this.id = reply.call.id;
    this.#take(reply.call);
    this.participant = reply.participant;
    this.#joinedOn = this.#connection.connectionNumber;
    const request = (rest, content) => this.#connection.request(`calls/${this.id}/${rest}`, content);
    const keys = new KeyAgreement({
      call: this.id,
      identity,
      directory,
      join,
      request,
      post: (message) => worker.postMessage(message),
    });
    keys.setParticipant(this.participant);
    keys.addEventListener('change', () => this.#keysChanged(keys));
    keys.addEventListener('warning', ({ detail }) => this.dispatchEvent(new CustomEvent('warning', { detail })));
    this.#keys = keys;
    if (kind === 'start') await keys.begin();
    this.#transport = this.#openTransport({ ice: reply.ice, worker, request: (content) => request('media', content) });
    this.#transport.wantFor(this.members.tracksOfOthers(this.user));
    this.#changed();
    return reply;
  }

  /** The same join asked again does nothing twice (protocol 4, rule 14), so a lost answer is asked for again. */
  async #askUntilAnswered(path, body) {
    for (let attempt = 0; ; attempt += 1) {
      try {
        return await this.#connection.request(path, body);
      } catch (error) {
        if (error.code !== 'connection-lost' || attempt >= 3) throw error;
      }
    }
  }

  #openTransport(options) {
    const transport = new Media(options);
    const passOn = (name) => transport.addEventListener(name, () => this.#transport === transport && this.#changed());
    passOn('change');
    passOn('connection');
    transport.addEventListener('connection', () => {
      this.#wasConnected ||= transport.connection === 'connected';
    });
    transport.addEventListener('speaking', () => this.dispatchEvent(new Event('speaking')));
    transport.addEventListener('failures', ({ detail }) => this.#framesFailed(detail.count));
    // Without the server there is no joining: `connectionReady` sees to it.
    transport.addEventListener('lost', () => {
      if (this.#transport === transport && this.#connection.status === 'ready') this.rejoin();
    });
    return transport;
  }

  /** Opens the microphone and, if wished, the camera; what can't be opened is a notice, not an end. */
  async capture({ camera = true } = {}) {
    await Promise.all([this.#open('microphone'), camera && this.#open('camera')]);
  }

  /** Sends what was captured, and receives. */
  async begin() {
    if (!this.hasEnded) await this.#sendAll();
  }

  async #open(source) {
    try {
      await this.#local.open(source);
    } catch (error) {
      this.#notice({ kind: 'no-device', source, error: error.name });
    }
    if (this.hasEnded) this.#local.closeAll(); // while the browser asked for permission
    this.#changed();
  }

  async #sendAll() {
    for (const [source, { track }] of this.#local.all) await this.#transport.send(source, track ?? null);
    await this.#negotiate();
    for (const [source, { isOn }] of this.#local.all) if (!isOn) this.#tellMuted(source, true);
  }

  /** A failed offer is not the end of the call: it is made again when the connection is back. */
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
    this.#keys?.close();
    this.#transport?.close();
    this.#local.closeScreen();
    for (let attempt = 0; attempt < REJOINS && !this.hasEnded; attempt += 1) {
      try {
        await this.join('rejoin');
        await this.#sendAll();
        return undefined;
      } catch (error) {
        if (['call.not-found', 'call.ended', 'auth.forbidden'].includes(error.code)) break;
        if (error.code === 'call.answered-elsewhere') return this.#over({ reason: 'elsewhere' });
        await new Promise((resolve) => setTimeout(resolve, REJOIN_RETRY_MS));
      }
    }
    return this.#over({ reason: 'lost' });
  }

  // What people do

  async setMicrophone(isOn) {
    const { track } = this.local('microphone');
    if (!track) return isOn ? this.#add('microphone') : undefined;
    this.#local.mute('microphone', !isOn);
    this.#changed();
    return this.#tellMuted('microphone', !isOn);
  }

  /** Off means that the camera's light goes out too. */
  async setCamera(isOn) {
    if (isOn) return this.#add('camera');
    this.#local.turnOff('camera');
    this.#changed();
    await this.#transport?.pause('camera');
    return this.#tellMuted('camera', true);
  }

  async #add(source) {
    await this.#open(source);
    const { track } = this.local(source);
    if (!track || !this.#transport) return;
    const isNew = !this.#transport.trackID(source);
    await this.#transport.send(source, track);
    if (isNew) await this.#negotiate();
    else await this.#tellMuted(source, false);
  }

  async #tellMuted(source, muted) {
    const track = this.#transport?.trackID(source);
    if (!track) return;
    try {
      await this.#connection.request(`calls/${this.id}/tracks/${track}`, { muted });
    } catch {
      // Told again by `connectionReady` when the connection is back.
    }
  }

  /** Shares a screen; with `replace` another's makes room. Throws `screen.busy` when there is one already. */
  async shareScreen({ replace = false } = {}) {
    await this.#local.openScreen(() => this.stopScreen());
    if (this.hasEnded) {
      this.#local.closeAll();
      return;
    }
    for (const source of ['screen', 'screen-audio']) {
      const { track } = this.local(source);
      if (track) await this.#transport.send(source, track);
    }
    if (replace) this.#transport.replaceOthers('screen');
    this.#changed();
    try {
      await this.#transport.negotiate();
    } catch (error) {
      await this.stopScreen();
      throw error;
    }
  }

  async stopScreen() {
    if (!this.local('screen').isOn) return;
    this.#local.closeScreen();
    this.#changed();
    await this.#transport?.remove('screen');
    await this.#transport?.remove('screen-audio');
    await this.#negotiate();
  }

  /** Rings `callees`; brings what became of each. */
  async invite(callees) {
    const { results } = await this.#connection.request(`calls/${this.id}/invite`, { callees });
    return results;
  }

  cancel(user) {
    return this.#connection.request(`calls/${this.id}/cancel`, { callees: [user] });
  }

  async leave() {
    this.#over({ reason: 'left', by: this.user });
    if (this.id) await this.#connection.request(`calls/${this.id}/leave`).catch(() => {});
  }

  async endForAll() {
    await this.#connection.request(`calls/${this.id}/end`);
    this.#over({ reason: 'ended-by-initiator', by: this.user });
  }

  /** The join did not succeed: the microphone and the camera are closed again. */
  giveUp() {
    this.#over({ reason: 'failed' });
  }

  trust(user, device) {
    return this.#keys.trust(user, device);
  }

  // What the server says

  /** An event of this call. Resolves with false for an envelope that did not open. */
  async handle(name, body) {
    const handler = this.#handlers[name];
    if (!handler || this.hasEnded) return true;
    const isTaken = await handler.call(this, body);
    this.#changed();
    return isTaken !== false;
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
    'keys.request': (body) => this.#keys?.requested(body),
    'media.need': (body) => {
      if (this.#transport?.want(body)) this.#negotiate();
    },
  };

  /** The connection to the server is back, or events were lost: asks for what may have been missed. */
  async connectionReady() {
    if (this.hasEnded || this.#joining || !this.participant) return;
    await this.#refresh();
    if (this.hasEnded || this.#joining) return;
    await this.#keys?.resync().catch(() => {});
    this.#transport?.resume();
    for (const [source, { isOn }] of this.#local.all) this.#tellMuted(source, !isOn);
  }

  async #refresh() {
    try {
      this.#take(await this.#connection.request(`calls/${this.id}/state`));
    } catch (error) {
      if (GONE.includes(error.code)) this.#over({ reason: 'lost' });
    }
  }

  #take(state) {
    const { id, state: phase, media, initiator, startedAt, epoch, policy, members } = state;
    Object.assign(this, { id, state: phase, media, initiator, startedAt, epoch, policy });
    this.members = new Members(members);
    if (phase === 'ended') return this.#over({ reason: 'lost' });
    this.#rejoinWhenGone();
    return undefined;
  }

  /** Protocol 4, rule 16: absent or not connected after the connection was lost means joining anew. */
  #rejoinWhenGone() {
    if (!this.participant || this.#joining || this.#joinedOn === this.#connection.connectionNumber) return;
    this.#joinedOn = this.#connection.connectionNumber;
    const own = this.members.get(this.user)?.participants.find((other) => other.participant === this.participant);
    if (!own?.connected) this.rejoin();
  }

  #memberChanged({ cause, at, call, ...member }) {
    this.members.set(member.user, member);
    if (member.user !== this.user) this.#notice({ kind: 'member', cause, member });
    if (cause === 'accepted' || cause === 'joined') this.state = 'active';
  }

  #setTrack(track) {
    const { member, isNew } = this.members.setTrack(track);
    const isNews = isNew && track.source === 'screen' && track.participant !== this.participant;
    if (isNews) this.#notice({ kind: 'screen', member });
    // Not waiting for `media.need` brings a new track onto the screen a second earlier.
    if (isNew && this.#transport?.wantFor(this.members.tracksOfOthers(this.user))) this.#negotiate();
  }

  #removeTrack({ track, participant, cause }) {
    this.members.removeTrack({ track, participant });
    if (participant !== this.participant || track !== this.#transport?.trackID('screen')) return;
    if (cause === 'replaced') this.#notice({ kind: 'screen-replaced' });
    this.stopScreen();
  }

  async #keysChanged(keys) {
    const code = await keys.code();
    if (keys !== this.#keys) return;
    this.code = code;
    this.#changed();
  }

  #framesFailed(count) {
    const now = performance.now();
    if (now - this.#failuresShownAt < FAILURES_SHOWN_EVERY_MS || !this.#keys?.canSend) return;
    this.#failuresShownAt = now;
    this.dispatchEvent(new CustomEvent('failures', { detail: { count } }));
  }

  #over(detail) {
    if (this.hasEnded) return;
    this.hasEnded = true;
    this.state = 'ended';
    this.#keys?.close();
    this.#transport?.close();
    this.#local.closeAll();
    this.dispatchEvent(new CustomEvent('ended', { detail }));
  }

  #notice(detail) {
    this.dispatchEvent(new CustomEvent('notice', { detail }));
  }

  #changed() {
    this.dispatchEvent(new Event('change'));
  }
}
