// The captions of a call that are on the page, and those that are read out.

const SHOWN = 3; // lines
const SHOWN_MS = 8_000; // after the last word
const READ = 4; // lines at once; a screen reader that has more to say is behind the call
const READ_EVERY_MS = 1_500;

/** The last lines, the newest below. */
export class CaptionLines {
  #lines = [];

  /** A caption at `now` in ms, with the `name` of who speaks: another revision of its line, or a new one. */
  add({ participant, name, caption, line, lang }, now) {
    const made = { participant, name, caption, line, lang, at: now };
    const place = this.#lines.findIndex((other) => other.participant === participant && other.line === line);
    if (place >= 0) this.#lines[place] = made;
    else this.#lines = [...this.#lines, made].slice(-SHOWN);
  }

  at(now) {
    this.#lines = this.#lines.filter(({ at }) => now - at < SHOWN_MS);
    return this.#lines;
  }
}

/** The text that a screen reader says: finished lines, together, so that one person's short lines do not interrupt another's. */
export class CaptionReading {
  #unread = [];
  #readAt = -Infinity;

  add(text) {
    this.#unread = [...this.#unread, text].slice(-READ);
  }

  /** The text to read at `now` in ms; undefined if there is none, or the one before was read just now. */
  take(now) {
    if (this.#unread.length === 0 || now - this.#readAt < READ_EVERY_MS) return undefined;
    this.#readAt = now;
    return this.#unread.splice(0).join('\n');
  }
}
