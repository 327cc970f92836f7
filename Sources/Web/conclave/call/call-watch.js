// Runs the rules of `roster-watch.js` for one call: passes on what is known, lets time pass, and carries out the results.

import { RosterWatch, exactName } from '../keys/index.js';

const TICK_MS = 500;
const NOT_SHOWN = { cause: 'not-shown', people: [], isHeld: false, needsPerson: false };

/**
 * `facts()` returns the argument of `RosterWatch.update` without `isAsking`.
 *
 * Events: `ask`: the call's state and list are to be requested, with `asked`; `stop` when `stopped` is another; `warning` with `{problem, …}` for people:
 * `stranger`, `gone`, `stopped` (and its `cause`) or `old-epoch`.
 */
export class CallWatch extends EventTarget {
  #watch = new RosterWatch();
  #facts;
  #asking = 0;
  #timer;
  #cause;
  #isShown = true;
  #warnedEpoch = 0;

  constructor(facts) {
    super();
    this.#facts = facts;
    this.#next();
  }

  get people() {
    return this.#watch.people;
  }

  /** As `RosterWatch.stopped`; with the cause `not-shown` if the page could not draw who hears. */
  get stopped() {
    return this.#isShown ? this.#watch.stopped : NOT_SHOWN;
  }

  get isOld() {
    return this.#watch.isOld;
  }

  /** While `asked`, a promise, is pending the rules wait, because it may explain what they see. */
  async during(asked) {
    this.#asking += 1;
    this.look();
    try {
      return await asked;
    } finally {
      this.#asking -= 1;
      this.look();
    }
  }

  /** Something that the rules depend on has changed. */
  look() {
    this.#watch.update(performance.now(), { ...this.#facts(), isAsking: this.#asking > 0 });
    this.#tell();
  }

  /** The person sends in spite of `shown`, the devices that the stop named. */
  sendAnyway(shown) {
    this.#watch.sendAnyway(performance.now(), shown);
    this.#tell();
  }

  /** Whether the page could draw who hears. While it cannot, nothing is sent. */
  setShown(isShown) {
    this.#isShown = isShown;
    this.#tell();
  }

  close() {
    clearTimeout(this.#timer);
  }

  #next() {
    this.#timer = setTimeout(() => {
      this.#next();
      this.look();
      if (this.#watch.tick(performance.now()) === 'ask') this.dispatchEvent(new Event('ask'));
      this.#tell();
    }, TICK_MS);
  }

  /** Judges again when `state` and `keys/list` are answered and applied: `answers` is the promise of that. */
  async asked(answers) {
    const isAnswered = await this.during(answers).then(
      () => true,
      ({ code }) => code !== 'connection-lost', // if the server leaves this open, it has no better answer
    );
    if (isAnswered) this.#watch.asked(performance.now());
    this.#tell();
  }

  #tell() {
    for (const news of this.#watch.takeNews()) this.#warn(news);
    const { stopped, isOld } = this;
    const cause = stopped && [stopped.cause, stopped.needsPerson, ...stopped.people.map(exactName)].join();
    if (cause !== this.#cause) {
      this.#cause = cause;
      this.dispatchEvent(new Event('stop'));
      if (stopped) this.#warn({ problem: 'stopped', cause: stopped.cause });
    }
    const { epoch } = this.#facts();
    if (!isOld || this.#warnedEpoch === epoch) return;
    this.#warnedEpoch = epoch;
    this.#warn({ problem: 'old-epoch', epoch });
  }

  #warn(detail) {
    this.dispatchEvent(new CustomEvent('warning', { detail }));
  }
}
