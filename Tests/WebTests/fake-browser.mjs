// Parts of a browser that Node does not have: a PeerConnection, a worker, microphones; and a server for one device that answers as the
// protocol says.

import { load } from './web.mjs';

const { Capture } = await load('capture.js');
const { Identity } = await load('trust/identity.js');
const { Directory } = await load('trust/directory.js');
const { MemoryStore } = await load('devices/store.js');
const { RequestError } = await load('connection/stomp.js');

/** A sender with the rules of setParameters (WebRTC, section 5.2): one change at a time, of the parameters read last, with the same number of encodings. */
export class Sender {
  changes = 0; // those set by setParameters
  preference; // the last one set: like Firefox, it does not report it
  #encodings;
  #read;
  #isSetting = false;

  constructor(track, sendEncodings = [{}]) {
    this.track = track;
    this.#encodings = sendEncodings.map((encoding) => ({ active: true, ...encoding }));
  }

  get encodings() {
    return this.#encodings;
  }

  async replaceTrack(track) {
    this.track = track;
  }

  getParameters() {
    this.#read = { transactionId: crypto.randomUUID(), encodings: structuredClone(this.#encodings) };
    return structuredClone(this.#read);
  }

  async setParameters({ transactionId, encodings, degradationPreference }) {
    const read = this.#read;
    this.#read = undefined;
    const fails = (name) => Object.assign(new Error(name), { name });
    if (this.#isSetting || !read) throw fails('InvalidStateError');
    const isSame = encodings.length === read.encodings.length && encodings.every(({ rid }, index) => rid === read.encodings[index].rid);
    if (transactionId !== read.transactionId || !isSame) throw fails('InvalidModificationError');
    this.#isSetting = true;
    await new Promise((resolve) => setImmediate(resolve));
    this.#isSetting = false;
    if (this.#encodings.length !== encodings.length) throw fails('InvalidModificationError'); // an answer came between
    this.#encodings = structuredClone(encodings);
    this.preference = degradationPreference ?? this.preference;
    this.changes += 1;
  }

  /** An answer without `a=simulcast:recv` leaves only the first encoding. */
  answered(sdp) {
    if (!sdp.includes('a=simulcast:recv')) this.#encodings.length = 1;
  }
}

export const DESCRIPTOR = 'https://aomediacodec.github.io/av1-rtp-spec/#dependency-descriptor-rtp-header-extension';

export const LAYER_IDS = ['urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id', 'urn:ietf:params:rtp-hdrext:sdes:repaired-rtp-stream-id'];

/**
 * As in Chromium (WebRTC Extensions, section 5.2): dependency descriptors are known, but not offered. The ids of layers are as after an answer without them,
 * whose directions Chromium applies to each new transceiver.
 */
function headerExtensions() {
  return {
    extensions: [
      { uri: 'urn:ietf:params:rtp-hdrext:sdes:mid', direction: 'sendrecv' },
      ...[...LAYER_IDS, DESCRIPTOR].map((uri) => ({ uri, direction: 'stopped' })),
    ],
    getHeaderExtensionsToNegotiate() {
      return structuredClone(this.extensions);
    },
    setHeaderExtensionsToNegotiate(extensions) {
      this.extensions = extensions;
    },
  };
}

export class PeerConnection extends EventTarget {
  static all = [];
  connectionState = 'connected';
  iceConnectionState = 'connected';
  signalingState = 'stable';
  isClosed = false;

  constructor() {
    super();
    PeerConnection.all.push(this);
  }

  addTransceiver(track, { direction, sendEncodings }) {
    const kind = track.kind ?? track;
    const sender = new Sender(track.kind ? track : null, sendEncodings);
    const transceiver = { mid: `${this.transceivers.length}`, direction, kind, receiver: { track: { kind } }, sender, setCodecPreferences() {}, ...headerExtensions() };
    this.transceivers.push(transceiver);
    return transceiver;
  }

  transceivers = [];

  /** The sender of video. */
  get camera() {
    return this.transceivers.find(({ kind, direction }) => kind === 'video' && direction === 'sendonly')?.sender;
  }

  async createOffer() {
    return { type: 'offer', sdp: '' };
  }

  async setLocalDescription() {
    this.localDescription = { sdp: '' };
  }

  async setRemoteDescription({ sdp }) {
    for (const { sender } of this.transceivers) sender.answered(sdp);
  }

  async getStats() {
    return new Map();
  }

  close() {
    this.isClosed = true;
  }
}

class Worker extends EventTarget {
  constructor() {
    super();
    setTimeout(() => this.dispatchEvent(Object.assign(new Event('message'), { data: { type: 'ready' } })), 0);
  }

  postMessage() {}
  terminate() {}
}

/** The call id for a name. */
export const callID = (name) => `00000000-0000-4000-8000-${Buffer.from(name).toString('hex').padStart(12, '0').slice(-12)}`;

export const opened = [];

const track = (kind) => {
  const made = { kind, enabled: true, isStopped: false, addEventListener() {}, stop: () => void (made.isStopped = true) };
  opened.push(made);
  return made;
};
const getUserMedia = async ({ video }) => ({ getTracks: () => [track(video ? 'video' : 'audio')] });

/** Installs the browser's parts. */
export function browser() {
  Object.assign(globalThis, { RTCPeerConnection: PeerConnection, Worker, RTCRtpScriptTransform: class {} });
  globalThis.RTCRtpReceiver = { getCapabilities: () => ({ codecs: [] }) };
  Object.defineProperty(globalThis, 'navigator', { value: { mediaDevices: { getUserMedia } }, configurable: true });
}

/** The server as seen by one device, with the state of each call in `calls`; `asked` has all requests. */
export class FakeServer {
  asked = [];
  calls = new Map();
  /** `{ending, code, …}`: the next request whose path ends with `ending` fails with the rest. */
  failures = [];
  answer = ''; // SDP
  #next = 2; // 1 is the initiator
  #rev = 0;

  constructor(user, device) {
    Object.assign(this, { user, device });
  }

  async connection() {
    const identity = await Identity.open(new MemoryStore(), this.user, this.device);
    const directory = new Directory({ store: new MemoryStore(), owner: this.user, fetchDevices: async () => ({ devices: [] }) });
    return { identity, directory, capture: new Capture(), user: this.user, status: 'ready', connectionNumber: 1, callerOf: () => undefined, request: (path, body) => this.request(path, body), takeRing: () => undefined };
  }

  /** A call of others, with this user in `state` and optionally joined on another device. */
  running(id, { elsewhere, state = 'ringing' } = {}) {
    const participant = { participant: this.#next++, device: elsewhere, connected: true, held: false, tracks: [] };
    const bob = { user: 'bob', name: 'Bob', state: 'joined', participants: [{ participant: this.#next++, device: 'd', tracks: [] }] };
    const own = { user: this.user, state: elsewhere ? 'joined' : state, participants: elsewhere ? [participant] : [] };
    const call = { id, state: 'active', media: 'audio', initiator: 'bob', startedAt: 0, epoch: 1, policy: {}, members: [bob, own] };
    this.calls.set(id, call);
    return call;
  }

  member(call) {
    return this.calls.get(call).members.find(({ user }) => user === this.user);
  }

  count(ending) {
    return this.asked.filter(({ path }) => path.endsWith(ending)).length;
  }

  async request(path, body = {}) {
    this.asked.push({ path, body });
    const failure = this.failures.findIndex(({ ending }) => path.endsWith(ending));
    if (failure >= 0) {
      const [{ ending: _, ...error }] = this.failures.splice(failure, 1);
      throw new RequestError({ message: error.code, ...error });
    }
    const [area, id, what] = path.split('/');
    if (area !== 'calls') return {};
    if (id === 'list') return { calls: structuredClone([...this.calls.values()]) };
    const call = id === 'start' ? this.running(body.id) : this.calls.get(id);
    if (!call) throw new RequestError({ code: 'call.not-found', message: '' });
    if (id === 'start' || ['accept', 'join', 'rejoin', 'transfer'].includes(what)) return this.#join(call, body, id === 'start');
    if (what === 'hold') this.member(id).participants.at(-1).held = body.held;
    if (what === 'state') return structuredClone(call);
    if (what === 'media') {
      const { participant } = this.member(id).participants.find(({ device }) => device === this.device);
      return { sdp: this.answer, tracks: body.tracks.map(({ mid }) => ({ mid, track: `${participant}.${Number(mid) + 1}` })), receive: [], rev: this.#rev++ };
    }
    return {};
  }

  #join(call, { joinId }, isStart) {
    const own = call.members.find(({ user }) => user === this.user);
    const participant = { participant: isStart ? 1 : this.#next++, device: this.device, joinId, connected: true, held: false, tracks: [] };
    Object.assign(own, { state: 'joined', participants: [...own.participants.filter(({ device }) => device !== this.device), participant] });
    return { call: structuredClone(call), participant: participant.participant, ice: { servers: [] }, results: {} };
  }
}
