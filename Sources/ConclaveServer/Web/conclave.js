// The library: one device of one user, its connection to a Conclave server, rings and calls.
//
//   const conclave = new Conclave({ url: 'wss://host/stomp', device: 'laptop', credentials: async () => ({ token }) });
//   conclave.addEventListener('ring', ({ detail: ring }) => …);
//   conclave.connect();
//   const call = await conclave.start(['bob', 'carol'], { camera: true });

import { Call } from './call.js';
import { Directory, Identity } from './identity.js';
import { openStore } from './store.js';
import { RequestError, StompConnection } from './stomp.js';

export { isSupported } from './media.js';
export { readable } from './identity.js';
export { RequestError } from './stomp.js';

const HANDLED_KEPT = 2_000; // more events than the server keeps for a device that is away

const ringOver = {
  'call.answered-elsewhere': 'answered-elsewhere',
  'call.declined-elsewhere': 'declined-elsewhere',
  'call.cancelled': 'cancelled',
  'call.missed': 'missed',
  'call.ended': 'ended',
};

/**
 * Events: `connection` (see `status`); `ring` with the ring `{call, from, media, members, waiting, …}`; `ring-over` with `{ring, reason, by}`;
 * `ready`, after each connect. A call's own events are on the call.
 */
export class Conclave extends EventTarget {
  /** `connecting`, `ready`, `reconnecting`, `refused`, `replaced` or `closed`. */
  status = 'closed';
  reason = '';
  identity;
  directory;
  connectionNumber = 0;
  rings = new Map();
  call;
  #stomp;
  #device;
  #name;
  #events = Promise.resolve();
  #starting = Promise.resolve();
  #lastSeq = 0;
  #handled = new Set();
  #store;

