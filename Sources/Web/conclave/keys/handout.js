// Handing out an epoch's secret: to the devices in a leader's `deliver`, and to those that request it later (protocol section 5, "Epochs").

import { sameDevice } from '../trust/index.js';
import { Refusal } from '../wire/index.js';
import { SeenJoinKeys } from './join-keys.js';
import { nameOf } from './roster.js';

const ANSWERS_PER_DEVICE = 3; // of one epoch

/**
 * `request(path, body)` sends to `/app/calls/{id}/…`. `examine(record, entries)` looks devices up; `accept(record)` is called when the server has accepted what
 * this device proposed. `demands` requests a key that this device lacks. With a broken history of `lists` nothing is handed out.
 */
export class Handout {
  #request;
  #examine;
  #accept;
  #lists;
  #demands;
  #warnings;
  #seen = new SeenJoinKeys();
  #answers = new Map();
  #unanswered = new Map();
  #offers = new WeakMap(); // record -> a promise, until the server has answered this device's proposal as leader

  constructor({ request, examine, accept, lists, demands, warnings }) {
    this.#request = request;
    this.#examine = examine;
    this.#accept = accept;
    this.#lists = lists;
    this.#demands = demands;
    this.#warnings = warnings;
  }

  /** A newer epoch was announced: requests about earlier ones are not answered. */
  begin(record) {
    this.#seen.keep(record.list);
    // New maps: what is under way for the previous epoch counts in the old ones.
    this.#answers = new Map();
    this.#unanswered = new Map();
  }

  /** The leader's duty: a fresh secret, or the one that follows from the previous epoch, for the devices in `deliver`. */
  async lead(record, deliver) {
    if (!record.hasSecret && record.mode === 'ratchet') return void this.#demands.begin(record.epoch);
    record.propose();
    const given = this.#give(record, deliver).then(() => this.#accept(record));
    const offer = Promise.allSettled([given, this.#offers.get(record)]).then(() => this.#offers.get(record) === offer && this.#offers.delete(record));
    this.#offers.set(record, offer);
    return given;
  }

  /**
   * A promise while the server has not answered this device's proposal. Until then the device must not accept another's secret, because it has signed its own.
   */
  offered(record) {
    return this.#offers.get(record);
  }

  /** `keys.request`. */
  async answer(record, to) {
    const name = nameOf(to);
    const [answers, unanswered] = [this.#answers, this.#unanswered];
    if ((answers.get(name) ?? 0) >= ANSWERS_PER_DEVICE) return;
    answers.set(name, (answers.get(name) ?? 0) + 1); // immediately: many may be requested together
    const envelopes = await this.#envelopes(record, [to]);
    // The person may come to trust it. Its requests until then must not use up its answers.
    if (envelopes.length === 0) {
      answers.set(name, answers.get(name) - 1);
      unanswered.set(name, to);
      return;
    }
    await this.#send(record, envelopes);
  }

  /** Somebody who was not trusted may be trusted now. */
  async answerAgain(record) {
    const unanswered = [...this.#unanswered.values()];
    this.#unanswered.clear();
    for (const to of unanswered) await this.answer(record, to);
  }

  /**
   * Gives the secret to those of `entries` that are trusted, and to the others once they are. Throws if one is not on the list, or the server does not accept
   * it.
   */
  async #give(record, entries) {
    const unanswered = this.#unanswered;
    const envelopes = await this.#envelopes(record, entries);
    for (const entry of entries) if (!envelopes.some(({ to }) => sameDevice(to, entry))) unanswered.set(nameOf(entry), entry);
    await this.#send(record, envelopes);
  }

  /** Throws if the epoch or the stay is over, whenever that happened. */
  async #envelopes(record, entries) {
    const listed = entries.map((entry) => record.listed(entry));
    const unknown = entries.map((entry, index) => ({ ...listed[index], keys: entry.keys })).filter((entry) => !record.keysOf(entry));
    await this.#examine(record, unknown);
    this.#check(record);
    const made = await Promise.all(entries.map((entry) => record.envelope(entry, this.#seen)));
    made.forEach((envelope, index) => envelope?.problem && this.#warnings.warn(envelope.problem, { epoch: record.epoch, ...listed[index] }));
    return made.filter((envelope) => envelope && !envelope.problem);
  }

  /** Nothing may happen between the check and the request. */
  #send(record, envelopes) {
    this.#check(record);
    return this.#request('keys', { epoch: record.epoch, envelopes });
  }

  /** Before anything is sealed, and again before it is sent: both may take as long as the server likes. */
  #check(record) {
    if (record.isOver || this.#lists.isBroken) throw new Refusal('a key of an epoch that is over');
  }
}
