// The path of media by the server: one participant's PeerConnection, with its sent tracks, offers, and recovery from a loss (protocol section 6). Its
// receiving slots are in `slots.js`.

import { Refusal, listIn, trackIn } from '../wire/index.js';
import { addCamera, formatOf } from './layers.js';
import { Slots } from './slots.js';
import { keepSharp, offerLayerIDs, preferCodecs } from './transceivers.js';

/** @typedef {import('./media-path.js').MediaPath} MediaPath */

const MAX_SECTIONS = 64;
const DISCONNECTED_MS = 1_000; // browsers wait some seconds before they report it; after this ICE is restarted
const RESTART_RETRY_MS = 8_000;
const RESTARTS = 3; // without success: the path is lost, and the call is joined again
const LEVEL_MS = 400;

const maxBitrates = { screen: 2_500_000, microphone: 40_000, 'screen-audio': 96_000 };
const kindOf = (source) => (source === 'camera' || source === 'screen' ? 'video' : 'audio');

/** @implements {MediaPath} */
export class ServerPath extends EventTarget {
  #pc;
  #worker;
  #participant;
  #request;
  #senders = new Map();
  #slots;
  #numbers = new Map(); // n -> the source that first had it
  #negotiation;
  #isStale = false;
  #hasOffered = false;
  #restartICE = false;
  #isRestarting = false;
  #restarts = 0;
  #disconnectTimer;
  #levelTimer;
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
    this.#slots = new Slots({ pc: this.#pc, worker, participant });
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
    return this.#slots.audioTracks;
  }

  videoOf(participant, n) {
    return this.#slots.videoOf(participant, n);
  }

  pictureOf(participant, n) {
    return this.#slots.pictureOf(participant, n);
  }

  get speaking() {
    return this.#slots.speaking;
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
    if (track) sender.layers?.fit(formatOf(track));
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

  want(counts) {
    return this.#slots.want(counts) && this.#hasOffered;
  }

  wantFor(tracks) {
    return this.#slots.wantFor(tracks) && this.#hasOffered;
  }

  showSlots(map) {
    this.#slots.show(map);
  }

  wantLayers({ track, layers }) {
    const sender = [...this.#senders.values()].find((other) => other.layers && other.isActive && other.track !== undefined && other.track === track);
    if (!sender) throw new Refusal('layers of a track that is not sent in layers');
    sender.layers.want(layers);
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
    const { transceiver, layers } = source === 'camera' ? addCamera(add, formatOf(track)) : addWhole();
    const options = { operation: 'seal', name: source, isVideo: kind === 'video', rids: layers?.rids ?? [] };
    transceiver.sender.transform = new RTCRtpScriptTransform(this.#worker, options);
    if (kind === 'video') preferCodecs(transceiver);
    if (layers?.rids.length) offerLayerIDs(transceiver);
    if (source === 'screen') keepSharp(transceiver.sender);
    this.#senders.set(source, { transceiver, layers, isActive: true, replaces, track: undefined });
  }

  #fillSlots() {
    // An offer needs a section: a participant that sends nothing and sees nobody still offers receive-only sections.
    if (this.#senders.size === 0) this.want({ audio: 1, video: 1 });
    this.#slots.fill();
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
    this.#slots.tell(); // of mids that are new
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
    if (message.type === 'opened') {
      this.firstFrameMs ??= performance.now() - this.#openedAt;
      this.#slots.opened(message);
      this.dispatchEvent(new Event('change'));
    } else if (message.type === 'report') {
      const failures = this.#slots.reported(message);
      if (failures > 0) this.dispatchEvent(new CustomEvent('failures', { detail: { count: failures } }));
      this.dispatchEvent(new Event('change'));
    }
  }

  async #measureLevels() {
    if (this.#isClosed || this.#pc.connectionState !== 'connected') return;
    this.#slots.measure(await this.statistics());
    this.dispatchEvent(new Event('speaking'));
  }
}
