// The texts for a past call: the other people, its outcome, its time and its length.

import { isGuest } from '../conclave/guests.js';
import { locale, t, withUnit } from './texts.js';

/** "8 sec", "12 min", "3 hr 20 min". */
export function duration(seconds) {
  if (seconds < 60) return withUnit(seconds, 'second');
  const minutes = Math.round(seconds / 60);
  const [hours, rest] = [Math.floor(minutes / 60), minutes % 60];
  if (hours === 0) return withUnit(minutes, 'minute');
  return rest > 0 ? `${withUnit(hours, 'hour')} ${withUnit(rest, 'minute')}` : withUnit(hours, 'hour');
}

const unbroken = (text) => text.replaceAll(' ', '\u00a0');

/** "today 14:05", "yesterday 09:10", "tomorrow 07:00", or "3 Mar, 09:10": unbroken, however narrow the row. */
export const when = (time, now = Date.now()) => unbroken(dayAndClock(time, now));

export const clock = (time) => new Date(time).toLocaleTimeString(locale, { hour: '2-digit', minute: '2-digit' });

const days = new Intl.RelativeTimeFormat(locale, { numeric: 'auto' });

function dayAndClock(time, now) {
  const date = new Date(time);
  const day = (ms) => new Date(ms).toDateString();
  const near = [0, -1, 1].find((number) => day(time) === day(now + number * 86_400_000));
  if (near !== undefined) return `${days.format(near, 'day')} ${clock(time)}`;
  const isThisYear = date.getFullYear() === new Date(now).getFullYear();
  return date.toLocaleString(locale, { ...(!isThisYear && { year: 'numeric' }), day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' });
}

export function outcomeOf({ direction, outcome, seconds, startedAt }, now) {
  const spent = outcome === 'answered' && seconds > 0 ? ` ·\u00a0${unbroken(duration(seconds))}` : '';
  const shown = direction === 'incoming' && outcome === 'cancelled' ? 'missed' : outcome;
  return `${t(`history.${direction}-${shown}`)} ·\u00a0${when(startedAt, now)}${spent}`;
}

export const othersOf = ({ members }, user) => members.filter((member) => member.user !== user);

/** "12 calls, 3 hr 20 min". */
export const totalsOf = ({ calls, seconds }) => t('history.totals', { count: calls, duration: duration(seconds) });

/**
 * The people of `calls`, newest first, except `user`: a map by their ids, latest first. The value says whether the last call with that person alone had video;
 * undefined if there was none. A guest is somebody for one call only.
 */
export function peopleIn(calls, user) {
  const people = new Map();
  for (const call of calls) {
    const others = othersOf(call, user).filter((other) => !isGuest(other.user));
    for (const other of others) if (!people.has(other.user)) people.set(other.user, undefined);
    const [only] = others;
    if (call.members.length === 2 && only) people.set(only.user, people.get(only.user) ?? call.media === 'video');
  }
  return people;
}

/**
 * The calls, newest first, as rows: those in a row with the same people share one, as in a phone's list, so that the order of time stays true. A call that may be
 * rejoined stands by itself. Each row is `{others, calls}`.
 */
export function grouped(calls, user) {
  const rows = [];
  /** @type {any} The row that may go on, and its people. */
  let open;
  for (const call of calls) {
    const others = othersOf(call, user);
    const people = others.map((other) => other.user).sort().join();
    if (open?.people === people && !call.rejoinable) open.row.calls.push(call);
    else {
      const row = { others, calls: [call] };
      rows.push(row);
      open = call.rejoinable ? undefined : { row, people };
    }
  }
  return rows;
}
