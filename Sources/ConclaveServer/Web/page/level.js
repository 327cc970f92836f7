// The level of a microphone, measured in this browser: nothing of it is sent.

const EVERY_MS = 100;

export class Level {
  #context;
  #timer;

  /** Calls `measured(level)` for `track` until `stop()`: the root mean square of its latest samples, as a part of full scale. A browser without Web Audio measures nothing. */
  constructor(track, measured) {
    try {
      this.#context = new AudioContext();
    } catch {
      return;
    }
    const analyser = this.#context.createAnalyser();
    this.#context.createMediaStreamSource(new MediaStream([track])).connect(analyser);
    const samples = new Float32Array(analyser.fftSize);
    this.#timer = setInterval(() => {
      analyser.getFloatTimeDomainData(samples);
      measured(Math.sqrt(samples.reduce((sum, sample) => sum + sample * sample, 0) / samples.length));
    }, EVERY_MS);
  }

  stop() {
    clearInterval(this.#timer);
    this.#context?.close();
    this.#context = undefined;
  }
}
