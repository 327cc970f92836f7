// The page's texts: every language has all of them, with the same placeholders and its own plural forms, and the page has no text outside the catalogues.

import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { test } from 'node:test';
import { loadPage } from './web.mjs';

const web = new URL('../../Sources/Web/', import.meta.url);
const { LANGUAGES, choose, daysAgo, joining, listAlternatives, listNames, t } = await loadPage('texts.js');
const catalogueOf = async (language) => (await loadPage(`catalogues/${language}.js`)).default;
const catalogues = Object.fromEntries(await Promise.all(Object.keys(LANGUAGES).map(async (language) => [language, await catalogueOf(language)])));
const english = catalogues.en;
const translated = Object.keys(LANGUAGES).filter((language) => language !== 'en');

const markup = readFileSync(new URL('index.html', web), 'utf8');
const modules = readdirSync(new URL('page/', web)).filter((name) => name.endsWith('.js'));
const codeOf = (name) => readFileSync(new URL(`page/${name}`, web), 'utf8').replace(/^\s*(\/\/|\/?\*).*$/gm, '');
const code = modules.map(codeOf).join('\n');

const formsOf = (entry) => (typeof entry === 'string' ? { other: entry } : entry);
const placeholdersOf = (text) => new Set([...text.matchAll(/\{(\w+)\}/g)].map(([, name]) => name));

test('every language has a catalogue, and every catalogue’s language can be chosen', () => {
  const files = readdirSync(new URL('page/catalogues/', web)).map((name) => name.replace(/\.js$/, ''));
  assert.deepEqual(new Set(files), new Set(Object.keys(LANGUAGES)));
});

test('a catalogue has exactly the keys of the English one, in the same order', () => {
  for (const language of translated) {
    assert.deepEqual(Object.keys(catalogues[language]), Object.keys(english), language);
    const keys = [...readFileSync(new URL(`page/catalogues/${language}.js`, web), 'utf8').matchAll(/^ {2}'([^']+)':/gm)].map(([, key]) => key);
    assert.equal(new Set(keys).size, keys.length, language);
  }
});

test('a text has one form for each plural category of its language, and the placeholders of the English text', () => {
  for (const [language, catalogue] of Object.entries(catalogues)) {
    const { pluralCategories } = new Intl.PluralRules(language).resolvedOptions();
    for (const [key, entry] of Object.entries(catalogue)) {
      const wanted = placeholdersOf(formsOf(english[key]).other);
      assert.equal(typeof entry, typeof english[key], `${language} ${key}`);
      if (typeof entry === 'object') assert.deepEqual(new Set(Object.keys(entry)), new Set(pluralCategories), `${language} ${key}`);
      for (const [form, text] of Object.entries(formsOf(entry))) {
        assert.ok(text.trim() === text && text.length > 0, `${language} ${key}`);
        const found = placeholdersOf(text);
        // "One call" does not need a digit.
        if (form !== 'other' && typeof entry === 'object') found.add('count').delete(wanted.has('count') ? '' : 'count');
        assert.deepEqual(found, wanted, `${language} ${key} ${form}: ${text}`);
      }
    }
  }
});

const CHAT = ['tool.chat', 'tool.chat-unread'];
/** Keys whose text is also a word of this language. */
const SAME = {
  de: [...CHAT, 'history.details', 'presence.offline'],
  es: CHAT,
  it: CHAT,
  nl: [...CHAT, 'presence.offline', 'setup.camera'],
  pl: ['presence.offline'],
  pt: CHAT,
  vi: ['setup.camera'],
};

test('nothing is left in English', () => {
  for (const language of translated) {
    const same = Object.keys(english).filter((key) => /[a-z]{2}/i.test(formsOf(english[key]).other.replaceAll(/\{\w+\}/g, '')));
    const left = same.filter((key) => formsOf(catalogues[language][key]).other === formsOf(english[key]).other);
    assert.deepEqual(left.filter((key) => !SAME[language]?.includes(key)), [], language);
  }
});

test('a language with its own script is written in it', () => {
  const scripts = { ru: 'Cyrillic', uk: 'Cyrillic', ar: 'Arabic', hi: 'Devanagari', th: 'Thai', km: 'Khmer', zh: 'Han', ja: 'Hiragana', ko: 'Hangul' };
  for (const [language, script] of Object.entries(scripts)) {
    if (!catalogues[language]) continue;
    const pattern = new RegExp(`\\p{Script=${script}}|\\p{Script=Katakana}|\\p{Script=Han}`, 'u');
    for (const [key, entry] of Object.entries(catalogues[language])) {
      for (const text of Object.values(formsOf(entry))) {
        if (/\p{L}/u.test(text.replaceAll(/\{\w+\}/g, ''))) assert.match(text, pattern, `${language} ${key}`);
      }
    }
  }
});

test('a text that refers to the devices uses the button’s name for them', () => {
  for (const [language, catalogue] of Object.entries(catalogues)) {
    for (const key of ['key.changed-key', 'key.changed-key.own', 'key.unverified-device.own']) assert.ok(catalogue[key].includes(catalogue.devices), `${language} ${key}`);
  }
});

