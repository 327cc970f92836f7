// The page's texts, in the language chosen by the person or preferred by the browser. Only that language's catalogue is loaded.

import { savedSetting } from './session.js';

/** The languages that have a catalogue, each by its own name. */
export const LANGUAGES = {
  en: 'English',
  de: 'Deutsch',
  es: 'Español',
  fr: 'Français',
  it: 'Italiano',
  nl: 'Nederlands',
  pl: 'Polski',
  pt: 'Português',
  tr: 'Türkçe',
  vi: 'Tiếng Việt',
  ru: 'Русский',
  uk: 'Українська',
  ar: 'العربية',
  hi: 'हिन्दी',
  th: 'ไทย',
  km: 'ខ្មែរ',
  zh: '简体中文',
  ja: '日本語',
  ko: '한국어',
};
const RIGHT_TO_LEFT = ['ar'];
const WITHOUT_SPACES = ['th', 'km'];
const FALLBACK = 'en';

/**
 * The first of `tags` (BCP 47, in order of preference) for whose language there is a catalogue, as `{language, locale}`: the locale keeps the region, for dates
 * and numbers.
 */
export function choose(tags) {
  for (const locale of tags) {
    const language = locale.split('-', 1)[0].toLowerCase();
    if (Object.hasOwn(LANGUAGES, language)) return { language, locale };
  }
  return { language: FALLBACK, locale: FALLBACK };
}

const preferred = globalThis.navigator?.languages ?? [];
const chosen = savedSetting('language');
/** `language` is that of the catalogue; `locale` is for `Intl`. */
export const { language, locale } = choose(chosen ? [...preferred.filter((tag) => choose([tag]).language === chosen), chosen] : preferred);
const isRightToLeft = RIGHT_TO_LEFT.includes(language);

const { default: catalogue } = await import(`./catalogues/${language}.js`).catch(() => import(`./catalogues/${FALLBACK}.js`));
const plurals = new Intl.PluralRules(locale);
const numbers = new Intl.NumberFormat(locale);

/**
 * A value within a text. A name may be written in the other direction: it is isolated (Unicode UAX #9, FSI and PDI), so that it does not reorder the
 * surrounding sentence.
 */
function shown(value) {
  if (typeof value === 'number') return numbers.format(value);
  return isRightToLeft ? `\u2068${value}\u2069` : value;
}

/**
 * The text of `key`, with `values` in place of its placeholders. A text with plural forms is chosen by `values.count`.
 * @param {string} key
 * @param {Record<string, string | number>} values
 * @returns {string}
 */
export function t(key, values = {}) {
  if (!hasText(key)) return ''; // a code that is new
  const entry = catalogue[key];
  const text = typeof entry === 'string' ? entry : entry[plurals.select(Number(values.count))] ?? entry.other;
  return text.replace(/\{(\w+)\}/g, (_, name) => shown(values[name]));
}

/** Whether there is a text for `key`: for codes to which a server or a browser may add. */
export const hasText = (key) => Object.hasOwn(catalogue, key);

/**
 * A function that joins names, `type` is that of `Intl.ListFormat`. Thai and Khmer have no spaces between words, and CLDR's lists follow that: a Thai list has
 * only spaces between names, like a name between its parts, and the word for "and" touches a name. Here they have commas, and spaces around that word.
 */
export function joining(locale, type) {
  const format = new Intl.ListFormat(locale, { type });
  if (!WITHOUT_SPACES.includes(choose([locale]).language)) return (names) => format.format(names);
  const spaced = (separator) => {
    const word = separator.replaceAll(/[\s,\u200b]/g, '');
    return word ? ` ${word} ` : ', ';
  };
  return (names) => format.formatToParts(names).map((part) => (part.type === 'element' ? part.value : spaced(part.value))).join('');
}

const join = joining(locale, 'conjunction');
const joinAlternatives = joining(locale, 'disjunction');

/** "Bob", "Bob and Carol", "Bob, Carol and Dave"; if there are more than `most`, the first ones and the number of the others. */
export function listNames(names, most = Infinity) {
  const rest = names.length - most + 1;
  return join(names.length > most ? [...names.slice(0, most - 1), t('more-names', { count: rest })] : names);
}

/** "Bob or Carol". */
export const listAlternatives = (names) => joinAlternatives(names);

/** `amount` with its unit, as "12 min"; `unit` is one of ECMA-402. */
export const withUnit = (amount, unit) => new Intl.NumberFormat(locale, { style: 'unit', unit, unitDisplay: 'short' }).format(amount);

const DAY_MS = 86_400_000;
const days = new Intl.RelativeTimeFormat(locale, { numeric: 'auto' });

/** "today", "yesterday", "3 days ago": the day that began at `at`, in ms, seen from `now`. */
export const daysAgo = (at, now = Date.now()) => days.format(Math.min(0, Math.floor(at / DAY_MS) - Math.floor(now / DAY_MS)), 'day');

/** Puts the texts into the page's own markup: `data-text` names an element's text, `data-label` its accessible name, `data-hint` a field's placeholder. */
export function translatePage() {
  document.documentElement.lang = language;
  document.documentElement.dir = isRightToLeft ? 'rtl' : 'ltr';
  for (const node of document.querySelectorAll('[data-text]')) node.textContent = t(node.getAttribute('data-text') ?? '');
  for (const node of document.querySelectorAll('[data-label]')) node.ariaLabel = t(node.getAttribute('data-label') ?? '');
  for (const node of document.querySelectorAll('[data-hint]')) node.setAttribute('placeholder', t(node.getAttribute('data-hint') ?? ''));
}
