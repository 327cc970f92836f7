// The words of a call code: they say as much as the digits, and no two words can be confused.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loadPage } from './web.mjs';

const { WORDS, wordList, wordsOf } = await loadPage('code-words.js');
const { default: english } = await loadPage('words/en.js');

/** The digits of words, by the rule in docs/clients.md. */
const digitsOf = (lines) => lines.map((words) => String(words.reduce((number, word) => number * WORDS + english.indexOf(word), 0)).padStart(10, '0')).join('');

test('the digits can be computed from the words, so words say no less', () => {
  const codes = ['0'.repeat(40), '9'.repeat(40), '0123456789'.repeat(4), '9876543210'.repeat(4), '0000000001'.repeat(4)];
  for (let n = 1n; codes.length < 500; n += 1n) codes.push(((n * 6364136223846793005n ** 3n) % 10n ** 40n).toString().padStart(40, '0'));
  for (const code of codes) {
    const lines = wordsOf(code, english);
    assert.deepEqual(lines.map(({ length }) => length), [3, 3, 3, 3]);
    assert.ok(lines.flat().every((word) => typeof word === 'string'), code);
    assert.equal(digitsOf(lines), code);
  }
});

test('twelve words carry the bits of the forty digits, but would not with one word fewer in the list', () => {
  assert.equal(english.length, WORDS);
  assert.ok(BigInt(WORDS) ** 3n >= 10n ** 10n);
  assert.ok(BigInt(WORDS - 1) ** 3n < 10n ** 10n);
  assert.ok(12 * Math.log2(WORDS) >= 40 * Math.log2(10), 'at least 132.9 bits');
});

test('the same digits always give the same words', () => {
  const code = '3141592653589793238462643383279502884197';
  const lines = wordsOf(code, english);
  assert.deepEqual(wordsOf(code, english), lines);
  // As in docs/clients.md: with another order of words, two versions of the page would disagree.
  assert.deepEqual(lines.map((words) => words.join(' ')), ['floral lantern outback', 'notebook accent myth', 'palm travel mattress', 'veteran embrace artist']);
});

test('without a code there are no words', () => assert.deepEqual(wordsOf('', english), []));

test('an English page has a list of words', async () => assert.equal(await wordList(), english));

test('words are short, in lower case and sorted, and no two begin with the same four letters', () => {
  assert.ok(english.every((word) => /^[a-z]{4,9}$/.test(word)));
  assert.deepEqual(english, [...english].sort());
  assert.equal(new Set(english.map((word) => word.slice(0, 4))).size, WORDS);
});

test('no two words differ by only one letter, or two swapped letters', () => {
  const near = new Map();
  const clashes = [];
  for (const word of english) {
    // Two such words have one of these in common.
    const forms = new Set([word]);
    for (let at = 0; at < word.length; at += 1) {
      forms.add(word.slice(0, at) + word.slice(at + 1)); // a letter more or less
      forms.add(`${word.slice(0, at)}?${word.slice(at + 1)}`); // another letter
      if (at > 0) forms.add(word.slice(0, at - 1) + [word[at - 1], word[at]].sort().join('+') + word.slice(at + 1));
    }
    for (const form of forms) {
      const other = near.get(form);
      const isShift = other && other.length === word.length && !/[?+]/.test(form); // both lack a letter, not the same one
      if (other && !isShift) clashes.push(`${other} ${word}`);
      near.set(form, word);
    }
  }
  assert.deepEqual(clashes, []);
});

/** The sound of a word: all spellings of a sound become the same. */
function soundOf(word) {
  const rules = [
    [/ph/g, 'f'], [/tch/g, 'ch'], [/ck|q(?=u)/g, 'k'], [/igh/g, 'i'], [/eigh/g, 'a'], [/[oa]ugh/g, 'o'], [/gh/g, ''], [/^wr/, 'r'], [/^[kg]n/, 'n'], [/wh/g, 'w'], [/mb$/, 'm'],
    [/x/g, 'ks'], [/c(?=[eiy])/g, 's'], [/c(?!h)/g, 'k'], [/z/g, 's'], [/dg|g(?=[eiy])/g, 'j'], [/[ts]ion/g, 'shn'], [/(?:er|or|ar|ure|re)$/, 'R'], [/(?:le|el|al|il|ol)$/, 'L'],
    [/(?:en|on|an|in|ain)$/, 'N'], [/[ea]nt$/, 'Nt'], [/[ea]nce$/, 'Ns'], [/(?:ey|ie|y)$/, 'i'], [/ea|ee|ei|ie/g, 'i'], [/ai|ay|ey/g, 'a'], [/oa|ow|oe|au|aw/g, 'o'], [/ou|oo|ew|ue|ui/g, 'u'],
    [/y/g, 'i'], [/(.)\1/g, '$1'], [/([aeiou][^aeiou])e$/, '$1'],
  ];
  return rules.reduce((sound, [spelling, heard]) => sound.replace(spelling, heard), word);
}

test('no two words sound alike', () => {
  for (const [one, other] of [['beech', 'beach'], ['knight', 'nite'], ['wrap', 'rap']]) assert.equal(soundOf(one), soundOf(other));
  const heard = new Map();
  for (const word of english) heard.set(soundOf(word), [...(heard.get(soundOf(word)) ?? []), word]);
  assert.deepEqual([...heard.values()].filter(({ length }) => length > 1), []);
});

test('no word is one that people use while they compare', () => {
  const said = 'yes okay right wrong same different match differ again repeat next back first last left correct wait stop start hello sorry pause digit digits code word words line zero seven nine hundred twelve twenty'.split(' ');
  assert.deepEqual(english.filter((word) => said.includes(word)), []);
});
