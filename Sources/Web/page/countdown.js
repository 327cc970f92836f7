// The seconds before something begins by itself. Time is an argument, in ms.

export class Countdown {
  #left;
  #since; // undefined while it stands still

  /** It begins to run at `now`. */
  constructor(ms, now) {
    [this.#left, this.#since] = [ms, now];
  }

  get isPaused() {
    return this.#since === undefined;
  }

  /** ms; 0 when it is over. */
  leftAt(now) {
    return Math.max(0, this.#left - (this.isPaused ? 0 : now - this.#since));
  }

  pause(now) {
    [this.#left, this.#since] = [this.leftAt(now), undefined];
  }

  resume(now) {
    this.#since ??= now;
  }
}
