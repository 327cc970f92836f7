// Removing a guest from a call: the question before it, and whose act it was.

import { isGuest } from '../conclave/index.js';
import { busy, byID, setText } from './dom.js';
import { labelFor } from './names.js';
import { notice, wordsForError } from './notices.js';
import { t } from './texts.js';

let asked; // the call and the guest of the question

/** Whether this person may remove `member` from `call`: only guests can be removed, and not by guests. */
export const mayRemove = (call, { user, state }) => isGuest(user) && !isGuest(call.user) && ['joined', 'disconnected'].includes(state);

/** Asks before the guest is removed, because all links become void with it. */
export async function askRemoval(call, user) {
  asked = { call, user };
  setText(byID('remove-guest-title'), t('guest.remove-title', { name: labelFor(user) }));
  byID('remove-guest-dialog').showModal();
}

const remove = async ({ call, user }) => {
  byID('remove-guest-dialog').close();
  try {
    await call.removeGuest(user);
  } catch (error) {
    notice(wordsForError(error));
  }
};
byID('remove-guest-confirm').addEventListener('click', busy(byID('remove-guest-confirm'), () => remove(asked)));

/** The members who say that they have removed a guest of a call. The seal of the message names the sender; the server cannot make one. */
export class Removals {
  #by = new Map(); // guest -> user

  /** Takes a message of `call`. The word of a guest counts for nothing, because guests remove nobody. */
  take(call, { participant, removed }) {
    const user = removed !== undefined && (participant === call.participant ? call.user : call.ownerOf(participant)?.user);
    if (user && !isGuest(user) && call.members.has(removed)) this.#by.set(removed, user);
  }

  /** The member whose act the removal of this guest is; undefined if only the server says that somebody removed it. */
  by(user) {
    return this.#by.get(user);
  }

  /** A guest who has come back was not removed this time. */
  forget(user) {
    this.#by.delete(user);
  }
}
