// The path of media by the server: one participant's PeerConnection, with its sent tracks, receiving slots, offers, and recovery from a loss (protocol section 6).

import { Refusal, isWhole, listIn, partsOf, slotsIn, trackIn } from '../wire/index.js';
import { addCamera, heightOf } from './layers.js';
import { Loudness } from './loudness.js';

/** @typedef {import('./media-path.js').MediaPath} MediaPath */

const MAX_AUDIO_SLOTS = 8; // protocol section 6: the first offer, and audio permanently
const MAX_VIDEO_SLOTS = 9;
const MOST_VIDEO_SLOTS = 25; // whatever the server requests
const MAX_SECTIONS = 64;
const MAX_UNSUPPORTED = 4_096;
const DISCONNECTED_MS = 1_000; // browsers wait some seconds before they report it; after this ICE is restarted
const RESTART_RETRY_MS = 8_000;
const RESTARTS = 3; // without success: the path is lost, and the call is joined again
const SEEN_MS = 2_500; // two reports of the worker
const LASTING = 3; // reports in a row: people need not hear about a key that is late on a slow path
const LEVEL_MS = 400;
const SPEAKING_HOLD_MS = 900;
const LAYER_IDS = ['urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id', 'urn:ietf:params:rtp-hdrext:sdes:repaired-rtp-stream-id'];
const DESCRIPTOR = 'https://aomediacodec.github.io/av1-rtp-spec/#dependency-descriptor-rtp-header-extension';

const maxBitrates = { screen: 2_500_000, microphone: 40_000, 'screen-audio': 96_000 };
const kindOf = (source) => (source === 'camera' || source === 'screen' ? 'video' : 'audio');

/** VP8 before the other codecs that the worker can open, and no codec that it cannot. The call's policy decides among them. */
function preferCodecs(transceiver) {
  const codecs = RTCRtpReceiver.getCapabilities('video')?.codecs ?? [];
  const named = (name) => codecs.filter(({ mimeType }) => mimeType.toLowerCase() === `video/${name}`);
  transceiver.setCodecPreferences([...named('vp8'), ...named('vp9'), ...named('av1'), ...named('rtx')]);
}

/**
 * Requests dependency descriptors in a slot, by which the browser knows which frames it can do without. Chromium sends them, but does not offer to receive them
 * by itself (WebRTC Extensions, section 5.2).
 */
function takeDescriptors(transceiver) {
  const extensions = transceiver.getHeaderExtensionsToNegotiate?.();
  if (!extensions?.some(({ uri }) => uri === DESCRIPTOR)) return;
  const offered = extensions.map((extension) => (extension.uri === DESCRIPTOR ? { ...extension, direction: 'sendrecv' } : extension));
  transceiver.setHeaderExtensionsToNegotiate(offered);
}

/**
 * Offers the ids of layers. Chromium gives a new transceiver the directions that one before it has negotiated: a camera that is started after slots would have layers
 * without their ids, and Chromium refuses its own offer.
 */
function offerLayerIDs(transceiver) {
  const extensions = transceiver.getHeaderExtensionsToNegotiate?.();
  if (!extensions?.some(({ uri }) => LAYER_IDS.includes(uri))) return;
  const offered = extensions.map((extension) => (LAYER_IDS.includes(extension.uri) ? { ...extension, direction: 'sendrecv' } : extension));
  transceiver.setHeaderExtensionsToNegotiate(offered);
}

/** On a slow path a screen gets fewer pictures a second rather than fewer pixels, so that its text stays readable (mst-content-hint, section 5). */
function keepSharp(sender) {
  const parameters = sender.getParameters?.();
  if (parameters) sender.setParameters({ ...parameters, degradationPreference: 'maintain-resolution' }).catch(() => {}); // not in every browser
}

/** @implements {MediaPath} */
export class ServerPath extends EventTarget {
  #pc;
  #worker;
  #participant;
  #request;
  #senders = new Map();
  #slots = [];
  #shown = { rev: -1, tracks: new Map(), unsupported: new Set() }; // what each slot shows according to the server, by mid, and which tracks no slot can show
  #numbers = new Map(); // n -> the source that first had it
  #wanted = { audio: 0, video: 0 };
  #negotiation;
  #isStale = false;
  #hasOffered = false;
  #restartICE = false;
  #isRestarting = false;
  #restarts = 0;
  #disconnectTimer;
  #levelTimer;
  #loudness = new Loudness();
  #heard = new Map();
  #isClosed = false;
  #openedAt = performance.now();
  /** @type {number | undefined} */
  firstFrameMs;

