// Captions, messages of a kind of their own: what a speaker's own browser has recognised (docs/clients.md, "Messages").

import { MAX_NUMBER, isWhole } from '../wire/index.js';

const MAX_LENGTH = 240; // characters; clients send 200 at most
const LANGUAGE = /^[a-z]{2,3}(?:-[A-Za-z0-9]{2,8}){0,3}$/; // BCP 47
const BURST = 10;
const PER_SECOND = 4; // a speaker sends an interim result every 0.7 s, and the final ones
const MAX_SPEAKERS = 1_000; // as many as a call has participants

/**
 * `text` on one line, without characters that turn the direction of the text around them, and without piles of combining marks. No script
 * stacks more than three.
 */
const plain = (text) =>
  text
    .replace(/[\p{Cc}\u2028\u2029]+/gu, ' ')
    .replace(/[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, '')
    .replace(/(\p{M}{3})\p{M}+/gu, '$1')
    .trim();

/** `{caption, line, revision, final, lang}` as another client sent it, the text made harmless; undefined if it is no caption. */
export function captionIn({ caption, line, revision, final, lang }) {
  if (typeof caption !== 'string' || caption.length > 2 * MAX_LENGTH || [...caption].length > MAX_LENGTH || typeof final !== 'boolean') return undefined;
  if (![line, revision].every((number) => isWhole(number, 1, MAX_NUMBER))) return undefined;
  const text = plain(caption);
  if (!text) return undefined;
  return { caption: text, line, revision, final, lang: typeof lang === 'string' && LANGUAGE.test(lang) ? lang : '' };
}

/**
 * The captions of each speaker in order, and not too many of them. A line gets more revisions until one is final, and the next one has a higher number. A caption
 * that is older than its speaker's newest is dropped: the server can delay messages, and a member's client can send anything.
 */
export class CaptionOrder {
  #speakers = new Map(); // participant -> {line, revision, final, room, at}

  /** Whether the caption, of `captionIn`, from this participant is to be shown; `now` is in ms. */
  admits(participant, { line, revision, final }, now) {
    const before = this.#speakers.get(participant) ?? { line: 0, revision: 0, final: true, room: BURST, at: now };
    const room = Math.min(BURST, before.room + (Math.max(0, now - before.at) / 1_000) * PER_SECOND);
    const isNew = line > before.line || (line === before.line && revision > before.revision && !before.final);
    const isAdmitted = isNew && room >= 1;
    this.#speakers.delete(participant); // the last one in the order of use
    this.#speakers.set(participant, isAdmitted ? { line, revision, final, room: room - 1, at: now } : { ...before, room, at: now });
    if (this.#speakers.size > MAX_SPEAKERS) this.#speakers.delete(this.#speakers.keys().next().value);
    return isAdmitted;
  }
}
