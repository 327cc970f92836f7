// One device of one user: its connection to a Conclave server, rings and calls.

import { Calls, RingMemory, Rings, isPassed, isSameRing } from './call/index.js';
import { Inbox, StompConnection, eventFrom, replyFrom } from './connection/index.js';
import { LastingLinks, OwnDevices, Presence, Push, openLinkStore, openStore } from './devices/index.js';
import { isGuest } from './guests.js';
import { Capture } from './capture.js';
import { Directory, Identity, sameDevice } from './trust/index.js';
import { toBase64 } from './wire/index.js';

/** @typedef {import('./call/index.js').CallConnection} CallConnection */

const CROSSING_MS = 300; // after the answer to a `start`, until a ring of the same people is over or announced
const RECORDING_NEWS = ['recording.changed', 'recording.seen', 'recording.reached', 'recording.removed'];
const LAST_CALLS = 5; // how many past calls are searched for one that runs on another device
// Bundlers recognize a file that belongs to a bundle by this whole expression, and it means the file beside the bundle: so it is in a module beside that file.
const OWN_WORKER = new URL('./sframe-worker.js', import.meta.url).href;

/**
 * Events: `connection` (see `status`); `ring` with the ring `{call, from, media, members, waiting, …}`; `ring-over` with `{ring, reason, by}`; `ready`, after
 * each connect; `calls` when one is added, removed or held; `call-over` with the id of any call that is over for all; `link-waiting` with the id of a lasting
 * link of this user at which somebody waits; `presence`; `recording` with `{recording, kind, by, isAlert, hasGrant}` of one that somebody has granted to this device, or
 * alerts this user of, as the server says; `recording-news` with `{news, recording, by?, at?}`, `news` being `changed`, `seen`, `reached` or `removed`; `warning` about a device that is not in a call here, with `{problem, user, device}`. A call's own events are on the call, those of pairing on
 * `ownDevices`; `identity` reports when that is
 * replaced.
 *
 * @implements {CallConnection}
 */
export class Conclave extends EventTarget {
  /** `connecting`, `ready`, `reconnecting`, `refused`, `replaced` by another tab, `removed` by another device, or `closed`. */
  status = 'closed';
  /**
   * Why the status is `refused`: `token-refused`, `wrong-identity` (the server reports another user or device), or the message of a final error of
   * `credentials`.
   */
  reason = '';
  identity;
  directory;
  /** The calls whose ring envelope was used. */
  rings;
  /** This user's devices: see `own-devices.js`. */
  ownDevices;
  /** The links that last for days: see `lasting-links.js`. */
  lastingLinks;
  connectionNumber = 0;
  presence;
  /** Where the app serves the library's worker: beside this module, unless it says another place. */
  workerURL;
  /** The person's choice of camera, microphone and speaker: see `capture.js`. */
  capture = new Capture();
  push = new Push((path, body) => this.request(path, body));
  #calls;
  #rings;
  #untold = new Set(); // calls whose ring is held back
  #stomp;
  #device;
  #expected; // the requested user
  #name;
  #inbox;
  #store;
  #linkStore;
  #opening;
  #verifiedOnly = false;

