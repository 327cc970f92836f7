// The warnings of a key agreement for people, each one once: about a device for each of its keys, about the call for each epoch.

import { Refusal } from './checks.js';

export class KeyWarnings {
  #tell;
  #told = new Set();

  /** `tell({problem, epoch, user, device, fingerprint, participant, isSelfRevoked})`. */
  constructor(tell) {
    this.#tell = tell;
  }

  /**
   * @param {string} problem
   * @param {{ epoch?: number, user?: string, device?: string, fingerprint?: string, participant?: number, isSelfRevoked?: boolean }} about
   */
  warn(problem, { epoch, user, device, fingerprint, participant, isSelfRevoked } = {}) {
    const name = user ? `${problem}/${user}/${device}/${fingerprint}` : `${problem}/${epoch ?? participant}`;
    if (this.#told.has(name)) return;
    this.#told.add(name);
    this.#tell({ problem, epoch, user, device, fingerprint, participant, isSelfRevoked });
  }

  /** For the console: what was refused, never what was in it. */
  refuse(error) {
    console.warn(`Conclave: ${error instanceof Refusal ? `refused ${error.message}` : `${error.name} ${error.code ?? ''}`}`);
  }
}
