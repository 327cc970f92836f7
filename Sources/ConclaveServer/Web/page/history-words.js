// How a past call is told: whom it was with, how it went, when, and for how long.

const outcomes = {
  incoming: { missed: 'Missed', declined: 'Declined', cancelled: 'Missed', answered: 'Incoming' },
  outgoing: { missed: 'No answer', declined: 'Was declined', cancelled: 'Cancelled', answered: 'Outgoing' },
};

/** "8 s", "12 min", "3 h 20 min". */
export function duration(seconds) {
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  const [hours, rest] = [Math.floor(minutes / 60), minutes % 60];
  if (hours === 0) return `${minutes} min`;
  return rest > 0 ? `${hours} h ${rest} min` : `${hours} h`;
}

/** "Today 14:05", "Yesterday 09:10", or the date: in one piece, however narrow the row. */
export const when = (time, now = Date.now()) => dayAndClock(time, now).replaceAll(' ', '\u00a0');

function dayAndClock(time, now) {
  const date = new Date(time);
  const day = (ms) => new Date(ms).toDateString();
  const clock = date.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' });
  if (day(time) === day(now)) return `Today ${clock}`;
  if (day(time) === day(now - 86_400_000)) return `Yesterday ${clock}`;
  return date.toLocaleDateString([], { day: 'numeric', month: 'short', year: 'numeric' });
}

export function outcomeOf({ direction, outcome, seconds, startedAt }, now) {
  const spent = outcome === 'answered' && seconds > 0 ? ` · ${duration(seconds)}` : '';
  return `${outcomes[direction][outcome]} · ${when(startedAt, now)}${spent}`;
}

export const othersOf = ({ members }, user) => members.filter((member) => member.user !== user);

/** "12 calls, 3 h 20 min". */
export function totalsOf({ calls, seconds }) {
  return `${calls} ${calls === 1 ? 'call' : 'calls'}, ${duration(seconds)}`;
}
