// The view after a call of this user that did not come about: the people, why, and calling them again. It stays until it is closed, or a call or a ring replaces it.

import { busy, byID, element, avatar, openDialog, setIcon, setInitials, setText } from './dom.js';
import { clock } from './history-words.js';
import { labelFor, nameFor } from './names.js';
import { notice, withdrawNotices, wordsForError } from './notices.js';
import { hasText, t } from './texts.js';
import { show } from './views.js';

const RUNG = ['ringing', 'offline']; // somebody who is offline rings if they return in time
const OVER = ['declined', 'missed', 'cancelled']; // states of a member who was rung
const RECORDED_FOR = ['declined', 'missed', 'unavailable', 'busy']; // the call is in their history, so the server passes on a message to them

/** Whether people were called and none of them rings, according to the results of `start`. */
export function ringsNobody(results) {
  const all = Object.values(results ?? {});
  return all.length > 0 && !all.some((result) => RUNG.includes(result));
}

/** Whether everybody whom this user called has declined or did not answer. A member whom the user stopped ringing does not count. */
export function isUnanswered({ isInitiator, answeredAt, others }) {
  if (!isInitiator || answeredAt !== undefined) return false;
  return others.every(({ state }) => OVER.includes(state)) && others.some(({ state }) => state !== 'cancelled');
}

/** How each ring ended, `[{user, result, words}]` by name, according to the results of `start` and the members of the call. */
export function outcomesOf(results, others) {
  const told = new Map(Object.entries(results ?? {}).map(([user, result]) => [user, `result.${result}`]));
  for (const { user, state } of others) told.set(user, `event.${state}`);
  const outcomes = [...told].filter(([, key]) => hasText(key)).map(([user, key]) => ({ user, result: key.split('.')[1], words: t(key, { name: labelFor(user) }) }));
  return outcomes.sort((one, other) => labelFor(one.user).localeCompare(labelFor(other.user)));
}

/** The heading: a single person's outcome, or what is true of all. */
export function headingOf(outcomes) {
  if (outcomes.length === 1) return outcomes[0].words;
  const results = new Set(outcomes.map(({ result }) => result));
  if (results.size === 1 && results.has('declined')) return t('over.declined');
  return t(results.has('missed') || results.has('declined') ? 'over.no-answer' : 'unanswered.nobody');
}

export class UnansweredView {
  #users = [];
  #hasCamera = false;
  #closed;
  #recorded = { users: /** @type {string[]} */ ([]), call: undefined }; // of a message
  #canRecord;

  /**
   * `callAgain(users, withCamera)` rings them; `record(users, call)` records a message for them, if `canRecord()`; `closed()` is called when the lobby is shown in
   * place of this view.
   */
  constructor({ callAgain, record, canRecord, closed }) {
    this.#closed = closed;
    this.#canRecord = canRecord;
    const button = byID('unanswered-record');
    button.addEventListener('click', busy(button, () => record(this.#recorded.users, this.#recorded.call)));
    const again = () => callAgain(this.#users, this.#hasCamera).catch((error) => notice(wordsForError(error)));
    byID('unanswered-again').addEventListener('click', busy(byID('unanswered-again'), again));
    byID('unanswered-close').addEventListener('click', () => this.close());
    document.addEventListener('keydown', (event) => {
      if (event.key === 'Escape' && !event.defaultPrevented && !openDialog()) this.close();
    });
  }

  get isShown() {
    return !byID('unanswered').hidden;
  }

  /** `outcomes` is the result of `outcomesOf`; `at` is when the call with the id `call` began. Shows nothing, and returns false, if there are none. */
  show(outcomes, { withCamera, at, call }) {
    if (outcomes.length === 0) return false;
    this.#recorded = { call, users: outcomes.filter(({ result }) => RECORDED_FOR.includes(result)).map(({ user }) => user) };
    this.offer();
    this.#users = outcomes.map(({ user }) => user);
    this.#hasCamera = withCamera;
    const isSingle = outcomes.length === 1;
    setText(byID('unanswered-title'), headingOf(outcomes));
    setText(byID('unanswered-facts'), `${t(withCamera ? 'call.video' : 'call.audio')} · ${clock(at)}`);
    byID('unanswered-avatar').hidden = !isSingle;
    setInitials(byID('unanswered-avatar'), nameFor(this.#users[0]), this.#users[0]);
    byID('unanswered-list').hidden = isSingle;
    byID('unanswered-list').replaceChildren(...(isSingle ? [] : outcomes.map(rowOf)));
    setIcon(byID('unanswered-again'), withCamera ? 'camera' : 'phone');
    withdrawNotices(outcomes.map(({ words }) => words));
    show('unanswered'); // its heading gets the focus: a screen reader says it, and the list
    return true;
  }

  /** Offers to record a message, if that is possible by now. */
  offer() {
    byID('unanswered-record').hidden = this.#recorded.users.length === 0 || !this.#canRecord();
  }

  /** Shows again what it showed last. */
  return() {
    show('unanswered');
  }

  /** The lobby is shown in its place. */
  close() {
    if (!this.isShown) return;
    show('lobby');
    this.#closed();
  }
}

function rowOf({ user, result, words }) {
  const made = element('li', {}, avatar(nameFor(user), user), element('span', { className: 'row-text', textContent: words }));
  Object.assign(made.dataset, { user, result });
  return made;
}
