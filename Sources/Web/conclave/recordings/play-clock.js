// The one clock of a player: a clock that runs by itself, in seconds, as the time in the recording, in µs since 1970.

export class PlayClock {
  #now;
  #base = 0; // µs, the time in the recording at `#since`
  #since = 0; // s
  #speed = 1;
  #isRunning = false;

  /** `now()` is in seconds and never goes back: that of the sound, so that pictures follow it. */
  constructor(now) {
    this.#now = now;
  }

  get isRunning() {
    return this.#isRunning;
  }

  get speed() {
    return this.#speed;
  }

  /** µs since 1970. */
  get position() {
    return this.#isRunning ? this.#base + (this.#now() - this.#since) * this.#speed * 1e6 : this.#base;
  }

  /** When `time` of the recording is due, in seconds of the clock that runs by itself. */
  dueAt(time) {
    return this.#since + (time - this.#base) / 1e6 / this.#speed;
  }

  run() {
    this.#set(this.position, true);
  }

  stop() {
    this.#set(this.position, false);
  }

  seek(time) {
    this.#set(time, this.#isRunning);
  }

  set speed(speed) {
    this.#set(this.position, this.#isRunning);
    this.#speed = speed;
  }

  #set(base, isRunning) {
    [this.#base, this.#since, this.#isRunning] = [base, this.#now(), isRunning];
  }
}
