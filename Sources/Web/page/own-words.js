// The texts of a recording of one's own: how far it is, what each contact was told, and the place.

import { clock } from './history-words.js';
import { labelFor } from './names.js';
import { shortTime, spokenTime, wordsForProblem } from './recordings-words.js';
import { hasText, t, withUnit } from './texts.js';

const CLOCK_MS = 300_000; // by less a clock may be wrong

/** How much has left the device. `progress` is that of `OwnRecording`. */
export function wordsForProgress({ left, waits, isAll }) {
  if (isAll) return t('record.all-left');
  return left > 0 ? t('record.some-left', { left: shortTime(left), waits: shortTime(waits) }) : t('record.none-left', { waits: shortTime(waits) });
}

/** The state of a contact; `alerts` says that people are alerted. */
export function wordsForContact({ user, state, at = 0 }, alerts) {
  return t(state === 'told' && !alerts ? 'contact.shared' : `contact.${state}`, { name: labelFor(user), time: clock(at) });
}

/** The network or the server holds it up; nothing of it is lost. */
export function wordsForNetwork(upload) {
  if (upload === 'full') return t('error.recording.full');
  return upload === 'waiting' ? t('record.network') : '';
}

export const wordsForClock = (ahead) => (Math.abs(ahead) > CLOCK_MS ? t('record.clock', { time: spokenTime(Math.abs(ahead)) }) : '');

/** Where this device is, as it told its contacts. */
export function wordsForOwnPlace({ state, told }) {
  return state === 'told' ? t('place.told', { time: clock(told.at) }) : t(`place.${state}`);
}

export function wordsForOwnProblem({ lacksCamera, problem }) {
  if (problem) return wordsForProblem(problem);
  return lacksCamera ? t('record.no-camera') : '';
}

/** "50.08804, 14.42076", in degrees. */
const degrees = ({ lat, lon }) => `${lat}, ${lon}`;

/** A place of somebody else. */
export const wordsForPlace = (place) =>
  place.accuracy === undefined
    ? t('live.place', { time: clock(place.at), place: degrees(place) })
    : t('live.place-within', { time: clock(place.at), place: degrees(place), distance: withUnit(Math.ceil(place.accuracy), 'meter') });

/** The address of a map that the person may open: the page asks no map for anything. */
export const mapOf = ({ lat, lon }) => `https://www.openstreetmap.org/?mlat=${lat}&mlon=${lon}#map=17/${lat}/${lon}`;

/** A recording that is followed: `state` is that of `LiveRecording`, `behind` and `end` in ms. */
export function wordsForLive({ state, length, behind, end }) {
  if (length === 0 && state === 'running') return t('live.nothing');
  if (state === 'running') return t('live.now', { time: shortTime(behind) });
  if (state === 'silent') return t('live.silent', { time: clock(end) });
  return t(hasText(`live.${state}`) ? `live.${state}` : 'live.finished');
}
