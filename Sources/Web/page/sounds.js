// The voices of a call. A browser may refuse to play them before the person has pressed something. The page then says so.

import { element } from './dom.js';

export class Sounds {
  /** Whether the browser blocks sound. */
  isBlocked = false;
  #root;
  #changed;
  #playing = new Map(); // track -> element
  #speaker = '';

  /** `root` gets the elements; `changed()` follows each change of `isBlocked`. */
  constructor(root, changed) {
    this.#root = root;
    this.#changed = changed;
  }

  /** Plays these tracks and no others. */
  play(tracks) {
    for (const track of tracks) {
      if (this.#playing.has(track)) continue;
      const audio = element('audio', { autoplay: true, srcObject: new MediaStream([track]) });
      this.#playing.set(track, audio);
      this.#root.append(audio);
      if (this.#speaker) audio.setSinkId?.(this.#speaker).catch(() => {});
      this.#begin(audio);
    }
    for (const [track, audio] of this.#playing) {
      if (tracks.includes(track)) continue;
      audio.srcObject = null;
      audio.remove();
      this.#playing.delete(track);
    }
    if (this.#playing.size === 0) this.#setBlocked(false);
  }

  /** Tries again, because the person has pressed something. */
  async retry() {
    this.#setBlocked(false);
    await Promise.all([...this.#playing.values()].map((audio) => this.#begin(audio)));
  }

  /** Plays through the output device with this id; '' is the system's choice. */
  async choose(id) {
    this.#speaker = id;
    await Promise.all([...this.#playing.values()].map((audio) => audio.setSinkId?.(id)));
  }

  async #begin(audio) {
    try {
      await audio.play();
    } catch (error) {
      if (error.name === 'NotAllowedError' && audio.srcObject) this.#setBlocked(true); // others: it was removed meanwhile
    }
  }

  #setBlocked(isBlocked) {
    if (this.isBlocked === isBlocked) return;
    this.isBlocked = isBlocked;
    this.#changed();
  }
}
