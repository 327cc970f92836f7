// This device’s stay in a call: the participant created by one join, with its worker, keys, path and messages. Rejoining begins another.

import { RequestError } from '../connection/index.js';
import { isGuest } from '../guests.js';
import { JoinKeys, KeyAgreement, MessageSealer, ringEpoch, seatsOf } from '../keys/index.js';
import { PATH_EVENTS, QualityMeter, ServerPath, Uplink, WorkerAnswers, startWorker } from '../media/index.js';
import { Timers } from '../timers.js';
import { LinkSecret } from '../trust/index.js';
import { Refusal, isCallID, replyIn } from '../wire/index.js';

/** @typedef {import('./call-requests.js').CallConnection} CallConnection */
/** @typedef {import('../media/index.js').MediaPath} MediaPath */

const STATS_MS = 10_000;
const UPLINK_MS = 2_000;
const FIRST_FRAME_MS = 60_000;
const LOST_ANSWERS = 3;
const RING_TRIES = 3;
const DOOR_TRIES = 3;

/**
 * Events: those of its path (`PATH_EVENTS`) and of `KeyAgreement`, of the latter `change` as `keys`; `uplink` with `{isPoor}`, when the path has become too poor for a camera, or
 * good again.
 */
export class Stay extends EventTarget {
  id;
  kind;
  reply;
  participant;
  keys;
  /** Asks the worker: see `WorkerAnswers`. */
  ask;
  /** @type {MediaPath | undefined} */
  path;
  messages;
  /** @type {CallConnection} */
  #connection;
  #admissions;
  /** @type {(options: any) => MediaPath} */
  #openPath = (options) => new ServerPath(options);
  #worker;
  #join;
  #first;
  /** @type {import('./knocking.js').Knocking | undefined} */
  #knocking;
  #timers = new Timers();
  #isOver = false;

  /** @param {CallConnection} connection */
  constructor(connection) {
    super();
    this.#connection = connection;
  }