  /** `credentials(wasRefused)` resolves with `{token}`; an error with `isFinal` ends the connecting. */
  constructor({ url, device, name, credentials }) {
    super();
    this.#device = device;
    this.#name = name;
    this.#stomp = new StompConnection({
      url,
      credentials: async (wasRefused) => ({ ...(await credentials(wasRefused)), device }),
      onEvent: (event) => this.#enqueue(event),
    });
    this.#stomp.prepare = () => this.#prepare();
    this.#stomp.addEventListener('open', ({ detail }) => this.#opened(detail));
    this.#stomp.addEventListener('ready', () => this.#ready());
    this.#stomp.addEventListener('closed', ({ detail }) => this.#closed(detail));
  }

  get user() {
    return this.identity?.user;
  }

  connect() {
    this.#setStatus('connecting');
    this.#stomp.connect();
  }

  close() {
    this.#stomp.close();
  }

  hurry() {
    this.#stomp.hurry();
  }

  request(path, body) {
    return this.#stomp.request(`/app/${path}`, body);
  }

  // Calls

  /** Rings `callees`. Resolves with the call once it exists; `results` on it says what became of each. */
  async start(callees, { camera = true } = {}) {
    const call = this.#newCall('');
    const joined = call.join('start', { callees, media: camera ? 'video' : 'audio' });
    // Events of the call may come before its id is known here: they wait.
    this.#starting = joined.catch(() => {});
    return this.#adopt(call, joined, { camera });
  }

  /** Answers a ring. A call that runs here is left first. */
  async accept(ring, { camera = true } = {}) {
    this.#endRing(ring.call);
    if (this.call) await this.call.leave();
    const call = this.#newCall(ring.call);
    return this.#adopt(call, call.join('accept'), { camera });
  }

  async decline(ring) {
    this.#endRing(ring.call);
    await this.request(`calls/${ring.call}/decline`);
  }

  /** The calls that can be joined or rejoined now. */
  async joinable() {
    const { calls } = await this.request('calls/list');
    return calls;
  }

  /** Comes into a running call: `rejoin` for who was in it, else `join`. */
  async enter(state, { camera = true } = {}) {
    const own = state.members.find(({ user }) => user === this.user);
    const wasIn = ['joined', 'left', 'disconnected'].includes(own?.state);
    const call = this.#newCall(state.id);
    return this.#adopt(call, call.join(wasIn ? 'rejoin' : 'join'), { camera });
  }

  #newCall(id) {
    if (this.call) throw new RequestError({ code: 'call.busy', message: 'There is a call already.' });
    const call = new Call({ id, connection: this });
    this.call = call;
    call.addEventListener('ended', () => {
      if (this.call === call) this.call = undefined;
    });
    return call;
  }

  async #adopt(call, joined, { camera }) {
    const captured = call.capture({ camera });
    try {
      const reply = await joined;
      call.results = reply.results ?? {};
      captured.then(() => call.begin());
      return call;
    } catch (error) {
      call.giveUp();
      throw error;
    }
  }

  // The connection

  #opened(headers) {
    this.connectionNumber += 1;
    this.#opening = this.#openIdentity(headers['user-name'], headers.device ?? this.#device);
  }

  #opening;

  async #openIdentity(user, device) {
    if (this.identity?.user === user && this.identity.device === device) return;
    this.#store ??= await openStore();
    this.identity = await Identity.open(this.#store, user, device);
    this.directory = new Directory({
      store: this.#store,
      owner: user,
      fetchDevices: (users) => this.request('devices/list', { users }),
    });
  }

  /** The device's keys are known to the server before anything else is asked of it. */
  async #prepare() {
    await this.#opening;
    const body = { name: this.#name, keys: this.identity.keys };
    await this.#stomp.requestFirst('/app/devices/register', body);
  }

  #ready() {
    this.#setStatus('ready');
    this.dispatchEvent(new Event('ready'));
    this.call?.connectionReady();
  }

  #closed({ reason, message }) {
    const statuses = { lost: this.identity ? 'reconnecting' : 'connecting' };
    this.#setStatus(statuses[reason] ?? reason, message);
  }

  #setStatus(status, reason = '') {
    this.status = status;
    this.reason = reason;
    this.dispatchEvent(new Event('connection'));
  }

  // Events, one after the other

  #enqueue(event) {
    const turn = this.#events.then(() => this.#handle(event)).catch((error) => {
      console.warn(`Conclave: ${event.name} failed: ${error.code ?? error.name}`);
      return event.name !== 'keys.envelope';
    }).then((isTaken) => {
      if (isTaken) this.#remember(event.seq);
      return isTaken;
    });
    this.#events = turn;
    return turn;
  }

  async #handle({ name, seq, redelivered, body }) {
    await this.#opening;
    if (redelivered && this.#handled.has(seq)) return true; // its acknowledgement was lost
    if (!redelivered && seq <= this.#lastSeq) this.#handled.clear(); // the server began anew and counts from 1
    const isJump = this.#lastSeq > 0 && seq > this.#lastSeq + 1;
    // `call.state`, first on a connection, has a higher number than what is redelivered behind it.
    this.#lastSeq = redelivered ? Math.max(this.#lastSeq, seq) : seq;
    if (isJump && this.status === 'ready') await this.call?.connectionReady();
    if (name === 'call.ring') this.#rang(body);
    else if (name in ringOver && this.rings.has(body.call)) this.#endRing(body.call, ringOver[name], body);
    if (!body.call || name === 'call.ring') return true;
    if (this.call && !this.call.id) await this.#starting;
    if (this.call?.id === body.call) return this.call.handle(name, body);
    return name !== 'keys.envelope';
  }

  #remember(seq) {
    this.#handled.add(seq);
    if (this.#handled.size > HANDLED_KEPT) this.#handled.delete(this.#handled.values().next().value);
  }

  #rang(body) {
    const ring = { ...body };
    const timer = setTimeout(() => this.#endRing(ring.call, 'missed', ring), Math.max(0, body.expiresAt - body.at) + 2_000);
    this.rings.set(ring.call, { ring, timer });
    this.dispatchEvent(new CustomEvent('ring', { detail: ring }));
  }

  #endRing(call, reason = 'answered', { by } = {}) {
    const entry = this.rings.get(call);
    if (!entry) return;
    clearTimeout(entry.timer);
    this.rings.delete(call);
    this.dispatchEvent(new CustomEvent('ring-over', { detail: { ring: entry.ring, reason, by } }));
  }
}
