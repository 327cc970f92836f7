// Names that look alike (UTS #39): the server chooses names, and some are made to be mistaken for another's.

/**
 * Characters that look like one of a-z or a digit, in either case: the part of UTS #39's `confusables.txt` that is left after NFKD and lower case, for Latin,
 * Greek, Cyrillic and Armenian. i, l and 1 are one, because I and l are.
 */
const CONFUSABLES = {
  a: 'ɑαа', b: 'ƅβвьъ', c: 'ϲсⅽ', d: 'ԁժ', e: 'εеєҽ', f: 'ẝք', g: 'ɡցġ', h: 'һհηн', j: 'ϳј', k: 'κкĸ', l: 'i1|ıɩιіӏוߊ!׀', m: 'μм', n: 'պոп', o: '0οоօσ', p: 'ρр', q: 'ԛգ', r: 'гг', s: 'ѕꜱ',
  t: 'τт', u: 'υսʋ', v: 'νѵ', w: 'ԝшωɯ', x: 'χх', y: 'γуүყ', z: 'ζ', 3: 'зӡ', 6: 'б',
};
const LIKE = new Map(Object.entries(CONFUSABLES).flatMap(([plain, others]) => [...others].map((other) => [other, plain])));

// Marks that fit any script, and invisible characters.
const UNSEEN = /[\p{Script=Inherited}\p{Default_Ignorable_Code_Point}\u2800]/gu;

/** A form that is equal for two names which a person would confuse. */
export function skeletonOf(name) {
  const plain = name.normalize('NFKD').toLowerCase().replace(UNSEEN, '').replace(/[\s\p{P}\p{Cf}]/gu, '');
  return [...plain].map((character) => LIKE.get(character) ?? character).join('').replaceAll('rn', 'm').replaceAll('vv', 'w');
}

const COMMON = '\\p{Script=Common}\\p{Script=Inherited}';
const ALONE =
  'Latin Greek Cyrillic Armenian Georgian Hebrew Arabic Syriac Thaana Devanagari Bengali Gurmukhi Gujarati Oriya Tamil Telugu Kannada Malayalam Sinhala Thai Lao Tibetan Myanmar Khmer Ethiopic Mongolian'.split(' ');
/** Scripts that are used together (UTS #39 section 5.2, "Highly Restrictive"). */
const TOGETHER = ['Latin Han Hiragana Katakana', 'Latin Han Bopomofo', 'Latin Han Hangul'];
const ONE_SYSTEM = [...ALONE, ...TOGETHER].map((scripts) => new RegExp(`^[${COMMON}${scripts.split(' ').map((script) => `\\p{Script_Extensions=${script}}`).join('')}]*$`, 'u'));
const LOOSE_MARK = /[\p{Script=Latin}\p{Script=Greek}\p{Script=Cyrillic}][\p{Script=Inherited}]/u;
const NOT_SEEN = /[\p{Default_Ignorable_Code_Point}\u2800]/u;

/** Whether a name may be made to deceive: it mixes scripts, has a mark that none of its letters has by itself, or something invisible. */
export const isDoubtful = (name) => NOT_SEEN.test(name) || LOOSE_MARK.test(name.normalize('NFC')) || !ONE_SYSTEM.some((system) => system.test(name));
