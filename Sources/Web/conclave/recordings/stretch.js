// Sound at another speed with its pitch kept: overlap-add with the best overlap (WSOLA). Samples come and go in pieces of any length.

const WINDOW_S = 0.03;
const OVERLAP_S = 0.01;
const SEARCH_S = 0.008;
const STEP = 4; // of the samples that are compared

export class Stretch {
  #speed;
  #window;
  #overlap;
  #search;
  #input = []; // for each channel
  #tails; // the end of what was written, not yet faded
  #skipped = 0; // samples of the next window's place that have a fraction

  constructor(sampleRate, speed, channels) {
    this.#speed = speed;
    [this.#window, this.#overlap, this.#search] = [WINDOW_S, OVERLAP_S, SEARCH_S].map((seconds) => Math.round(seconds * sampleRate));
    this.#input = Array.from({ length: channels }, () => new Float32Array(0));
  }

  /** The stretched sound of the next `pieces`, a `Float32Array` of each channel. The end stays inside until more comes. */
  push(pieces) {
    if (this.#speed === 1) return pieces;
    this.#input = this.#input.map((samples, channel) => joined(samples, pieces[channel]));
    const parts = this.#input.map(() => /** @type {Float32Array[]} */ ([]));
    const advance = (this.#window - this.#overlap) * this.#speed;
    while (this.#input[0].length >= Math.ceil(advance) + this.#search + this.#window) {
      const at = this.#tails ? this.#bestPlace() : 0;
      this.#input.forEach((samples, channel) => parts[channel].push(this.#faded(samples.subarray(at, at + this.#window), this.#tails?.[channel])));
      this.#tails = this.#input.map((samples) => samples.slice(at + this.#window - this.#overlap, at + this.#window));
      const exact = advance + this.#skipped;
      this.#skipped = exact % 1;
      this.#input = this.#input.map((samples) => samples.slice(Math.floor(exact)));
    }
    return parts.map((list) => list.reduce(joined, new Float32Array(0)));
  }

  /** The place within the search at which the next window continues what was written. */
  #bestPlace() {
    const [samples, tail] = [this.#input[0], this.#tails[0]];
    let [best, most] = [0, -Infinity];
    for (let at = 0; at < this.#search; at += STEP) {
      let likeness = 0;
      let energy = 1e-9;
      for (let n = 0; n < this.#overlap; n += STEP) {
        likeness += tail[n] * samples[at + n];
        energy += samples[at + n] ** 2;
      }
      if (likeness / Math.sqrt(energy) > most) [best, most] = [at, likeness / Math.sqrt(energy)];
    }
    return best;
  }

  /** A window without its end, which the next one fades into, and with its beginning faded into `tail`. */
  #faded(samples, tail) {
    const part = samples.slice(0, this.#window - this.#overlap);
    if (tail) for (let n = 0; n < this.#overlap; n += 1) part[n] = tail[n] + ((part[n] - tail[n]) * n) / this.#overlap;
    return part;
  }
}

function joined(one, other) {
  const both = new Float32Array(one.length + other.length);
  both.set(one);
  both.set(other, one.length);
  return both;
}
