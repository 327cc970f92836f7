// Whether somebody speaks into a muted microphone. A click or a cough is not speech, and a stretch of speech is told once.

const SPEECH = 0.02; // of full scale: a quiet room is below
const WINDOW_MS = 1_500;
const LOUD = 6; // measurements within the window, of which a tenth of a second has one
const STRETCH_ENDS_MS = 5_000; // of silence
const SHOWN_MS = 8_000;

export class MutedSpeech {
  #loud = []; // times
  #toldAt; // in the current stretch
  #heardAt = -Infinity;

  /** Takes the microphone's `level`, as a part of full scale, at `now` in ms. Returns whether the person is to be told now that nobody hears. */
  hear(level, now) {
    if (now - this.#heardAt > STRETCH_ENDS_MS) this.#toldAt = undefined;
    this.#loud = this.#loud.filter((at) => now - at < WINDOW_MS);
    if (level > SPEECH) this.#loud.push(now);
    if (this.#loud.length >= LOUD) {
      this.#heardAt = now;
      this.#toldAt ??= now;
    }
    return this.#toldAt !== undefined && now - this.#toldAt < SHOWN_MS;
  }
}
