// Virtual time, and a record of every cipher that runs: for worlds of many clients in one process.

import { hex } from '../web.mjs';

const real = { setTimeout, clearTimeout, setInterval, clearInterval, setImmediate, now: Date.now, performanceNow: performance.now, random: Math.random };
const START = 1_800_000_000_000;

/** A generator of numbers from 0 to 1, the same for the same seed (mulberry32). */
export function randomOf(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** While it `isSealing`, an attacker seals with others' keys, which no client does. */
export const attacker = { isSealing: false };

/** Watches WebCrypto: how many operations are pending, and every (key, nonce) that sealed. */
class CipherAudit {
  pending = 0;
  sealed = new Map(); // key/nonce -> how often
  repeated = [];
  /** If set, `hold(promise)` delays the result of a cipher. */
  hold;
  #keys = new WeakMap();
  #original = new Map();

  install() {
    const { subtle } = crypto;
    for (const name of ['importKey', 'encrypt', 'decrypt', 'sign', 'verify', 'digest', 'deriveBits', 'generateKey', 'exportKey']) {
      this.#original.set(name, subtle[name]);
      const call = subtle[name].bind(subtle);
      subtle[name] = (...options) => this.#watch(name, options, call);
    }
  }

  remove() {
    for (const name of this.#original.keys()) delete crypto.subtle[name];
  }

  async #watch(name, options, call) {
    if (name === 'encrypt' && options[0].name === 'AES-GCM' && !attacker.isSealing) this.#note(options);
    this.pending += 1;
    try {
      const running = call(...options);
      const result = await (this.hold ? this.hold(running) : running);
      if (name === 'importKey' && options[2] === 'AES-GCM') this.#keys.set(result, hex(options[1]));
      return result;
    } finally {
      this.pending -= 1;
    }
  }

  #note([{ iv }, key]) {
    const name = `${this.#keys.get(key)}/${hex(iv)}`;
    if (this.sealed.has(name)) this.repeated.push(name);
    this.sealed.set(name, true);
  }
}

/** From `install` to `remove` it replaces all clocks and timers of the process. Intervals do not run. */
export class VirtualTime {
  now = 0;
  audit = new CipherAudit();
  #timers = new Map();
  #next = 1;

  constructor(seed = 1) {
    this.random = randomOf(seed);
  }

  install() {
    this.audit.install();
    globalThis.setTimeout = (action, ms = 0) => this.#add(action, ms);
    globalThis.clearTimeout = (id) => void (this.#timers.delete(id) || real.clearTimeout(id));
    globalThis.setInterval = () => 0;
    globalThis.clearInterval = (id) => void real.clearInterval(id);
    Date.now = () => START + Math.floor(this.now);
    performance.now = () => this.now;
    Math.random = this.random;
    return this;
  }

  remove() {
    this.audit.remove();
    Object.assign(globalThis, { setTimeout: real.setTimeout, clearTimeout: real.clearTimeout, setInterval: real.setInterval, clearInterval: real.clearInterval });
    Date.now = real.now;
    performance.now = real.performanceNow;
    Math.random = real.random;
  }

  #add(action, ms) {
    const id = this.#next++;
    this.#timers.set(id, { action, at: this.now + Math.max(0, ms) });
    return id;
  }

  after(ms, action) {
    return this.#add(action, ms);
  }

  /** Waits until nothing runs: all promises and ciphers are settled. */
  async settle() {
    for (let idle = 0; idle < 2; ) {
      await new Promise((resolve) => real.setImmediate(resolve));
      idle = this.audit.pending === 0 ? idle + 1 : 0;
    }
  }

  /** Advances time by `ms`. */
  async run(ms) {
    const end = this.now + ms;
    await this.settle();
    for (;;) {
      let first;
      for (const [id, timer] of this.#timers) if (timer.at <= end && (!first || timer.at < first.timer.at)) first = { id, timer };
      if (!first) break;
      this.#timers.delete(first.id);
      this.now = Math.max(this.now, first.timer.at);
      first.timer.action();
      await this.settle();
    }
    this.now = end;
  }
}

const TOGETHER = 4; // ciphers that end in one turn

/**
 * Time in which ciphers end in an order that the seed chooses, and timers (events and answers of a server) run while ciphers are pending. This covers
 * everything that a server can do between two turns of the page.
 */
export class InterleavedTime extends VirtualTime {
  /** The probability that time advances while ciphers are pending. */
  haste = 0.15;
  #held = [];

  install() {
    super.install();
    this.audit.hold = (running) => {
      running.catch(() => {}); // told when it is its turn
      return new Promise((resolve) => this.#held.push({ running, resolve }));
    };
    return this;
  }

  async settle() {
    await this.#turns(() => this.random() < this.haste);
  }

  /** Waits until all ciphers are done. */
  async drain() {
    await this.#turns(() => false);
  }

  /** Calls `isEnough()` before each turn. */
  async #turns(isEnough) {
    for (;;) {
      await new Promise((resolve) => real.setImmediate(resolve)); // everything that follows from promises
      if (this.#held.length === 0 || isEnough()) return;
      const count = 1 + Math.floor(this.random() * TOGETHER);
      const ending = [];
      while (ending.length < count && this.#held.length > 0) ending.push(...this.#held.splice(Math.floor(this.random() * this.#held.length), 1));
      await Promise.allSettled(ending.map(({ running }) => running));
      for (const { running, resolve } of ending) resolve(running);
    }
  }
}
