// This person's own captions on their way to the others: as lines, and within the call's limit of 10 messages a second.

const INTERIM_MS = 700;
const MAX_LENGTH = 200; // characters
const MAX_WAITING = 8; // messages that the server has not confirmed

/** The words of `text`, in pieces that a line may have. A language without spaces is cut anywhere. */
function pieces(text) {
  const characters = [...text.trim()];
  const made = [];
  while (characters.length > MAX_LENGTH) {
    const space = characters.slice(0, MAX_LENGTH).lastIndexOf(' ');
    made.push(characters.splice(0, space > 0 ? space + 1 : MAX_LENGTH).join('').trim());
  }
  return [...made, characters.join('')].filter(Boolean);
}

export class CaptionSender {
  #send;
  #line = 1;
  #revision = 0;
  #waiting = 0;
  #interim; // the newest of the line
  #sentAt = -Infinity;
  #timer;
  #done = Promise.resolve();

  /** `send(caption)` sends one, and returns a promise. */
  constructor(send) {
    this.#send = send;
  }

  /** Takes recognised words, in the language `lang`. An interim result says the whole line so far; it is sent at most every 0.7 s. */
  say(text, isFinal, lang) {
    if (!isFinal) {
      this.#interim = { text, lang };
      return this.#sendInterim();
    }
    this.drop();
    for (const piece of pieces(text)) this.#post({ caption: piece, final: true, lang });
    return undefined;
  }

  /** The recogniser has ended: an interim result is the last one of its line. */
  end() {
    if (this.#interim) this.say(this.#interim.text, true, this.#interim.lang);
  }

  /** An interim result that was not sent is not sent any more. */
  drop() {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#interim = undefined;
  }

  #sendInterim() {
    if (this.#timer !== undefined) return;
    const rest = this.#sentAt + INTERIM_MS - performance.now();
    if (rest > 0) {
      this.#timer = setTimeout(() => {
        this.#timer = undefined;
        this.#sendInterim();
      }, rest);
      return;
    }
    const { text, lang } = this.#interim;
    // The newest words are at the end. While the server is slow, the next result says the same and more.
    if (this.#waiting === 0) this.#post({ caption: pieces(text).at(-1) ?? '', final: false, lang });
  }

  /** One after the other, so that they arrive in order. Captions that cannot be sent are lost: they would come too late. */
  #post({ caption, final, lang }) {
    if (!caption || this.#waiting >= MAX_WAITING) return;
    this.#sentAt = performance.now();
    this.#revision += 1;
    const message = { caption, line: this.#line, revision: this.#revision, final, lang };
    if (final) {
      this.#line += 1;
      this.#revision = 0;
    }
    this.#waiting += 1;
    this.#done = this.#done.then(() => this.#send(message)).catch(() => {}).finally(() => (this.#waiting -= 1));
  }
}