  /** `credentials(wasRefused)` resolves with `{token, user}`: the server must name the same user. An error with `isFinal` ends the attempts to connect. */
  constructor({ url, device, name = undefined, credentials, workerURL = OWN_WORKER }) {
    super();
    this.workerURL = workerURL;
    this.#device = device;
    this.#name = name;
    this.presence = new Presence((path, body) => this.request(path, body));
    this.presence.addEventListener('change', () => this.#tell('presence'));
    this.capture.addEventListener('change', ({ detail: { source } }) => source !== 'speaker' && this.current?.reopen(source));
    this.#calls = new Calls(this);
    this.#calls.addEventListener('change', () => this.#tell('calls'));
    this.#rings = new Rings({
      rang: (ring) => this.#rang(ring),
      ended: (end) => this.#untold.delete(end.ring.call) || this.#tell('ring-over', end),
    });
    this.#inbox = new Inbox({
      handle: (event) => this.#handle(event),
      missed: () => this.#missed(),
    });
    this.#stomp = new StompConnection({
      url,
      credentials: async (wasRefused) => {
        const { token, user } = await credentials(wasRefused);
        this.#expected = user;
        return { token, device: this.#device };
      },
      onEvent: (event) => this.#inbox.take(event),
      isUrgent: () => Boolean(this.current) || this.held.length > 0,
    });
    this.#stomp.prepare = () => this.#prepare();
    this.#stomp.addEventListener('open', ({ detail }) => this.#opened(detail));
    this.#stomp.addEventListener('ready', () => this.#ready());
    this.#stomp.addEventListener('obstacle', () => this.#tell('connection'));
    this.#stomp.addEventListener('closed', ({ detail }) => this.#closed(detail));
  }

  get user() {
    return this.identity?.user;
  }

  /** Why no connection can be made although the server answers: `origin`, `websocket` (see `obstacleTo`) or undefined. `connection` reports it. */
  get obstacle() {
    return this.#stomp.obstacle;
  }

  /** Whether this device's keys, and what it knows about others, outlive the page. */
  get keepsKeys() {
    return Boolean(this.#store?.isLasting);
  }

  connect() {
    this.#setStatus('connecting');
    this.#stomp.connect();
  }

  close() {
    this.#stomp.close();
  }

  /** Checks a connection that may be dead, and connects immediately if there is none. */
  hurry() {
    this.#stomp.hurry();
  }

  /** The device is in another network: calls restart ICE without waiting for the loss of the old path. */
  networkChanged() {
    this.#stomp.hurry();
    this.#calls.networkChanged();
  }

  request(path, body) {
    return this.#stomp.request(`/app/${path}`, body).then((reply) => replyFrom(path, reply));
  }

  // Calls

  /** The active call, if any. */
  get current() {
    return this.#calls.current;
  }

  /** Calls of this device that are on hold. */
  get held() {
    return this.#calls.held;
  }

  /** Calls that run on another device of this user: their facts. */
  get elsewhere() {
    return [...this.#calls.elsewhere.values()];
  }

  // Joining opens the microphone and the camera, unless `camera` or `microphone` is false; or is a `MediaStreamTrack` of the app, which is sent in its place.

  /**
   * Rings `callees`. Resolves with the call once it exists; its `results` contain the result of each ring. If they call this user at the same moment, it is
   * their call. `policy` are the call's rules (protocol section 4), `metadata` is base64 of up to 2 KiB for those who are rung: the server can read it. `media`
   * is `audio` or `video`, by default depending on the camera.
   */
  call(callees, { camera = true, microphone = true, media = camera ? 'video' : 'audio', policy = undefined, metadata = '' } = {}) {
    const body = { callees, media, ...(policy ? { policy } : {}), ...(metadata ? { metadata } : {}) };
    return this.#calls.add('start', { body, camera, microphone, isNew: true });
  }

  /** Answers a ring. A call that runs here is held. If the caller has replaced the ring by another one, that one is answered. */
  async accept(ring, { camera = true, microphone = true } = {}) {
    this.#rings.end(ring.call);
    try {
      return await this.#calls.add('accept', { id: ring.call, ring, camera, microphone });
    } catch (error) {
      const next = isPassed(error) && this.#rings.findLast((other) => isSameRing(ring, other));
      if (!next) throw error;
      return this.accept(next, { camera, microphone });
    }
  }

  /** Removes and returns the ring of this call, if any, which is answered by other means. */
  takeRing(call) {
    const ring = this.#rings.find(call);
    this.#rings.end(call);
    return ring;
  }

  /** A ring of people who are just being called is announced only if it is not answered by that call. */
  async #rang(ring) {
    const settling = this.#calls.settlingOf(ring);
    if (!settling) return this.#tell('ring', ring);
    this.#untold.add(ring.call);
    await settling;
    return setTimeout(() => this.#untold.delete(ring.call) && this.#tell('ring', ring), CROSSING_MS);
  }

  async decline(ring) {
    this.#rings.end(ring.call);
    await this.request(`calls/${ring.call}/decline`);
  }

  /** The calls that can be joined or rejoined now: their facts. Those on another device are then in `elsewhere`. */
  async joinable() {
    const [{ calls }, answered] = await Promise.all([this.request('calls/list'), this.#lastAnswered()]);
    return this.#calls.sort(calls, answered);
  }

  /** The server's list does not contain calls that are joined on another device. The history contains them, running or over. */
  async #lastAnswered() {
    const calls = await this.history({ limit: LAST_CALLS }).catch(() => []);
    return calls.filter(({ outcome, rejoinable }) => outcome === 'answered' && !rejoinable).map(({ id }) => id);
  }

  /**
   * Enters a running call: by `rejoin` if this user has been in it, else by `join`. If a device has lost it but the server still counts that device as in it,
   * it is transferred. `root` is the call's (`Call.root`) from before a reload: without it a server could name another.
   */
  enter(facts, { camera = true, microphone = true, root = undefined } = {}) {
    if (facts.isLost && facts.phase === 'joined') return this.transfer(facts, { camera, microphone, root });
    return this.#calls.add(facts.wasIn ? 'rejoin' : 'join', { id: facts.id, root, camera, microphone });
  }

  /** Moves the call here from the user's other device. */
  transfer(facts, { camera = true, microphone = true, root = undefined } = {}) {
    return this.#calls.add('transfer', { id: facts.id, root, camera, microphone });
  }

  /**
   * Joins with a link made by `call.makeLink`, and the secret that was made with it. With `isLasting` the secret is that of a lasting link, and `id` and `link` are
   * what `lastingLinks.wait` resolved with.
   */
  joinByLink(id, { link, secret, isLasting = false }, { camera = true, microphone = true } = {}) {
    return this.#calls.add('join', { id, body: { link }, secret, isLasting, camera, microphone });
  }

  /** Starts a call of the lasting link `id`, which this device has made: whoever holds the link may join. */
  async startLasting(id, { camera = true, microphone = true } = {}) {
    const link = await this.lastingLinks.startable(id);
    const call = await this.call([], { camera, microphone });
    try {
      await call.openLasting(id, link);
    } catch (error) {
      call.leave();
      throw error;
    }
    return call;
  }

  /** The user who last rang this device for a call; undefined if nobody has. */
  callerOf(id) {
    return this.#rings.callerOf(id);
  }

  /** Makes a held call active again; the previous one is held. */
  resume(call) {
    return this.#calls.resume(call);
  }

  /** The users of `users` that a call can reach: the server knows a device of theirs. */
  async reachable(users) {
    const { devices } = await this.request('devices/list', { users });
    const known = new Set(Array.isArray(devices) ? devices.map((device) => device?.user) : []);
    return new Set(users.filter((user) => known.has(user)));
  }

  // Devices, keys, history

  /** If true, devices that this user has not verified get no keys, and nothing is sent while one of them is in the call. */
  get verifiedOnly() {
    return this.#verifiedOnly;
  }

  set verifiedOnly(isOn) {
    this.#verifiedOnly = isOn;
    if (this.directory) this.directory.verifiedOnly = isOn;
    this.#calls.reconsiderKeys();
  }

  /** The name of somebody's device, according to the server; undefined if it has none. */
  deviceName(user, device) {
    return this.directory?.deviceName(user, device);
  }

  /** The person accepts a device's changed key, the one with this fingerprint, in all calls. Returns whether it still has that key. */
  trust(user, device, fingerprint) {
    return this.directory.trust(user, device, fingerprint);
  }

  /** The person has verified these devices, `{user, device, fingerprint}`, as they were shown. Returns those that are verified now. */
  verify(devices) {
    return this.directory.verify(devices);
  }

  /** Forgets this device's keys, and with `all` everything that this browser knows about its user's people. */
  async forget({ all = false } = {}) {
    const { user, device } = this.identity;
    if (!all) {
      await this.#linkStore.deleteAll('links', `${user}/${device}>`);
      return this.#store.delete('identities', `${user}/${device}`);
    }
    await this.#linkStore.deleteAll('links', `${user}/`);
    for (const store of ['identities', 'rings']) await this.#store.deleteAll(store, `${user}/`);
    for (const store of ['pins', 'statements']) await this.#store.deleteAll(store, `${user}>`);
    return undefined;
  }

  /** Newest first: `{id, direction, outcome, media, members, startedAt, seconds, rejoinable}`. */
  async history({ before = undefined, limit = 50 } = {}) {
    const { calls } = await this.request('history/list', { before, limit });
    return calls;
  }

  /** Deletes these calls, or all, from this user's own history. */
  async deleteHistory(calls) {
    await this.request('history/delete', calls ? { calls } : { all: true });
  }

  /** `{calls, seconds}` spent with a user. */
  totals(user) {
    return this.request('history/totals', { with: user });
  }

  // The connection

  /** Keys and pins are stored by user and device: the server does not choose whose they are. */
  #opened(headers) {
    this.connectionNumber += 1;
    if (headers['user-name'] !== this.#expected || headers.device !== this.#device) {
      this.#stomp.refuse('wrong-identity');
      return;
    }
    this.#opening = this.#openIdentity(this.#expected, this.#device);
  }

  async #openIdentity(user, device) {
    if (this.identity?.user === user && this.identity.device === device) return;
    if (!this.#store) [this.#store, this.#linkStore] = await Promise.all([openStore(), openLinkStore()]);
    this.identity = await Identity.open(this.#store, user, device);
    this.directory = new Directory({
      store: this.#store,
      owner: user,
      own: { device, fingerprint: toBase64(this.identity.fingerprint), keys: this.identity.keys },
      fetchDevices: (users) => this.request('devices/list', { users }),
    });
    this.directory.verifiedOnly = this.#verifiedOnly;
    this.rings = new RingMemory(this.#store, this.identity);
    this.directory.addEventListener('change', () => this.#calls.reconsiderKeys());
    this.directory.addEventListener('warning', ({ detail }) => this.#tell('warning', detail));
    const request = (path, body) => this.request(`devices/${path}`, body);
    this.ownDevices = new OwnDevices({ identity: this.identity, directory: this.directory, request });
    this.lastingLinks = new LastingLinks({ identity: this.identity, store: this.#linkStore, request: (path, body) => this.request(`links/${path}`, body) });
    this.lastingLinks.addEventListener('waiting', ({ detail }) => this.#tell('link-waiting', detail));
    this.#tell('identity');
  }

  get #registration() {
    return { name: this.#name, keys: this.identity.keys };
  }

  /** Gives this device another name, up to 256 bytes in UTF-8. The server keeps it until the device registers again: create the next `Conclave` with it. */
  async rename(name) {
    const before = this.#name;
    this.#name = name;
    try {
      await this.request('devices/register', this.#registration);
    } catch (error) {
      this.#name = before;
      throw error;
    }
  }

  /** The device's keys are registered with the server before anything else is requested. */
  async #prepare() {
    await this.#opening;
    this.push.registered(replyFrom('devices/register', await this.#stomp.requestFirst('/app/devices/register', this.#registration)));
  }

  #ready() {
    this.#setStatus('ready');
    this.directory.connected();
    if (this.identity.isNew && !isGuest(this.user)) this.directory.acquaint();
    this.#tell('ready');
    this.#calls.connectionReady();
    this.presence.connectionReady(this.user);
    this.lastingLinks.connectionReady();
  }

  #closed({ reason, message }) {
    // Nothing of a call remains on a connection that another has replaced.
    if (['replaced', 'removed'].includes(reason)) this.#calls.endAll();
    const statuses = { lost: this.identity ? 'reconnecting' : 'connecting' };
    this.#setStatus(statuses[reason] ?? reason, message);
  }

  #setStatus(status, reason = '') {
    this.status = status;
    this.reason = reason;
    this.#tell('connection');
  }

  #tell(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }

  // Events, one after the other

  async #missed() {
    if (this.status === 'ready') await this.#calls.connectionReady({ hasMissed: true });
  }

  async #handle({ name, body: told }) {
    await this.#opening;
    const body = eventFrom(name, told);
    if (!body) return true;
    // A ring for a call that this device is in came late, and does not say who lets it in.
    if (name !== 'call.ring' || !this.#calls.find(body.call)) this.#rings.handle(name, body);
    if (name === 'presence') this.presence.take(body);
    if (name === 'link.changed') this.lastingLinks.changed(body.link);
    if (name === 'link.waiting') this.lastingLinks.waiting(body.link);
    if (name === 'device.pair') this.ownDevices.take(body).catch(() => {}); // the session ends by itself
    if (name === 'call.ended') this.#tell('call-over', body.call);
    if (name === 'recording.shared') this.#tell('recording', { recording: body.recording, kind: body.kind, by: body.by, isAlert: Boolean(body.alert), hasGrant: Boolean(body.grant) });
    if (RECORDING_NEWS.includes(name)) this.#tell('recording-news', { news: name.split('.')[1], recording: body.recording, by: body.by, at: body.at });
    if (name === 'keys.devices-changed') await this.#devicesChanged(body);
    if (!body.call || name === 'call.ring') return true;
    return this.#calls.handle(name, body);
  }

  /** Somebody's devices or keys changed: people are warned immediately, not when the device joins. */
  async #devicesChanged({ user }) {
    for (const { entry, problem, isNew, isOfVerified } of await this.directory.devicesOf([user])) {
      if (sameDevice(entry, this.identity)) continue;
      const { device, fingerprint } = entry;
      if (isNew) this.#tell('warning', { problem: 'new-device', user, device, fingerprint, isOfVerified });
      if (problem === 'changed-key') this.#tell('warning', { problem, user, device, fingerprint });
    }
    this.#calls.reconsiderKeys();
  }
}
