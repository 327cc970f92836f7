// The texts of a recording: its length, its gaps, what it is worth, and what went wrong.

import { labelFor } from './names.js';
import { wordsForError } from './notices.js';
import { hasText, listNames, locale, t } from './texts.js';

const NAMED = 3; // people

const numbers = new Intl.NumberFormat(locale, { useGrouping: false });
const twoDigits = new Intl.NumberFormat(locale, { minimumIntegerDigits: 2 });
const long = (unit) => new Intl.NumberFormat(locale, { style: 'unit', unit, unitDisplay: 'long' });
const [minutesOf, secondsOf] = [long('minute'), long('second')];

/** Minutes and seconds of a time in ms. */
const partsOf = (ms) => [Math.floor(Math.max(0, ms) / 60_000), Math.floor((Math.max(0, ms) % 60_000) / 1_000)];

/** "3:04". */
export function shortTime(ms) {
  const [minutes, seconds] = partsOf(ms);
  return `${numbers.format(minutes)}:${twoDigits.format(seconds)}`;
}

/** "3 minutes 4 seconds", for a screen reader. */
export function spokenTime(ms) {
  const [minutes, seconds] = partsOf(ms);
  return [minutes > 0 && minutesOf.format(minutes), (seconds > 0 || minutes === 0) && secondsOf.format(seconds)].filter(Boolean).join(' ');
}

export const namesOf = (users) => listNames(users.map((user) => labelFor(user)), NAMED);

/** Why nothing is to be seen and heard at a place. */
export const wordsForGap = ({ why }) => t(hasText(`gap.${why}`) ? `gap.${why}` : 'gap.other');

const WORTHS = ['changed', 'cut-off', 'no-key', 'not-finished', 'complete']; // the worst first

/** The words about a recording as a whole, by the worst `state` of its reels; empty if all are complete. */
export const wordsForWorth = (states) => t(`worth.${WORTHS.find((state) => states.includes(state))}`);

/** Why a recording cannot be opened: `error` is `Unreadable` or that of a request. `name` is who has sent it, as the server says. */
export function wordsForUnreadable(error, name) {
  if (error.code === 'not-signed') return t('recordings.refused', { name });
  if (error.code === 'too-early') return t('recordings.too-early', { name });
  return error.code === 'no-key' ? t('recordings.no-key', { name }) : wordsForError(error);
}

const REASONS = { unsupported: 'message.unsupported', 'no-room': 'message.no-room', device: 'message.device-lost', store: 'message.broken', format: 'message.broken' };

/**
 * The words about what hinders a message, and what to do. `code` is `unsupported` (by this browser), `no-keys` (of `users`), the reason for which a recording ended, or an
 * upload; `error` is that of the browser or of a request, in place of it.
 * @param {{ code?: string, error?: any, users?: string[] }} problem
 */
export function wordsForProblem({ code = '', error = undefined, users = [] }) {
  if (error) return wordsForError(error);
  if (code === 'no-keys') return t('message.no-keys', { names: namesOf(users) });
  if (code === 'full') return t('error.recording.full');
  return t(REASONS[code] ?? 'message.refused');
}
