// One device of the web client under Node: its real modules, with fakes for the browser's parts (PeerConnection, worker, microphone).

import { Sender } from '../fake-browser.mjs';
import { load } from '../web.mjs';

const { toBase64, utf8 } = await load('wire/bytes.js');
const { eventFrom, replyFrom } = await load('connection/border.js');
const { Calls } = await load('call/calls.js');
const { Capture } = await load('capture.js');
const { Directory } = await load('trust/directory.js');
const { FrameWorker } = await load('frames/frame-worker.js');
const { Identity } = await load('trust/identity.js');
const { Inbox } = await load('connection/inbox.js');
const { RingMemory } = await load('call/ring-memory.js');
const { Rings } = await load('call/rings.js');
const { LastingLinks } = await load('devices/lasting-links.js');
const { MemoryStore } = await load('devices/store.js');

/** Runs the worker's code, alternating with the page's. */
class Worker extends EventTarget {
  static all = [];
  posted = [];
  shown = []; // {at, slots}: what the slots show, and since when

  constructor() {
    super();
    Worker.all.push(this);
    const post = (data) => queueMicrotask(() => this.dispatchEvent(Object.assign(new Event('message'), { data })));
    this.frames = new FrameWorker(post);
    post({ type: 'ready' });
  }

  postMessage(message) {
    if (this.isTerminated) return;
    this.posted.push(message);
    if (message.type === 'slots') this.shown.push({ at: performance.now(), slots: message.slots });
    if (message.type === 'self') this.owner = toBase64(message.fingerprint);
    this.frames.take(message);
  }

  terminate() {
    this.isTerminated = true;
  }
}

class Transform {
  constructor(worker, options) {
    this.worker = worker;
    this.end = worker.frames.attach({ options, generateKeyFrame: async () => {}, sendKeyFrameRequest: async () => {} });
  }
}

class PeerConnection extends EventTarget {
  static all = [];
  connectionState = 'connected';
  iceConnectionState = 'connected';
  signalingState = 'stable';
  transceivers = [];

  constructor() {
    super();
    PeerConnection.all.push(this);
  }

  #worker;

  get worker() {
    const transforms = () => this.transceivers.map(({ sender, receiver }) => sender.transform ?? receiver.transform);
    this.#worker ??= transforms().find(Boolean)?.worker;
    return this.#worker;
  }

  addTransceiver(track, { direction, sendEncodings }) {
    const kind = track?.kind ?? track;
    const transceiver = { mid: `${this.transceivers.length}`, kind, direction, receiver: { track: { kind } }, setCodecPreferences() {} };
    transceiver.sender = new Sender(track, sendEncodings);
    this.transceivers.push(transceiver);
    return transceiver;
  }

  async createOffer() {
    return { type: 'offer' };
  }

  async setLocalDescription() {
    this.localDescription = { sdp: JSON.stringify(this.transceivers.map(({ mid, kind, direction }) => ({ mid, kind, direction }))) };
  }

  async setRemoteDescription() {}

  async getStats() {
    return new Map();
  }

  close() {}
}

const microphone = () => ({ kind: 'audio', enabled: true, addEventListener() {}, stop() {} });

/** Installs the browser's parts. */
export function browser() {
  Worker.all = [];
  PeerConnection.all = [];
  Object.assign(globalThis, { RTCPeerConnection: PeerConnection, Worker, RTCRtpScriptTransform: Transform });
  globalThis.RTCRtpReceiver = { getCapabilities: () => ({ codecs: [] }) };
  const getUserMedia = async () => ({ getTracks: () => [microphone()] });
  Object.defineProperty(globalThis, 'navigator', { value: { mediaDevices: { getUserMedia } }, configurable: true });
}

const identities = new Map();

/** The key pairs of a device, made once: successive worlds may share them. */
async function identityOf(user, device, generation) {
  const name = `${user}/${device}/${generation}`;
  if (!identities.has(name)) identities.set(name, await Identity.open(new MemoryStore(), user, device));
  return identities.get(name);
}

