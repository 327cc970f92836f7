// The rings of this device, each until it is answered or over, or its time is up.

import { isCallID, isID } from '../wire/index.js';

const over = {
  'call.answered-elsewhere': 'answered-elsewhere',
  'call.declined-elsewhere': 'declined-elsewhere',
  'call.cancelled': 'cancelled',
  'call.missed': 'missed',
  'call.ended': 'ended',
};
const GRACE_MS = 2_000; // the server normally says first that a ring is over
const CALLERS = 1_000;

/** `rang(ring)` and `ended({ring, reason, by})` are called for each. */
export class Rings {
  #rings = new Map();
  #callers = new Map(); // call -> who last rang here
  #rang;
  #ended;

  constructor({ rang, ended }) {
    this.#rang = rang;
    this.#ended = ended;
  }

  /** Handles an event about a ring. A ring without a call or a caller is ignored. */
  handle(name, body) {
    if (name === 'call.ring') {
      if (isCallID(body.call) && isID(body.from) && Array.isArray(body.members)) this.#add(body);
    }
    else if (name in over) this.end(body.call, over[name], body);
  }

  /** The ring of this call, until it is over. */
  find(call) {
    return this.#rings.get(call)?.ring;
  }

  /** The newest ring that `fits`. */
  findLast(fits) {
    return [...this.#rings.values()].map(({ ring }) => ring).filter(fits).at(-1);
  }

  /** The user who last rang this device for `call`; undefined if nobody has. */
  callerOf(call) {
    return this.#callers.get(call);
  }

  end(call, reason = 'answered', { by = undefined } = {}) {
    const entry = this.#rings.get(call);
    if (!entry) return;
    clearTimeout(entry.timer);
    this.#rings.delete(call);
    this.#ended({ ring: entry.ring, reason, by });
  }

  /** A ring that comes again (the connection was gone) replaces itself. A ring of another caller is another ring: the person answers the caller that was shown. */
  #add(body) {
    if (this.find(body.call) && this.find(body.call).from !== body.from) this.end(body.call, 'cancelled');
    const known = this.#rings.get(body.call);
    this.#callers.delete(body.call);
    this.#callers.set(body.call, body.from);
    if (this.#callers.size > CALLERS) this.#callers.delete(this.#callers.keys().next().value);
    clearTimeout(known?.timer);
    const timer = setTimeout(() => this.end(body.call, 'missed', body), Math.max(0, body.expiresAt - body.at) + GRACE_MS);
    this.#rings.set(body.call, { ring: { ...body }, timer });
    if (!known) this.#rang(this.#rings.get(body.call).ring);
  }
}