  /** `request(body)` sends to `/app/calls/{id}/media`; `participant` is this device's number. */
  constructor({ ice, worker, participant, request }) {
    super();
    this.#participant = participant;
    this.#worker = worker;
    this.#request = request;
    this.#pc = new RTCPeerConnection({ bundlePolicy: 'max-bundle', iceServers: ice?.servers ?? [] });
    this.#pc.addEventListener('iceconnectionstatechange', () => this.#pathChanged());
    this.#pc.addEventListener('connectionstatechange', () => {
      if (this.#pc.connectionState === 'failed') this.#restart();
      this.dispatchEvent(new Event('connection'));
    });
    worker.addEventListener('message', ({ data }) => this.#fromWorker(data));
    this.#levelTimer = setInterval(() => this.#measureLevels(), LEVEL_MS);
  }

  get connection() {
    return this.#pc.connectionState;
  }

  get audioTracks() {
    return this.#slots.filter(({ kind }) => kind === 'audio').map(({ transceiver }) => transceiver.receiver.track);
  }

  videoOf(participant, n) {
    const slot = this.#slots.find(
      (other) => other.kind === 'video' && other.participant === participant && other.n === n && isRecent(other.seenAt),
    );
    return slot?.transceiver.receiver.track;
  }

  pictureOf(participant, n) {
    const [mid, told] = [...this.#shown.tracks].find(([, track]) => track.participant === participant && track.n === n) ?? [];
    if (this.videoOf(participant, n)) return told?.picture === 'lower' ? 'lower' : 'shown';
    if (this.#shown.unsupported.has(`${participant}.${n}`) || this.#hasNoCodec) return 'unsupported';
    if (told?.picture === 'paused') return 'paused';
    const slot = this.#slots.find(({ transceiver }) => transceiver.mid === mid);
    return slot && isRecent(slot.failedAt) ? 'awaited' : 'unsent';
  }

  /** The server has refused the slots for video: none of the call's codecs is offered for them (protocol section 6, "Offer and answer"). */
  get #hasNoCodec() {
    return this.#slots.some(({ kind, transceiver }) => kind === 'video' && transceiver.currentDirection === 'stopped');
  }

  get speaking() {
    const now = performance.now();
    return new Set([...this.#heard].filter(([, at]) => now - at < SPEAKING_HOLD_MS).map(([participant]) => participant));
  }

  async statistics() {
    return [...(await this.#pc.getStats()).values()];
  }

  trackID(source) {
    return this.#senders.get(source)?.track;
  }

  async send(source, track, { replace = false } = {}) {
    if (this.#isClosed) return; // left while the browser opened the device
    const sender = this.#senders.get(source);
    if (!sender) {
      this.#addSender(source, track, replace);
      return;
    }
    sender.isActive = true;
    sender.replaces ||= replace;
    sender.transceiver.direction = 'sendonly';
    await sender.transceiver.sender.replaceTrack(track);
    if (track) sender.layers?.fit(heightOf(track));
    this.#worker.postMessage({ type: 'key-frame', name: source });
  }

  async pause(source) {
    await this.#senders.get(source)?.transceiver.sender.replaceTrack(null);
  }

  async remove(source) {
    const sender = this.#senders.get(source);
    if (!sender) return;
    sender.isActive = false;
    sender.replaces = false;
    sender.transceiver.direction = 'inactive';
    await sender.transceiver.sender.replaceTrack(null);
  }

  isSending(source) {
    return this.#senders.get(source)?.isActive ?? false;
  }

  want({ audio, video }) {
    if (!isWhole(audio, 0, Infinity) || !isWhole(video, 0, Infinity)) return false;
    this.#wanted.audio = Math.max(this.#wanted.audio, Math.min(audio, MAX_AUDIO_SLOTS));
    this.#wanted.video = Math.max(this.#wanted.video, Math.min(video, MOST_VIDEO_SLOTS));
    return this.#hasOffered && (this.#missing('audio') > 0 || this.#missing('video') > 0);
  }

  /** A slot for each track as far as the server need not request them, and one for a newcomer's first word, which arrives before an offer could be answered. */
  wantFor(tracks) {
    const count = (kind) => tracks.filter((track) => track.kind === kind).length;
    return this.want({ audio: count('audio') + 1, video: Math.min(count('video'), MAX_VIDEO_SLOTS) });
  }

  showSlots({ rev, receive, unsupported }) {
    if (!isWhole(rev, this.#shown.rev + 1, Number.MAX_SAFE_INTEGER)) return;
    this.#shown = { rev, tracks: slotsIn(receive, MAX_SECTIONS), unsupported: new Set(listIn(unsupported ?? [], MAX_UNSUPPORTED, 'unsupported tracks')) };
    this.#tellSlots();
  }

  wantLayers({ track, layers }) {
    const sender = [...this.#senders.values()].find((other) => other.layers && other.isActive && other.track !== undefined && other.track === track);
    if (!sender) throw new Refusal('layers of a track that is not sent in layers');
    sender.layers.want(layers);
  }

  /** The worker accepts a frame only for the track that its slot shows. */
  #tellSlots() {
    const shown = this.#slots.map(({ name, transceiver }) => ({ name, ...this.#shown.tracks.get(transceiver.mid) }));
    const slots = shown.filter(({ participant }) => participant !== undefined && participant !== this.#participant);
    this.#worker.postMessage({ type: 'slots', slots });
  }

  /** Changes made meanwhile go into one more offer. */
  negotiate() {
    this.#isStale = true;
    this.#negotiation ??= this.#negotiateWhileStale().finally(() => {
      this.#negotiation = undefined;
    });
    return this.#negotiation;
  }

  close() {
    this.#isClosed = true;
    clearInterval(this.#levelTimer);
    clearTimeout(this.#disconnectTimer);
    this.#pc.close();
  }

  #addSender(source, track, replaces) {
    const kind = kindOf(source);
    const add = (sendEncodings) => this.#pc.addTransceiver(track ?? kind, { direction: 'sendonly', sendEncodings });
    const addWhole = () => ({ transceiver: add([{ maxBitrate: maxBitrates[source] }]), layers: undefined });
    const { transceiver, layers } = source === 'camera' ? addCamera(add, heightOf(track)) : addWhole();
    const options = { operation: 'seal', name: source, isVideo: kind === 'video', rids: layers?.rids ?? [] };
    transceiver.sender.transform = new RTCRtpScriptTransform(this.#worker, options);
    if (kind === 'video') preferCodecs(transceiver);
    if (layers?.rids.length) offerLayerIDs(transceiver);
    if (source === 'screen') keepSharp(transceiver.sender);
    this.#senders.set(source, { transceiver, layers, isActive: true, replaces, track: undefined });
  }

  #addSlot(kind) {
    const transceiver = this.#pc.addTransceiver(kind, { direction: 'recvonly' });
    const name = `slot-${this.#slots.length}`;
    const options = { operation: 'open', name, isVideo: kind === 'video' };
    transceiver.receiver.transform = new RTCRtpScriptTransform(this.#worker, options);
    if (kind === 'video') {
      preferCodecs(transceiver);
      takeDescriptors(transceiver);
    }
    this.#slots.push({ name, kind, transceiver, opened: 0, failed: 0, failing: 0, earlier: 0, seenAt: -Infinity, failedAt: -Infinity });
  }

  #missing(kind) {
    return this.#wanted[kind] - this.#slots.filter((slot) => slot.kind === kind).length;
  }

  #fillSlots() {
    // An offer needs a section: a participant that sends nothing and sees nobody still offers receive-only sections.
    if (this.#senders.size === 0) this.want({ audio: 1, video: 1 });
    for (const kind of ['audio', 'video']) {
      while (this.#missing(kind) > 0) this.#addSlot(kind);
    }
    this.#hasOffered = true;
    this.dispatchEvent(new Event('change'));
  }

  async #negotiateWhileStale() {
    while (this.#isStale && !this.#isClosed) {
      this.#isStale = false;
      this.#fillSlots();
      const iceRestart = this.#restartICE;
      this.#restartICE = false;
      await this.#pc.setLocalDescription(await this.#pc.createOffer({ iceRestart }));
      try {
        await this.#exchange();
      } catch (error) {
        this.#isStale = true; // for `resume`
        this.#restartICE ||= iceRestart;
        if (!this.#isClosed && this.#pc.signalingState === 'have-local-offer') {
          await this.#pc.setLocalDescription({ type: 'rollback' });
        }
        throw error;
      }
    }
  }

  async #exchange() {
    const active = [...this.#senders].filter(([, sender]) => sender.isActive);
    const tracks = active.map(([source, { transceiver, replaces }]) => ({
      mid: transceiver.mid,
      source,
      ...(replaces ? { replace: true } : {}),
    }));
    const answer = await this.#request({ sdp: this.#pc.localDescription?.sdp, tracks });
    if (this.#isClosed) return;
    // Before the first packet can leave, because a frame without its track's number is not sent.
    const given = listIn(answer.tracks, MAX_SECTIONS, 'tracks');
    for (const [source, sender] of this.#senders) {
      const taken = sender.isActive ? given.find((track) => track?.mid === sender.transceiver.mid) : undefined;
      const n = taken ? this.#ownNumber(source, taken.track) : 0;
      sender.track = n > 0 ? taken.track : undefined;
      this.#worker.postMessage({ type: 'track', name: source, n });
    }
    this.#showSlotsOf(answer);
    await this.#pc.setRemoteDescription({ type: 'answer', sdp: answer.sdp });
    for (const { layers } of this.#senders.values()) layers?.settle();
    this.dispatchEvent(new Event('change'));
  }

  /** The n of a track that the server assigns to `source`; 0, which sends nothing, if it is not this device's, or belonged to another source. */
  #ownNumber(source, track) {
    try {
      const { participant, n } = trackIn(track);
      if (participant !== this.#participant || (this.#numbers.get(n) ?? source) !== source) throw new Refusal('a track of another');
      this.#numbers.set(n, source);
      return n;
    } catch {
      this.dispatchEvent(new Event('refused-track'));
      return 0;
    }
  }

  #showSlotsOf(answer) {
    try {
      this.showSlots(answer);
    } catch (error) {
      console.warn(`Conclave: refused ${error.message}`);
    }
    this.#tellSlots(); // of mids that are new
  }

  #pathChanged() {
    const state = this.#pc.iceConnectionState;
    clearTimeout(this.#disconnectTimer);
    if (state === 'connected' || state === 'completed') this.#restarts = 0;
    if (state === 'disconnected') this.#disconnectTimer = setTimeout(() => this.#restart(), DISCONNECTED_MS);
    if (state === 'failed') this.#restart();
    this.dispatchEvent(new Event('connection'));
  }

  #restart() {
    if (this.#isClosed || this.#isRestarting) return;
    if (this.#restarts >= RESTARTS) {
      this.dispatchEvent(new Event('lost'));
      return;
    }
    this.#restarts += 1;
    this.#restartICE = true;
    this.#isRestarting = true;
    const ended = () => {
      this.#isRestarting = false;
      clearTimeout(this.#disconnectTimer);
      if (!this.#isClosed) this.#disconnectTimer = setTimeout(() => this.#isDown && this.#restart(), RESTART_RETRY_MS);
    };
    this.negotiate().then(ended, ended);
  }

  /** ICE is restarted before the browser misses the old path. */
  networkChanged() {
    if (this.#pc.iceConnectionState === 'new') return;
    this.#restarts = 0;
    this.#restart();
  }

  get #isDown() {
    return ['disconnected', 'failed'].includes(this.#pc.iceConnectionState);
  }

  resume({ isStale = false } = {}) {
    this.#isStale ||= isStale;
    // The event that requests a layer again may be among the lost ones, and is sent only on change.
    if (isStale) for (const { layers } of this.#senders.values()) layers?.wantAll();
    if (this.#isDown) {
      this.#restarts = 0;
      this.#restart();
    } else if (this.#isStale || this.#restartICE || this.#hasUnanswered) this.negotiate().catch(() => {});
  }

  get #hasUnanswered() {
    return [...this.#senders.values()].some(({ isActive, track }) => isActive !== Boolean(track));
  }

  #fromWorker(message) {
    const now = performance.now();
    if (message.type === 'opened') {
      this.firstFrameMs ??= now - this.#openedAt;
      const slot = this.#slots.find(({ name }) => name === message.name);
      if (slot) Object.assign(slot, partsOf(message.kid), { seenAt: now });
      this.dispatchEvent(new Event('change'));
    } else if (message.type === 'report') {
      let failures = 0;
      for (const { name, opened, failed, earlier = 0 } of message.slots) {
        const slot = this.#slots.find((other) => other.name === name);
        if (!slot) continue;
        if (opened > slot.opened) slot.seenAt = now;
        if (failed > slot.failed || earlier > slot.earlier) slot.failedAt = now;
        slot.failing = failed > slot.failed ? slot.failing + 1 : 0;
        if (slot.failing >= LASTING) failures += failed - slot.failed;
        Object.assign(slot, { opened, failed, earlier });
      }
      if (failures > 0) this.dispatchEvent(new CustomEvent('failures', { detail: { count: failures } }));
      this.dispatchEvent(new Event('change'));
    }
  }

  /** Loudness after decryption, so that only the speaker can fake it. */
  async #measureLevels() {
    if (this.#isClosed || this.#pc.connectionState !== 'connected') return;
    const now = performance.now();
    for (const { type, trackIdentifier } of this.#loudness.loud(await this.statistics())) {
      if (type === 'media-source') this.#heard.set(0, now);
      if (type !== 'inbound-rtp') continue;
      const slot = this.#slots.find(({ transceiver }) => transceiver.receiver.track.id === trackIdentifier);
      if (slot?.participant && isRecent(slot.seenAt)) this.#heard.set(slot.participant, now);
    }
    this.dispatchEvent(new Event('speaking'));
  }
}

const isRecent = (time) => performance.now() - time < SEEN_MS;
