// The warnings of a key agreement for people, each given once: about a device for each of its keys, about the call for each epoch.

import { Refusal } from '../wire/index.js';

const HARMLESS = ['waiting'];
const KEPT = 16; // of each kind of problem, the first; of what is harmless, the latest

/** The warnings and notices of a call that nobody looks at, until somebody does. Many harmless ones, or many of one kind, displace none of another kind. */
export class Untold {
  #harmless = []; // [name, detail]
  #serious = new Map(); // problem -> details by subject

  /** `name` is `warning` or `notice`. */
  add(name, detail) {
    if (name === 'warning' && !HARMLESS.includes(detail.problem)) this.#keep(detail);
    else {
      this.#harmless.push([name, detail]);
      if (this.#harmless.length > KEPT) this.#harmless.shift();
    }
  }

  /** Returns all of them, `[name, detail]` each, once; the important warnings come last, in front of the person. */
  take() {
    const serious = [...this.#serious.values()].flatMap((details) => [...details.values()]);
    this.#serious.clear();
    return [...this.#harmless.splice(0), ...serious.map((detail) => ['warning', detail])];
  }

  #keep(detail) {
    const { problem, user, device, fingerprint, by, epoch, participant } = detail;
    const about = [user, device, fingerprint, by, ...(user ? [] : [epoch, participant])].join('/');
    const details = this.#serious.get(problem) ?? new Map();
    if (details.size < KEPT || details.has(about)) details.set(about, detail);
    this.#serious.set(problem, details);
  }
}

export class KeyWarnings {
  #tell;
  #told = new Set();

  /** `tell({problem, epoch, user, device, fingerprint, participant, isSelfRevoked, isOfVerified})`. */
  constructor(tell) {
    this.#tell = tell;
  }

  /**
   * @param {string} problem
   * @param {{ epoch?: number, user?: string, device?: string, fingerprint?: string, participant?: number, isSelfRevoked?: boolean, isOfVerified?: boolean }} about
   */
  warn(problem, { epoch, user, device, fingerprint, participant, isSelfRevoked, isOfVerified } = {}) {
    const name = user ? `${problem}/${user}/${device}/${fingerprint}` : `${problem}/${epoch ?? participant}`;
    if (this.#told.has(name)) return;
    this.#told.add(name);
    this.#tell({ problem, epoch, user, device, fingerprint, participant, isSelfRevoked, isOfVerified });
  }

  /** For the console: what was refused, never its contents. */
  refuse(error) {
    console.warn(`Conclave: ${error instanceof Refusal ? `refused ${error.message}` : `${error.name} ${error.code ?? ''}`}`);
  }
}
