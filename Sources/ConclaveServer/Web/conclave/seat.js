// One join of one call: the participant that it made, with its worker, keys, path and messages. Coming back makes another.

import { ringEpoch } from './envelopes.js';
import { Refusal, isCallID, replyIn } from './checks.js';
import { JoinKeys } from './join-keys.js';
import { KeyAgreement } from './keys.js';
import { Media, startWorker } from './media.js';
import { MessageSealer } from './messages.js';
import { QualityMeter } from './quality.js';
import { RequestError } from './stomp.js';

const STATS_MS = 10_000;
const FIRST_FRAME_MS = 60_000;
const LOST_ANSWERS = 3;

/** Events: those of `Media` and `KeyAgreement`, of the latter `change` as `keys`. */
export class Seat extends EventTarget {
  id;
  kind;
  reply;
  participant;
  keys;
  transport;
  messages;
  #connection;
  #worker;
  #join;
  #first;
  #statsTimer;

  /** Asks the server to join by `kind`; `seat.reply` is what it said. `body` goes with the request. The id of a call that starts is this device's choice. */
  static async join({ kind, id, body, connection }) {
    const seat = new Seat();
    seat.#connection = connection;
    const { identity, directory } = connection;
    const isStart = kind === 'start';
    seat.kind = kind;
    seat.id = isStart ? crypto.randomUUID() : id;
    if (!isCallID(seat.id)) throw new Refusal('a call with an id of another form');
    [seat.#join, seat.#worker] = await Promise.all([JoinKeys.make(identity, seat.id), startWorker()]);
    try {
      if (isStart) seat.#first = await firstEpoch({ identity, directory, join: seat.#join, call: seat.id, callees: body.callees });
      const asked = { ...body, ...seat.#join.wire, ...(isStart ? { id: seat.id } : {}) };
      const own = { user: identity.user, device: identity.device, joinId: seat.#join.wire.joinId };
      seat.reply = replyIn(await seat.#ask(isStart ? 'calls/start' : `calls/${id}/${kind}`, asked), { id: seat.id, isStart, own });
    } catch (error) {
      seat.#worker.terminate();
      if (!(error instanceof Refusal)) throw error;
      connection.request(`calls/${seat.id}/leave`).catch(() => {});
      throw new RequestError({ code: 'reply.refused', message: `The server’s answer does not fit what was asked (${error.message}). Nothing was sent.` });
    }
    seat.participant = seat.reply.participant;
    return seat;
  }

  /** Makes keys and path. `facts` is the call's state with the reply in it, `ring` the ring that was accepted. */
  async begin(facts, ring = {}) {
    this.keys = this.#agreement();
    this.keys.seated(facts.seats);
    if (this.kind === 'start') await this.keys.begin(this.#first);
    if (this.kind === 'accept') await this.keys.beginRung(ring, this.#connection.rings);
    this.#openTransport();
    this.transport.wantFor(facts.tracksOfOthers);
  }

  close() {
    clearInterval(this.#statsTimer);
    this.keys?.close();
    if (this.transport) this.transport.close();
    else this.#worker.terminate();
  }

  #request(rest, body) {
    return this.#connection.request(`calls/${this.id}/${rest}`, body);
  }

  async #ask(path, body) {
    if (!this.#first) return this.#askUntilAnswered(path, body);
    try {
      return await this.#askUntilAnswered(path, { ...body, envelopes: this.#first.envelopes });
    } catch (error) {
      // A callee's device went between being listed and being rung.
      if (!error.code?.startsWith('keys.')) throw error;
      this.#first = undefined;
      return this.#askUntilAnswered(path, body);
    }
  }

  /** The same join asked again does nothing twice (protocol 4, rule 14), so a lost answer is asked for again. */
  async #askUntilAnswered(path, body) {
    for (let attempt = 0; ; attempt += 1) {
      try {
        return await this.#connection.request(path, body);
      } catch (error) {
        if (error.code !== 'connection-lost' || attempt >= LOST_ANSWERS) throw error;
      }
    }
  }

  #agreement() {
    const { identity, directory } = this.#connection;
    const keys = new KeyAgreement({
      call: this.id,
      identity,
      directory,
      join: this.#join,
      participant: this.participant,
      request: (rest, content) => this.#request(rest, content),
      post: (message) => this.#worker.postMessage(message),
    });
    keys.addEventListener('change', () => this.dispatchEvent(new Event('keys')));
    for (const name of ['warning', 'broken', 'unlisted']) this.#passOn(keys, name);
    return keys;
  }

  #openTransport() {
    const worker = this.#worker;
    const { participant } = this;
    this.transport = new Media({ ice: this.reply.ice, worker, participant, request: (content) => this.#request('media', content) });
    this.messages = new MessageSealer(worker, this.keys);
    for (const name of ['change', 'connection', 'speaking', 'failures', 'refused-track', 'lost']) this.#passOn(this.transport, name);
    this.transport.addEventListener('connection', () => {
      // Where the path was lost, the connection may be too, and say nothing of it for a long time.
      if (this.transport.connection === 'disconnected') this.#connection.hurry();
    });
    const meter = new QualityMeter();
    this.#statsTimer = setInterval(() => this.#tellQuality(meter), STATS_MS);
  }

  async #tellQuality(meter) {
    if (this.transport.connection !== 'connected' || this.#connection.status !== 'ready') return;
    // The first frame of somebody who came much later says nothing about the path.
    const firstFrameMs = this.transport.firstFrameMs <= FIRST_FRAME_MS ? this.transport.firstFrameMs : undefined;
    const numbers = meter.numbers(await this.transport.statistics(), firstFrameMs);
    await this.#request('stats', numbers).catch(() => {}); // nobody waits for it
  }

  #passOn(source, name) {
    source.addEventListener(name, ({ detail }) => this.dispatchEvent(new CustomEvent(name, { detail })));
  }
}

/** A ring envelope is a wish: without it a callee that accepts waits for epoch 2. */
async function firstEpoch(options) {
  try {
    const made = await ringEpoch(options);
    return made.envelopes.length > 0 ? made : undefined;
  } catch {
    return undefined;
  }
}