export class Client {
  warnings = [];
  heard = []; // {slot, said, from}: opened plaintexts, and the sender that the page names
  messages = [];
  rung = [];
  ended = [];
  waited = []; // what is known of a lasting link at which this client waited
  awaited = []; // own lasting links at which somebody waits
  isConnected = true;
  status = 'ready';
  connectionNumber = 1;
  capture = new Capture();
  #queue = [];
  #isDelivering = false;
  #seq = 1;
  #said = 0;
  #fingerprint;

  static async make(world, user, { device = 'd', generation = 0, store = new MemoryStore() } = {}) {
    const client = new Client();
    Object.assign(client, { world, server: world.server, user, device, name: `${user}/${device}`, store });
    client.identity = await identityOf(user, device, generation);
    const fetchDevices = (users) => client.request('devices/list', { users });
    const own = { device, fingerprint: toBase64(client.identity.fingerprint), keys: client.identity.keys };
    client.directory = new Directory({ store, owner: user, own, fetchDevices });
    client.calls = new Calls(client);
    client.lastingLinks = new LastingLinks({ identity: client.identity, store, request: (path, body) => client.request(`links/${path}`, body) });
    client.lastingLinks.addEventListener('waiting', ({ detail }) => client.awaited.push(detail));
    client.rings = new RingMemory(store, client.identity);
    client.ringing = new Rings({ rang: (ring) => client.rung.push(ring), ended: () => {} });
    client.inbox = new Inbox({ handle: (event) => client.#handle(event), missed: () => client.calls.connectionReady({ hasMissed: true }) });
    world.server.register(client);
    return client;
  }

  // The part of `Conclave` that `Call` needs

  hurry() {}

  async request(path, body) {
    return replyFrom(path, await this.server.request(this, path, body));
  }

  callerOf(call) {
    return this.ringing.callerOf(call);
  }

  asDevice() {
    const { user, device, keys, fingerprint } = this.identity;
    return { user, device, keys, fingerprint: toBase64(fingerprint), vouches: [] };
  }

  get fingerprint() {
    this.#fingerprint ??= toBase64(this.identity.fingerprint);
    return this.#fingerprint;
  }

  get call() {
    return this.calls.current;
  }

  get problems() {
    return this.warnings.map(({ problem }) => problem);
  }

  /** Warnings that should not occur in an honest world: all except those about new devices. */
  get alarms() {
    return this.problems.filter((problem) => !['new-device'].includes(problem));
  }

  // People

  start(callees = []) {
    return this.#enter(this.calls.add('start', { body: { callees, media: 'audio' }, camera: false, isNew: true }));
  }

  accept() {
    const ring = this.rung.at(-1);
    return this.#enter(this.calls.add('accept', { id: ring.call, ring, camera: false }));
  }

  join(id, kind = 'join') {
    return this.#enter(this.calls.add(kind, { id, camera: false }));
  }

  /** Joins by a link: `{link, secret}` from `makeLink`. */
  comeBy(id, { link, secret, isLasting = false }) {
    return this.#enter(this.calls.add('join', { id, body: { link }, secret, isLasting, camera: false }));
  }

  /** As `Conclave.startLasting`. A refusal is stored. */
  async startLasting(id) {
    try {
      const link = await this.lastingLinks.startable(id);
      await this.start();
      await this.call.openLasting(id, link);
    } catch (error) {
      this.joinError = error;
    }
  }

  /** Waits at the lasting link with this secret, and joins its call. A refusal is stored. */
  async comeByLasting(secret) {
    try {
      const { call, link } = await this.lastingLinks.wait(secret, { waiting: (told) => this.waited.push(told) });
      await this.comeBy(call, { link, secret, isLasting: true });
    } catch (error) {
      this.joinError = error;
    }
  }

  /** A refused join stores its error. */
  async #enter(joining) {
    for (let turn = 0; turn < 3; turn += 1) {
      await undefined; // the previous call is held first
      this.#listen(this.calls.current);
    }
    return joining.catch((error) => {
      this.joinError = error;
    });
  }

  #listen(call) {
    if (!call || call.isWatched) return;
    call.isWatched = true;
    call.addEventListener('warning', ({ detail }) => this.warnings.push(detail));
    call.addEventListener('message', ({ detail }) => this.messages.push(detail));
    call.addEventListener('ended', ({ detail }) => this.ended.push(detail));
  }

  // Media

