// The sound of ringing: soft notes, repeated.

/** `notes` are `[frequency, delay in s]`; a tone comes every `everyMs`. */
export const incoming = { notes: [[587.3, 0], [784, 0.22]], everyMs: 2_400, loudness: 0.12 };
/** The tone of a second call, heard beside the voices of the first. */
export const waiting = { notes: [[659.3, 0], [659.3, 0.3]], everyMs: 5_000, loudness: 0.04 };
export const outgoing = { notes: [[440, 0], [440, 0.5]], everyMs: 3_600, loudness: 0.04 };

export class Tone {
  #sound;
  #context;
  #timer;

  constructor(sound) {
    this.#sound = sound;
  }

  /** Plays until it is stopped; does nothing if it already plays. */
  start() {
    if (this.#context) return;
    try {
      this.#context = new AudioContext();
    } catch {
      return; // a browser without it rings silently
    }
    this.#chime();
    this.#timer = setInterval(() => this.#chime(), this.#sound.everyMs);
  }

  stop() {
    clearInterval(this.#timer);
    this.#context?.close();
    this.#context = undefined;
  }

  #chime() {
    const { currentTime: now, destination } = this.#context;
    for (const [frequency, delay] of this.#sound.notes) {
      const oscillator = this.#context.createOscillator();
      const gain = this.#context.createGain();
      oscillator.frequency.value = frequency;
      gain.gain.setValueAtTime(0, now + delay);
      gain.gain.linearRampToValueAtTime(this.#sound.loudness, now + delay + 0.04);
      gain.gain.exponentialRampToValueAtTime(0.001, now + delay + 1.1);
      oscillator.connect(gain).connect(destination);
      oscillator.start(now + delay);
      oscillator.stop(now + delay + 1.2);
    }
  }
}
