// A recording that is still being made, as one of its readers follows it: segments, witnesses and notes are asked for as they come. The server says that there is more;
// what comes is checked like what came before.

import { REEL } from './segment.js';

const ASKS_EVERY_MS = 40_000; // the server tells of changes for 60 s after each request (protocol section 13.6), and may forget to
const RETRY_MS = 3_000;
const RUNNING = ['running', 'silent'];

/** Whether a recording in this state, as the server says it, may grow. */
export const isRunning = (state) => RUNNING.includes(state);

/**
 * Follows `reel` and `notes` of a recording that `reader` has opened, in `state`. `ask({from, notes})` resolves with a page of the manifest and whether it `isFull`;
 * `seen()` is called when there is more of the reel.
 *
 * Events: `change`, of the reel, of `notes` (by number) or of `state`.
 */
export class LiveRecording extends EventTarget {
  /** `running`, `silent` (the device has not been heard for a minute), `finished`, `cut-off` or `gone`, as the server says. */
  state;
  notes;
  #reader;
  #reel;
  #ask;
  #seen;
  #next; // the number of the next note that is asked for
  #asking;
  #isStale = false;
  #timer;
  #isClosed = false;

  constructor({ reader, reel, notes, state, ask, seen }) {
    super();
    Object.assign(this, { state, notes });
    [this.#reader, this.#reel, this.#ask, this.#seen] = [reader, reel, ask, seen];
    this.#next = 1 + Math.max(-1, ...notes.keys());
    this.#wait(ASKS_EVERY_MS);
  }

  get isRunning() {
    return isRunning(this.state) && !this.#isClosed;
  }

  /** There may be more: the server said so, or the connection is back. Resolves when it was asked. */
  look() {
    if (!this.isRunning) return undefined;
    this.#isStale = true;
    this.#asking ??= this.#pull().finally(() => (this.#asking = undefined));
    return this.#asking;
  }

  /** It was deleted. */
  end() {
    this.#set('gone');
    this.close();
  }

  close() {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  async #pull() {
    clearTimeout(this.#timer);
    let pause = ASKS_EVERY_MS;
    while (this.#isStale && this.isRunning) {
      this.#isStale = false;
      try {
        await this.#more();
      } catch (error) {
        if (error?.code === 'recording.not-found') return this.end();
        pause = RETRY_MS; // no network, or a page that does not fit: the next one may
      }
    }
    return this.#wait(pause);
  }

  async #more() {
    const page = await this.#ask({ from: this.#reel.length, notes: this.#next });
    const listed = page.reels.find(({ reel }) => reel === REEL);
    const witnesses = await this.#reader.witnesses(page.witnesses ?? [], REEL);
    const { notes } = await this.#reader.notes(page.notes ?? []);
    if (this.#isClosed) return;
    const before = this.#reel.length;
    if (listed) this.#reel.append(listed, witnesses);
    if (this.#reel.length > before) await this.#seen();
    for (const [number, content] of notes) if (!this.notes.has(number)) this.notes.set(number, content);
    this.#next = Math.max(this.#next, 1 + Math.max(-1, ...notes.keys()));
    if (page.isFull) this.#isStale = true;
    else this.#set(page.state);
    this.dispatchEvent(new Event('change'));
  }

  #set(state) {
    if (typeof state !== 'string' || this.state === state) return;
    this.state = state;
    this.dispatchEvent(new Event('change'));
  }

  #wait(ms) {
    if (this.isRunning) this.#timer = setTimeout(() => this.look(), ms);
  }
}
