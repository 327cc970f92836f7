// Time-outs and intervals that end together with their owner.

export class Timers {
  #running = new Set();

  /** Runs `action` once, `ms` from now, unless `clear` is called before. */
  after(ms, action) {
    const timer = setTimeout(() => {
      this.#running.delete(timer);
      action();
    }, ms);
    this.#running.add(timer);
  }

  /** Runs `action` every `ms`, until `clear`. */
  every(ms, action) {
    this.#running.add(setInterval(action, ms));
  }

  clear() {
    for (const timer of this.#running) clearTimeout(timer); // which ends an interval as well (HTML, section 8.7)
    this.#running.clear();
  }
}