  /** All workers that this device has had, the current one last. */
  get workers() {
    return Worker.all.filter(({ owner }) => owner === this.fingerprint);
  }

  get worker() {
    return Worker.all.findLast(({ owner }) => owner === this.fingerprint);
  }

  /** The secrets of all epochs that this device has had, as passed to its worker. */
  get secrets() {
    return this.workers.flatMap(({ posted }) => posted.filter(({ type }) => type === 'epoch'));
  }

  get pc() {
    const { worker } = this;
    return worker && PeerConnection.all.findLast((pc) => pc.worker === worker);
  }

  /** The sealer of the microphone's frames. */
  get microphone() {
    return this.pc?.transceivers.find(({ sender }) => sender.transform)?.sender.transform.end;
  }

  /** Says something: one frame, which names its speaker. Returns the text; undefined while nothing is sent. */
  async say() {
    const end = this.microphone;
    if (!end || !this.call || this.call.hasEnded || this.worker.isTerminated) return undefined;
    const text = `${this.name} says ${(this.#said += 1)}`;
    let sealed;
    const frame = { data: utf8(text).buffer, getMetadata: () => ({ mimeType: 'audio/opus' }) };
    await end.transform(frame, { enqueue: ({ data }) => (sealed = new Uint8Array(data)) });
    if (!sealed) return undefined;
    this.world.spoke(this, text, sealed);
    this.server.calls.get(this.call.id)?.forward(this, end.n, sealed);
    return text;
  }

  receive(mid, data) {
    const end = this.pc?.transceivers.find((transceiver) => transceiver.mid === mid)?.receiver.transform?.end;
    if (!end || this.worker.isTerminated) return;
    const frame = { data: Uint8Array.from(data).buffer, getMetadata: () => ({ mimeType: 'audio/opus' }) };
    end.transform(frame, { enqueue: (opened) => this.#hear(end, new TextDecoder().decode(opened.data)) });
  }

  #hear(end, said) {
    const participant = Math.floor(end.kid / 65536);
    const from = this.call?.roster.find((person) => person.participant === participant);
    this.heard.push({ slot: end.name, said, from: from ? `${from.user}/${from.device}` : undefined, at: performance.now() });
  }

  hasHeard(said) {
    return this.heard.some((each) => each.said === said);
  }

  // Signaling

  queue(event) {
    this.#queue.push({ ...event, seq: this.#seq++, redelivered: false });
    this.#pump();
  }

  #pump() {
    if (!this.isConnected) return;
    for (const event of this.#queue) {
      if (event.isSent === this.connectionNumber) continue;
      event.redelivered = event.isSent !== undefined;
      event.isSent = this.connectionNumber;
      const connection = this.connectionNumber;
      this.world.time.after(this.server.delays.event, () => connection === this.connectionNumber && this.isConnected && this.#deliver(event));
    }
  }

  async #deliver(event) {
    const answer = (isTaken) => {
      if (isTaken.later) return void isTaken.later.then(answer);
      this.#queue = this.#queue.filter((other) => other !== event);
      if (event.name === 'keys.envelope') this.server.calls.get(event.body.call)?.acknowledged(this, event.body, isTaken);
      return undefined;
    };
    answer(await this.inbox.take(event));
  }

  async #handle({ name, body: told }) {
    const body = eventFrom(name, told);
    if (!body) return true;
    this.ringing.handle(name, body);
    if (name === 'link.changed') this.lastingLinks.changed(body.link);
    if (name === 'link.waiting') this.lastingLinks.waiting(body.link);
    if (!body.call || name === 'call.ring') return true;
    return this.calls.handle(name, body);
  }

  disconnect() {
    this.isConnected = false;
    this.status = 'reconnecting';
  }

  /** Drops the messages that wait for this device. */
  forget() {
    this.#seq += 1;
    this.#queue = [];
  }

  reconnect() {
    this.isConnected = true;
    this.status = 'ready';
    this.connectionNumber += 1;
    for (const call of this.server.calls.values()) call.welcome(this);
    this.#pump();
    this.calls.connectionReady();
    this.lastingLinks.connectionReady();
  }

  close() {
    for (const call of [this.calls.current, ...this.calls.held]) call?.giveUp();
  }
}
