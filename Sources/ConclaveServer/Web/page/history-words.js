// The texts for a past call: the other people, its outcome, its time and its length.

import { locale, t, withUnit } from './texts.js';

/** "8 sec", "12 min", "3 hr 20 min". */
export function duration(seconds) {
  if (seconds < 60) return withUnit(seconds, 'second');
  const minutes = Math.round(seconds / 60);
  const [hours, rest] = [Math.floor(minutes / 60), minutes % 60];
  if (hours === 0) return withUnit(minutes, 'minute');
  return rest > 0 ? `${withUnit(hours, 'hour')} ${withUnit(rest, 'minute')}` : withUnit(hours, 'hour');
}

/** "today 14:05", "yesterday 09:10", or the date and the time, with the year if it is another: unbroken, however narrow the row. */
export const when = (time, now = Date.now()) => dayAndClock(time, now).replaceAll(' ', '\u00a0');

export const clock = (time) => new Date(time).toLocaleTimeString(locale, { hour: '2-digit', minute: '2-digit' });

const days = new Intl.RelativeTimeFormat(locale, { numeric: 'auto' });

function dayAndClock(time, now) {
  const date = new Date(time);
  const day = (ms) => new Date(ms).toDateString();
  if (day(time) === day(now)) return `${days.format(0, 'day')} ${clock(time)}`;
  if (day(time) === day(now - 86_400_000)) return `${days.format(-1, 'day')} ${clock(time)}`;
  const isThisYear = date.getFullYear() === new Date(now).getFullYear();
  return date.toLocaleString(locale, { day: 'numeric', month: 'short', ...(isThisYear ? {} : { year: 'numeric' }), hour: '2-digit', minute: '2-digit' });
}

export function outcomeOf({ direction, outcome, seconds, startedAt }, now) {
  const spent = outcome === 'answered' && seconds > 0 ? ` · ${duration(seconds)}` : '';
  const shown = direction === 'incoming' && outcome === 'cancelled' ? 'missed' : outcome;
  return `${t(`history.${direction}-${shown}`)} · ${when(startedAt, now)}${spent}`;
}

export const othersOf = ({ members }, user) => members.filter((member) => member.user !== user);

/** "12 calls, 3 hr 20 min". */
export const totalsOf = ({ calls, seconds }) => t('history.totals', { count: calls, duration: duration(seconds) });
