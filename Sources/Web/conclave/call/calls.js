// The calls of this device (the active one and those on hold), and the user's calls on other devices.

import { changesIn } from '../wire/index.js';
import { CallState } from './call-state.js';
import { Call } from './call.js';
import { crossedCall, isOfPeople, startOrJoinCrossed } from './crossing.js';

/** @typedef {import('./call-requests.js').CallConnection} CallConnection */

/** Events: `change`. */
export class Calls extends EventTarget {
  /** The active call, or none. */
  current;
  /** Calls that run on another device of this user, by id: a `CallState` each. */
  elsewhere = new Map();
  #calls = new Set();
  /** @type {CallConnection} */
  #connection;
  #starting = Promise.resolve();
  #rung = []; // the callees, until the server has answered

  /** @param {CallConnection} connection */
  constructor(connection) {
    super();
    this.#connection = connection;
  }

  get held() {
    return [...this.#calls].filter((call) => call !== this.current);
  }

  find(id) {
    return [...this.#calls].find((call) => call.id === id);
  }

  /** Adds a call that is joined by `kind` (see `Call.join`). The call that runs here is held meanwhile, and resumes if the join fails. */
  async add(kind, { id = '', body = {}, ring = {}, secret = '', isLasting = false, root = undefined, camera = true, microphone = true, isNew = false }) {
    const before = this.current;
    await this.#hold(before);
    const call = new Call({ id, secret, isLasting, root, connection: this.#connection });
    this.#calls.add(call);
    this.current = call;
    call.addEventListener('ended', ({ detail }) => this.#ended(call, detail));
    this.#changed();
    const joined = isNew ? this.#start(call, body) : call.join(kind, body, ring);
    // Events of the call may arrive before its id is known here: they wait.
    if (isNew) this.#starting = joined.catch(() => {});
    const captured = call.capture({ camera, microphone });
    try {
      const reply = await joined;
      call.results = reply.results ?? {};
      if (this.elsewhere.delete(call.id)) this.#changed();
      captured.then(() => call.sendCaptured());
      return call;
    } catch (error) {
      call.giveUp();
      const same = this.find(crossedCall(error));
      const next = same ?? before;
      if (next && !next.hasEnded) await this.resume(next);
      if (same) return same;
      throw error;
    }
  }

  /**
   * Resolves when the server has answered a `start` that calls the people of `ring`, so that it is known which of the two calls remains; undefined if there is
   * none.
   */
  settlingOf({ members }) {
    return this.#rung.length > 0 && isOfPeople(members, this.#connection.user, this.#rung) ? this.#starting : undefined;
  }

  async #start(call, body) {
    this.#rung = body.callees;
    try {
      return await startOrJoinCrossed(call, body, { connection: this.#connection, isHere: (id) => Boolean(this.find(id)) });
    } finally {
      this.#rung = [];
    }
  }

  /** Makes `call` the active call again; the previous one is held. */
  async resume(call) {
    if (this.current !== call) await this.#hold(this.current);
    this.current = call;
    this.#changed();
    await call.hold(false);
  }

  /** After a connect, and when events were lost: each call requests what it missed. */
  async connectionReady(options) {
    await Promise.all([...this.#calls].map((call) => call.connectionReady(options)));
  }

  networkChanged() {
    for (const call of this.#calls) call.networkChanged();
  }

  /** This device is no longer in any call. */
  endAll() {
    for (const call of this.#calls) call.giveUp();
  }

  reconsiderKeys() {
    for (const call of this.#calls) call.reconsiderKeys();
  }

  /** An event about a call. Resolves as `Call.handle` does. */
  async handle(name, body) {
    if (!this.find(body.call) && this.find('')) await this.#starting;
    const call = this.find(body.call);
    if (call) return call.handle(name, body);
    if (name === 'call.member' || name === 'call.members') await this.#ownMember(body.call, changesIn(name, body), body.at);
    if (name === 'call.ended' && this.elsewhere.delete(body.call)) this.#changed();
    return name !== 'keys.envelope';
  }

  /**
   * Handles the server's list of calls that this user may join. Returns those that are neither here nor on another device. `answered` are ids of calls that may
   * run on another device.
   */
  async sort(states, answered = []) {
    const listed = states.map((state) => this.#facts(state)).filter(({ id }) => !this.find(id));
    // The list does not contain calls that are joined on another device: those are requested, and those heard of before.
    const unlisted = (id) => !this.find(id) && !listed.some((facts) => facts.id === id);
    const known = [...new Set([...this.elsewhere.keys(), ...answered])].filter(unlisted);
    const others = await Promise.all(known.map((id) => this.#ask(id)));
    const all = [...listed, ...others.filter(Boolean)];
    // A call may have moved here while the server was asked.
    const away = all.filter(({ id, elsewhere }) => elsewhere && !this.find(id));
    this.elsewhere = new Map(away.map((facts) => [facts.id, facts]));
    this.#changed();
    return listed.filter(({ id, phase }) => !this.elsewhere.has(id) && !this.find(id) && phase !== 'ringing');
  }

  /** This user is in a call without this device. */
  async #ownMember(call, changes, at) {
    const own = changes.filter(({ user }) => user === this.#connection.user).at(-1);
    if (!own) return;
    const known = this.elsewhere.get(call);
    if (own.participants.length === 0) {
      if (this.elsewhere.delete(call)) this.#changed();
      return;
    }
    if (known) known.memberChanged(own, at);
    else {
      const facts = await this.#ask(call);
      if (!facts?.elsewhere || this.find(call)) return;
      facts.isArriving = own.state === 'joined';
      this.elsewhere.set(call, facts);
    }
    this.#changed();
  }

  /** A call's facts; undefined when it is over. */
  async #ask(id) {
    const state = await this.#connection.request(`calls/${id}/state`).catch(() => undefined);
    return state && state.state !== 'ended' ? this.#facts(state) : undefined;
  }

  #facts(state) {
    const { user, device } = this.#connection.identity;
    const facts = new CallState({ id: state.id, user, device });
    facts.take(state);
    return facts;
  }

  /** A refusal is ignored: the call is silent here, and joining another call holds it at the server, too. */
  async #hold(call) {
    await call?.hold(true).catch(() => {});
  }

  #ended(call, { reason }) {
    this.#calls.delete(call);
    if (reason === 'elsewhere' && call.facts.elsewhere) this.elsewhere.set(call.id, call.facts);
    if (this.current === call) this.current = undefined;
    this.#changed();
  }

  #changed() {
    this.dispatchEvent(new Event('change'));
  }
}
