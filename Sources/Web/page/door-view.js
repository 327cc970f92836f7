// Guests who wait at the door: a member lets them in or refuses them, and everybody reads who let whom in.

import { isGuest } from '../conclave/index.js';
import { byID, openDialog, rest, setInitials, setText } from './dom.js';
import { labelFor, learnNames, nameFor } from './names.js';
import { notice, wordsForError } from './notices.js';
import { t } from './texts.js';

let call;
let shown; // the guest whom the buttons are about

/** Shows the guest of `entered` who has waited longest. After a change the buttons are disabled for a moment: a press may have been meant for somebody else. */
export function showDoor(entered) {
  call = entered;
  const [guest, ...others] = entered?.waitingGuests ?? [];
  const door = byID('door');
  const isSame = guest?.user === shown;
  shown = guest?.user;
  if (!guest) {
    if (door.contains(document.activeElement)) byID('call-title').focus({ preventScroll: true });
    door.hidden = true;
    return;
  }
  learnNames([guest]);
  setInitials(byID('door-avatar'), nameFor(guest.user), guest.user);
  setText(byID('door-title'), t('door.asks', { name: labelFor(guest.user) }));
  setText(byID('door-text'), [t('door.unchecked'), others.length > 0 ? t('door.more', { count: others.length }) : ''].filter(Boolean).join(' '));
  door.hidden = false;
  if (isSame) return;
  for (const button of ['door-admit', 'door-refuse']) rest(byID(button));
  if (openDialog()) notice(byID('door-title').textContent); // the door is behind it
}

async function answer(action) {
  const [answered, guest] = [call, shown];
  if (!answered || !guest || answering.has(guest)) return;
  answering.add(guest);
  try {
    if (!(await answered[action](guest))) notice(t('door.answered'));
  } catch (error) {
    notice(wordsForError(error));
  } finally {
    answering.delete(guest);
  }
}
const answering = new Set();

byID('door-admit').addEventListener('click', () => answer('admitGuest'));
byID('door-refuse').addEventListener('click', () => answer('refuseGuest'));

/** Which guests have been let in since this device is in the call. Signed words say who let them in: the server could name anybody. */
export class Admitted {
  #told;

  /** The guests in `roster` of whom the person `own` has not been told, with the members who have let them in: `{user, by}`. One's own act is no news. */
  news(roster, own) {
    if (roster.length === 0) return [];
    const guests = roster.filter(({ user }) => isGuest(user));
    this.#told ??= new Set(guests.map(({ user }) => user)); // those who were there before
    const news = guests.filter(({ user, admission }) => admission?.how === 'member' && !this.#told.has(user));
    for (const { user } of news) this.#told.add(user);
    return news.map(({ user, admission }) => ({ user, by: admission.by })).filter(({ user, by }) => by !== own && user !== own);
  }
}
