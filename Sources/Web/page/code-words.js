// The words of a call code. They are the 40 digits in another form, for people to read to each other: no digit is left out, so they say exactly as much.
//
// Ten digits are three words: 2,155 words are the fewest of which three have a value for each of the 10^10 numbers. The digits stay the contract between clients
// (protocol section 5.2); docs/clients.md describes the words for others that show them.

import { language } from './texts.js';

const LISTS = { en: () => import('./words/en.js') };

/** How many words a list has. */
export const WORDS = 2_155;

/** Three words of `list` for each ten digits of `code`, as lines. */
export function wordsOf(code, list) {
  const lines = code.match(/\d{10}/g) ?? [];
  return lines.map((digits) => {
    const number = Number(digits);
    return [Math.floor(number / WORDS ** 2), Math.floor(number / WORDS) % WORDS, number % WORDS].map((index) => list[index]);
  });
}

/**
 * The list of the page's language; undefined if there is none, or if it cannot be loaded. Words of another language would be read aloud wrongly, and so heard
 * wrongly: people whose language has no list compare digits.
 */
export async function wordList() {
  const load = LISTS[language];
  return load ? load().then((list) => list.default, () => undefined) : undefined;
}
