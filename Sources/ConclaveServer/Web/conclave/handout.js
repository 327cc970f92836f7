// Handing out an epoch's secret: to the devices in a leader's `deliver`, and to those that ask later (protocol section 5, "Epochs").

import { random } from './bytes.js';
import { sameDevice } from './identity.js';
import { SeenJoinKeys } from './join-keys.js';
import { nameOf } from './roster.js';
import { SECRET_BYTES } from './transcript.js';

const ANSWERS_PER_DEVICE = 3; // of one epoch

/**
 * `request(path, body)` sends to `/app/calls/{id}/…`; `examine(record, entries)` looks devices up; `warn(problem, entry)` tells people. `demand(epoch)` asks
 * for a key that this device lacks, `accept(record, secret)` is called for one that it has made.
 */
export class Handout {
  #request;
  #examine;
  #warn;
  #demand;
  #accept;
  #seen = new SeenJoinKeys();
  #answers = new Map();
  #unanswered = new Map();

  constructor({ request, examine, warn, demand, accept }) {
    this.#request = request;
    this.#examine = examine;
    this.#warn = warn;
    this.#demand = demand;
    this.#accept = accept;
  }

  /** A newer epoch was announced: nothing is answered about those before. */
  begin(record) {
    this.#seen.keep(record.list);
    this.#answers.clear();
    this.#unanswered.clear();
  }

  /** The leader's duty: a fresh secret, or the one that follows from the epoch before, for the devices in `deliver`. */
  async lead(record, deliver) {
    if (!record.secret && record.mode === 'ratchet') return void this.#demand(record.epoch);
    const secret = record.secret ?? random(SECRET_BYTES);
    await this.#give(record, secret, deliver);
    return this.#accept(record, secret);
  }

  /** `keys.request`. */
  async answer(record, to) {
    const name = nameOf(to);
    const answers = this.#answers.get(name) ?? 0;
    if (answers >= ANSWERS_PER_DEVICE) return;
    const envelopes = await this.#envelopes(record, record.secret, [to]);
    // The person may come to trust it. Its requests until then must not use up its answers.
    if (envelopes.length === 0) {
      this.#unanswered.set(name, to);
      return;
    }
    this.#answers.set(name, answers + 1);
    await this.#request('keys', { epoch: record.epoch, envelopes });
  }

  /** Somebody may be trusted now that was not. */
  async answerAgain(record) {
    const unanswered = [...this.#unanswered.values()];
    this.#unanswered.clear();
    for (const to of unanswered) await this.answer(record, to);
  }

  /** Gives `secret` to those of `entries` that are trusted, and to the others when they are. Throws when one is not on the list, or the server does not take it. */
  async #give(record, secret, entries) {
    const envelopes = await this.#envelopes(record, secret, entries);
    for (const entry of entries) if (!envelopes.some(({ to }) => sameDevice(to, entry))) this.#unanswered.set(nameOf(entry), entry);
    await this.#request('keys', { epoch: record.epoch, envelopes });
  }

  async #envelopes(record, secret, entries) {
    const listed = entries.map((entry) => record.listed(entry));
    const unknown = entries.map((entry, index) => ({ ...listed[index], keys: entry.keys })).filter((entry) => !record.keysOf(entry));
    await this.#examine(record, unknown);
    const made = await Promise.all(entries.map((entry) => record.envelope(entry, secret, this.#seen)));
    made.forEach((envelope, index) => envelope?.problem && this.#warn(envelope.problem, listed[index]));
    return made.filter((envelope) => envelope && !envelope.problem);
  }
}