  /**
   * Asks the server to join by `kind`; `stay.reply` is what it said. `body` goes with the request. The id of a call that starts is this device's choice. `admissions` are the call's, `ring` is the
   * ring that is accepted, `secret` that of a link, `isLasting` if it is a lasting one. One of the users `inviters` must have let this one in, if the ring does not name its caller. `root` is as in `Admissions.joins`.
   * A guest who has to wait to be admitted waits in `knocking`. `openPath` opens the path of the media, by default to the server, with the options of `ServerPath`.
   */
  static async open({ kind, id, body, ring = /** @type {Record<string, any>} */ ({}), secret = '', isLasting = false, inviters = /** @type {string[] | undefined} */ (undefined), root = /** @type {string | undefined} */ (undefined), openPath = undefined, admissions, knocking = /** @type {any} */ (undefined), connection }) {
    const stay = new Stay(connection);
    stay.#knocking = knocking;
    stay.#openPath = openPath ?? stay.#openPath;
    // Before the first await: a ring that comes later invites nobody.
    const caller = ring.from ?? (inviters ? undefined : connection.callerOf(id));
    stay.#admissions = admissions;
    const { identity } = connection;
    const isStart = kind === 'start';
    stay.kind = kind;
    stay.id = isStart ? crypto.randomUUID() : id;
    if (!isCallID(stay.id)) throw new Refusal('a call with an id of another form');
    [stay.#join, stay.#worker] = await Promise.all([JoinKeys.make(identity, stay.id), startWorker(connection.workerURL)]);
    try {
      const words = await stay.#words(body.callees ?? [], { ring, secret, isLasting, inviters: caller ? [caller] : inviters, root });
      const asked = { ...body, ...words, ...stay.#join.wire, ...(isStart ? { id: stay.id } : {}) };
      const own = { user: identity.user, device: identity.device, joinId: stay.#join.wire.joinId };
      const reply = isStart ? await stay.#start(asked) : await stay.#enter(asked);
      stay.reply = replyIn(reply, { id: stay.id, isStart, own });
    } catch (error) {
      stay.#worker.terminate();
      if (!(error instanceof Refusal)) throw error;
      connection.request(`calls/${stay.id}/leave`).catch(() => {});
      throw new RequestError({ code: 'reply.refused', message: `The server’s answer does not fit what was asked (${error.message}). Nothing was sent.` });
    }
    stay.participant = stay.reply.participant;
    return stay;
  }

  /** The words that go with the join: whom this device lets in, or that it comes by a link. */
  async #words(callees, { ring, secret, isLasting, inviters, root }) {
    const { identity } = this.#connection;
    if (this.kind === 'start') {
      this.#admissions.started(this.id);
      return { admissions: await this.#admissions.words([...callees, identity.user]) };
    }
    await this.#admissions.joins(this.id, { inviters, secret: secret ? LinkSecret.from(secret) : undefined, isLasting, root });
    await this.#admissions.take(ring);
    // A guest's device may have other keys than when it first joined.
    const comes = this.kind === 'join' || (this.kind === 'rejoin' && isGuest(identity.user));
    const admission = comes ? await this.#admissions.comingWord() : undefined;
    return admission ? { admission } : {};
  }

  /** Creates keys and path, unless the stay is over before. `facts` is the call's state including the reply, `ring` the accepted ring. */
  async connect(facts, ring = {}) {
    const answers = new WorkerAnswers(this.#worker);
    this.ask = (message) => answers.ask(message);
    this.keys = this.#agreement(facts.members.size);
    this.keys.seated(seatsOf(facts.members.values()));
    try {
      if (this.kind === 'start') await this.keys.start(this.#first);
      if (this.kind === 'accept') await this.keys.startRung(ring, this.#connection.rings);
    } catch (error) {
      if (!this.#isOver) throw error;
    }
    this.#first = undefined;
    if (this.#isOver) return;
    this.path = this.#opened();
    this.path.wantFor(facts.tracksOfOthers);
  }

  close() {
    this.#isOver = true;
    this.#timers.clear();
    this.keys?.close();
    this.path?.close();
    this.#worker.terminate();
  }

  #request(rest, body) {
    return this.#connection.request(`calls/${this.id}/${rest}`, body);
  }

  /**
   * A callee's device may disappear between being listed and being rung: the ring's list is then made again without it. If that does not help either, the
   * callees are rung without a key.
   */
  async #start(body) {
    const { identity, directory } = this.#connection;
    for (let tries = RING_TRIES; tries > 0; tries -= 1) {
      this.#first = await firstEpoch({ identity, directory, join: this.#join, call: this.id, callees: body.callees });
      if (!this.#first?.envelopes.length) break;
      try {
        return await this.#ask('calls/start', { ...body, envelopes: this.#first.envelopes });
      } catch (error) {
        if (!error.code?.startsWith('keys.')) throw error;
      }
    }
    this.#first = { news: this.#first?.news ?? [] };
    return this.#ask('calls/start', body);
  }

  /** A guest who has to wait to be admitted joins afterwards. A restart of the server forgets who was admitted. */
  async #enter(asked) {
    for (let tries = DOOR_TRIES; ; tries -= 1) {
      try {
        return await this.#ask(`calls/${this.id}/${this.kind}`, asked);
      } catch (error) {
        if (error.code !== 'call.not-admitted' || !this.#knocking || tries === 0) throw error;
        await this.#knocking.wait(() => this.#request('knock', { link: asked.link, admission: asked.admission }));
      }
    }
  }

  /** The same join requested again has no further effect (protocol 4, rule 14), so a lost answer is requested again. */
  async #ask(path, body) {
    for (let attempt = 0; ; attempt += 1) {
      try {
        return await this.#connection.request(path, body);
      } catch (error) {
        if (error.code !== 'connection-lost' || attempt >= LOST_ANSWERS) throw error;
      }
    }
  }

  #agreement(members) {
    const { identity, directory } = this.#connection;
    const keys = new KeyAgreement({
      call: this.id,
      identity,
      directory,
      admissions: this.#admissions,
      join: this.#join,
      participant: this.participant,
      members,
      request: (rest, content) => this.#request(rest, content),
      post: (message) => this.#worker.postMessage(message),
    });
    keys.addEventListener('change', () => this.dispatchEvent(new Event('keys')));
    for (const name of ['warning', 'broken', 'unlisted', 'keyed']) this.#passOn(keys, name);
    return keys;
  }

  /** The path, with all that follows from it. */
  #opened() {
    const worker = this.#worker;
    const { participant } = this;
    const path = this.#openPath({ ice: this.reply.ice, worker, participant, request: (content) => this.#request('media', content) });
    this.messages = new MessageSealer(this.ask, this.keys);
    for (const name of PATH_EVENTS) this.#passOn(path, name);
    path.addEventListener('connection', () => {
      // If the path was lost, the connection may be lost, too, and not report it for a long time.
      if (path.connection === 'disconnected') this.#connection.hurry();
    });
    const meter = new QualityMeter();
    this.#timers.every(STATS_MS, () => this.#tellQuality(path, meter));
    const uplink = new Uplink();
    this.#timers.every(UPLINK_MS, () => this.#judge(path, uplink));
    return path;
  }

  async #judge(path, uplink) {
    if (path.connection !== 'connected') return;
    const reports = await path.statistics();
    if (uplink.judge(performance.now(), reports, { isCameraOn: path.isSending('camera') })) {
      this.dispatchEvent(new CustomEvent('uplink', { detail: { isPoor: uplink.isPoor } }));
    }
  }

  async #tellQuality(path, meter) {
    if (path.connection !== 'connected' || this.#connection.status !== 'ready') return;
    // The first frame of somebody who joined much later says nothing about the path.
    const firstFrameMs = path.firstFrameMs <= FIRST_FRAME_MS ? path.firstFrameMs : undefined;
    const numbers = meter.numbers(await path.statistics(), firstFrameMs);
    await this.#request('stats', numbers).catch(() => {}); // nobody waits for it
  }

  #passOn(source, name) {
    source.addEventListener(name, ({ detail }) => this.dispatchEvent(new CustomEvent(name, { detail })));
  }
}

/** A ring envelope is optional: without it a callee that accepts waits for epoch 2. */
async function firstEpoch(options) {
  try {
    return await ringEpoch(options);
  } catch {
    return undefined;
  }
}
