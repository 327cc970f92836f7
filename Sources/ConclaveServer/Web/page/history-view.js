// Recent calls: calling back, the presence of the people, the time spent with them, and deleting.

import { avatar, busy, byID, element, icon } from './dom.js';
import { replaceRows, rowButton } from './dialogs.js';
import { othersOf, outcomeOf, totalsOf } from './history-words.js';
import { labelFor, learnNames, nameFor } from './names.js';
import { notice, wordsForError } from './notices.js';
import { hasText, listNames, t } from './texts.js';

const PAGE = 20;
const NAMED = 3; // in a row

/** A person's presence, in words; undefined for a state that this page does not know. */
const wordsForPresence = (state) => (hasText(`presence.${state}`) ? t(`presence.${state}`) : undefined);

/** `callBack(users, withCamera)` rings them; `enter(id)` rejoins a running call. */
export class HistoryView {
  #conclave;
  #callBack;
  #favourites;
  #enter;
  #calls = [];
  #running = new Set();

  constructor({ callBack, enter, favourites }) {
    this.#callBack = callBack;
    this.#favourites = favourites;
    this.#enter = enter;
    byID('history-more').addEventListener('click', busy(byID('history-more'), () => this.#more()));
    byID('history-clear').addEventListener('click', () => byID('clear-dialog').showModal());
    const clear = async () => {
      await this.#delete();
      byID('clear-dialog').close();
    };
    byID('clear-confirm').addEventListener('click', busy(byID('clear-confirm'), clear));
  }

  /** The newest calls, from the server. */
  async load(conclave) {
    this.#conclave = conclave;
    try {
      this.#calls = await conclave.history({ limit: PAGE });
    } catch {
      return; // a server without a history: there is nothing to show
    }
    byID('history-more').hidden = this.#calls.length < PAGE;
    await this.#watch();
    this.show();
  }

  /** Without the calls that are listed as running: one call has one row. */
  without(running) {
    this.#running = new Set(running);
    this.show();
  }

  show() {
    if (!this.#conclave) return;
    const past = this.#calls.filter(({ id }) => !this.#running.has(id));
    byID('history').hidden = past.length === 0;
    replaceRows(byID('history-list'), past.map((call) => this.#row(call)), byID('history-title'));
  }

  async #more() {
    const before = this.#calls.at(-1)?.startedAt;
    const older = await this.#conclave.history({ before, limit: PAGE }).catch(() => []);
    this.#calls.push(...older);
    byID('history-more').hidden = older.length < PAGE;
    await this.#watch();
    this.show();
  }

  async #watch() {
    for (const call of this.#calls) learnNames(call.members);
    const users = this.#calls.flatMap((call) => othersOf(call, this.#conclave.user).map(({ user }) => user));
    await this.#conclave.presence.watch(users).catch(() => {});
  }

  /** Without `call`: all. */
  async #delete(call) {
    try {
      await this.#conclave.deleteHistory(call && [call.id]);
      this.#calls = call ? this.#calls.filter((other) => other !== call) : [];
      byID('history-more').hidden ||= !call;
      this.show();
    } catch (error) {
      notice(wordsForError(error));
    }
  }

  #row(call) {
    const others = othersOf(call, this.#conclave.user);
    const who = others.length > 0 ? listNames(others.map(({ user }) => labelFor(user)), NAMED) : t('history.only-you');
    const details = element('button', { type: 'button', className: 'row-text', ariaLabel: t('history.details', { who }), ariaExpanded: 'false' });
    const outcome = element('span', { className: 'row-sub' }, icon(call.direction), outcomeOf(call));
    details.append(element('span', { textContent: who }), outcome);
    details.addEventListener('click', () => this.#showTotals(details, others));
    const made = element('li', {}, avatarOf(others, who, this.#conclave.presence), details);
    Object.assign(made.dataset, { call: call.id, outcome: call.outcome, direction: call.direction });
    const users = others.map(({ user }) => user);
    if (call.rejoinable) made.append(rowButton(t('running.rejoin'), who, () => this.#enter(call.id)));
    else if (users.length > 0) made.append(rowButton(t('history.call-back'), who, () => this.#callBack(users, call.media === 'video')));
    if (users.length === 1) made.append(this.#favouriteButton(users[0], who));
    const remove = rowButton(t('history.delete'), who, () => this.#delete(call), 'quiet icon-only');
    remove.replaceChildren(icon('trash'));
    made.append(remove);
    return made;
  }

  #favouriteButton(user, who) {
    const button = element('button', { type: 'button', className: 'quiet icon-only star', ariaLabel: t('history.favourite', { who }) }, icon('star'));
    // As an attribute, which `replaceRows` compares.
    button.setAttribute('aria-pressed', String(this.#favourites.has(user)));
    button.addEventListener('click', () => {
      this.#favourites.toggle(user);
      this.show();
    });
    return button;
  }

  async #showTotals(button, others) {
    if (button.ariaExpanded === 'true') {
      button.ariaExpanded = 'false';
      for (const line of button.querySelectorAll('.totals')) line.remove();
      return;
    }
    button.ariaExpanded = 'true';
    for (const { user } of others.slice(0, 8)) {
      const state = wordsForPresence(this.#conclave.presence.of(user));
      const totals = await this.#conclave.totals(user).catch(() => undefined);
      if (button.ariaExpanded !== 'true') return;
      const facts = [state, totals && t('history.in-all', { totals: totalsOf(totals) })].filter(Boolean).join(' · ');
      button.append(element('span', { className: 'row-sub totals', textContent: `${labelFor(user)}: ${facts || t('history.unknown')}` }));
    }
  }
}

/** The avatar of a single person has a dot that shows the presence. */
function avatarOf(others, who, presence) {
  const made = avatar(others.length > 0 ? nameFor(others[0].user) : who);
  const state = others.length === 1 ? presence.of(others[0].user) : undefined;
  const words = wordsForPresence(state);
  if (!words) return made;
  const dot = element('span', { className: 'presence', title: words });
  dot.dataset.state = state;
  return element('div', { className: 'with-presence' }, made, dot, element('span', { className: 'visually-hidden', textContent: words }));
}