const literals = new Set([...code.matchAll(/'([^'\n]+)'/g), ...markup.matchAll(/data-(?:text|label|hint)="([^"]+)"/g)].map(([, key]) => key));
const asked = [...code.matchAll(/\bt\('([^']+)'/g), ...markup.matchAll(/data-(?:text|label|hint)="([^"]+)"/g)].map(([, key]) => key);
/** Keys that are composed, as patterns. */
const patterns = [...code.matchAll(/`([a-z-]*(?:\.|\$\{source\}\.)[^`\s]*)`/g)].map(
  ([, template]) => new RegExp(`^${template.split(/\$\{(?:[^{}]|\{[^{}]*\})*\}/).map((part) => part.replaceAll('.', '\\.')).join('[\\w.-]+')}$`),
);

test('every text that the page uses exists', () => {
  assert.ok(asked.length > 200, `${asked.length} keys`);
  assert.deepEqual(asked.filter((key) => !Object.hasOwn(english, key)), []);
});

test('every text is used', () => {
  const isUsed = (key) => literals.has(key) || patterns.some((pattern) => pattern.test(key));
  assert.deepEqual(Object.keys(english).filter((key) => !isUsed(key)), []);
});

test('neither the page’s modules nor its markup contain words', () => {
  for (const name of modules.filter((name) => name !== 'texts.js')) {
    const words = [...codeOf(name).matchAll(/'([^'\n]*)'|`([^`\n]*)`/g)].map(([, one, other]) => one ?? other);
    assert.deepEqual(words.filter((text) => /^[A-Z][a-z’]+ [a-z]|[a-z]…$|^[A-Z][a-z]+$/.test(text.replaceAll(/\$\{[^}]*\}/g, ''))).filter((text) => !CODE.has(text)), [], name);
  }
  const body = markup.slice(markup.indexOf('<header')).replace(/<noscript>.*?<\/noscript>/s, '');
  const texts = [...body.matchAll(/>([^<]*[A-Za-z][^<]*)</g)].map(([, text]) => text.trim());
  assert.deepEqual(texts, ['Conclave']);
  assert.doesNotMatch(body, / (aria-label|title|placeholder|alt)="/);
});

/** Names that look like words: of keys on a keyboard, of the product, of a browser, and the placeholder for an unknown one. */
const CODE = new Set(['Enter', 'Backspace', 'Escape', 'Conclave', 'Browser', 'Chromium']);

test('the browser’s first language that has a catalogue is used, with its region for dates', () => {
  assert.deepEqual(choose(['xx', 'de-AT', 'en']), { language: 'de', locale: 'de-AT' });
  assert.deepEqual(choose(['EN-gb']), { language: 'en', locale: 'EN-gb' });
  assert.deepEqual(choose(['constructor', 'xx-YY']), { language: 'en', locale: 'en' });
  assert.deepEqual(choose([]), { language: 'en', locale: 'en' });
});

test('a text inserts its values literally, and chooses its plural form by the count', () => {
  assert.equal(t('ring.title', { name: '{name} $& <b>' }), '{name} $& <b> is calling');
  assert.deepEqual([1, 2, 1_234].map((count) => t('code.device-count', { count })), ['1 device', '2 devices', '1,234 devices']);
  assert.equal(listNames(['Ann', 'Bob']), 'Ann and Bob');
  assert.match(listNames(['Ann', 'Bob', 'Cleo', 'Dan'], 3), /^Ann, Bob,? and 2 more$/);
  assert.equal(listNames([]), '');
  assert.equal(listAlternatives(['Ann', 'Bob']), 'Ann or Bob');
});

test('names in scripts without spaces stay separate in a list', () => {
  const listsOf = (locale) => ['conjunction', 'disjunction'].flatMap((type) => [2, 3].map((count) => joining(locale, type)(['Ann Lee', 'Bob', 'Cleo'].slice(0, count))));
  assert.deepEqual(listsOf('th-TH'), ['Ann Lee และ Bob', 'Ann Lee, Bob และ Cleo', 'Ann Lee หรือ Bob', 'Ann Lee, Bob หรือ Cleo']);
  assert.deepEqual(listsOf('km'), ['Ann Lee និង Bob', 'Ann Lee, Bob និង Cleo', 'Ann Lee ឬ Bob', 'Ann Lee, Bob ឬ Cleo']);
  assert.deepEqual(listsOf('vi'), ['Ann Lee và Bob', 'Ann Lee, Bob và Cleo', 'Ann Lee hoặc Bob', 'Ann Lee, Bob hoặc Cleo']);
});

test('days are counted from today', () => {
  const now = Date.UTC(2026, 2, 10, 9);
  const day = (date) => Date.UTC(2026, 2, date);
  assert.deepEqual([10, 9, 3].map((date) => daysAgo(day(date), now)), ['today', 'yesterday', '7 days ago']);
  assert.equal(daysAgo(day(12), now), 'today'); // the server's clock is ahead
});
