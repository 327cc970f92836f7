// The level of a microphone, measured in this browser: nothing of it is sent.

const EVERY_MS = 100;

export class Level {
  #context;
  #timer;

  /** Calls `measured(level)` for `track` until `stop()`: the root mean square of its latest samples, as a part of full scale. A browser without Web Audio measures nothing. */
  constructor(track, measured) {
    let context;
    try {
      context = new AudioContext();
    } catch {
      return;
    }
    this.#context = context;
    const analyser = context.createAnalyser();
    context.createMediaStreamSource(new MediaStream([track])).connect(analyser);
    const samples = new Float32Array(analyser.fftSize);
    this.#timer = setInterval(() => {
      // A browser starts it only after the person has pressed something on the page.
      if (context.state === 'suspended' && navigator.userActivation?.hasBeenActive) context.resume().catch(() => {});
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
