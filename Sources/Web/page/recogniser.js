// Speech recognition on this device (Web Speech API, `processLocally`). A browser that would send the sound to a service is not used.

const AGAIN_MS = 1_000;
const MAX_FAILURES = 5; // ends in a row without a word, each soon after its beginning
const SOON_MS = 2_000;
const PASSING = ['no-speech', 'aborted', 'audio-capture']; // nobody spoke, or the microphone changed

/** The browser's interface, if it can be held to this device. */
function localRecognition() {
  const browser = /** @type {any} */ (globalThis);
  const Recognition = browser.SpeechRecognition ?? browser.webkitSpeechRecognition;
  const isLocal = typeof Recognition?.available === 'function' && 'processLocally' in Recognition.prototype;
  return isLocal ? Recognition : undefined;
}

export const canRecognise = () => localRecognition() !== undefined;

/**
 * The first of `tags` (BCP 47) that the browser recognises on this device, as `{tag, isHere}`; without `isHere` it has to be installed before. Undefined if
 * there is none.
 */
export async function recognisable(tags) {
  const Recognition = localRecognition();
  for (const tag of Recognition ? tags : []) {
    const state = await Recognition.available({ langs: [tag], processLocally: true }).catch(() => 'unavailable');
    if (state === 'available') return { tag, isHere: true };
    if (state === 'downloadable' || state === 'downloading') return { tag, isHere: false };
  }
  return undefined;
}

/** Loads what the browser needs for the language. Returns whether it has it now. */
export async function install(tag) {
  const Recognition = localRecognition();
  return Boolean(await Recognition?.install?.({ langs: [tag], processLocally: true }).catch(() => false));
}

/** Recognises what one track says until `stop()`. `said(text, isFinal)` gets the words; `failed()` is called once if the browser does not go on. */
export class Recogniser {
  #said;
  #failed;
  #recognition;
  #timer;
  #failures = 0;

  constructor({ said, failed }) {
    this.#said = said;
    this.#failed = failed;
  }

  start(track, tag) {
    this.stop();
    this.#failures = 0;
    this.#begin(track, tag);
  }

  stop() {
    clearTimeout(this.#timer);
    const recognition = this.#recognition;
    this.#recognition = undefined;
    recognition?.abort();
  }

  #begin(track, tag) {
    const Recognition = localRecognition();
    if (!Recognition) return this.#fail();
    const recognition = new Recognition();
    Object.assign(recognition, { continuous: true, interimResults: true, maxAlternatives: 1, lang: tag, processLocally: true });
    if (recognition.processLocally !== true) return this.#fail();
    this.#recognition = recognition;
    const beganAt = performance.now();
    const on = (name, action) => recognition.addEventListener(name, (event) => recognition === this.#recognition && action(event));
    on('result', ({ resultIndex, results }) => {
      this.#failures = 0;
      this.#take([...results].slice(resultIndex));
    });
    on('error', ({ error }) => PASSING.includes(error) || this.#fail());
    on('end', () => {
      this.#failures = performance.now() - beganAt < SOON_MS ? this.#failures + 1 : 0;
      if (this.#failures >= MAX_FAILURES) return this.#fail();
      // It ends by itself after a while.
      this.#timer = setTimeout(() => this.#begin(track, tag), AGAIN_MS);
      return undefined;
    });
    try {
      recognition.start(track); // the microphone that the call sends, as muted as it is there
    } catch {
      this.#fail();
    }
    return undefined;
  }

  /** Results that the browser may still change follow the final ones, and are one line. */
  #take(results) {
    const wordsOf = (result) => result[0]?.transcript ?? '';
    for (const result of results) if (result.isFinal) this.#said(wordsOf(result), true);
    const rest = results.filter(({ isFinal }) => !isFinal).map(wordsOf).join('');
    if (rest.trim()) this.#said(rest, false);
  }

  #fail() {
    this.stop();
    this.#failed();
  }
}
