// Recent calls, a row for those in a row with the same people: calling back, the single calls, the presence of the people, the time spent with them, and deleting.

import { busy, byID, element, icon } from './dom.js';
import { replaceRows, rowButton } from './dialogs.js';
import { grouped, othersOf, outcomeOf, peopleIn, totalsOf } from './history-words.js';
import { labelFor, learnNames } from './names.js';
import { notice, wordsForError } from './notices.js';
import { avatarOf, wordsForPresence } from './presence-view.js';
import { listNames, t } from './texts.js';

const PAGE = 20;
const ROWS = 10; // so many are shown if there are as many
const PAGES = 5; // at most, for that
const TOTALS = 8; // people of a row whose totals are asked for
const NAMED = 3; // in a row

/** `callBack(users, withCamera)` rings them; `enter(id)` rejoins a running call; `shown()` is called after what is shown may have changed. */
export class HistoryView {
  #conclave;
  #callBack;
  #favourites;
  #enter;
  #shown;
  #calls = [];
  #running = new Set();
  #opened = new Set(); // ids of calls whose row shows its single calls
  #totals = new Map(); // by user, as far as they were asked for

  constructor({ callBack, enter, favourites, shown = () => {} }) {
    this.#shown = shown;
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
      await this.#watch();
      return this.#shown(); // a server without a history: there is nothing to show but favourites
    }
    return this.#fill(ROWS, this.#calls);
  }

  /** The people of the calls, latest first, as keys; the value says whether the last call with that person alone had video. */
  get people() {
    return peopleIn(this.#calls, this.#conclave?.user);
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
    replaceRows(byID('history-list'), grouped(past, this.#conclave.user).map((row) => this.#row(row)), byID('history-title'));
    this.#shown();
  }

  async #more() {
    const before = this.#rows;
    await this.#fill(before + ROWS, await this.#older());
  }

  get #rows() {
    return grouped(this.#calls, this.#conclave.user).length;
  }

  /** Adds the page after the oldest call. */
  async #older() {
    const before = this.#calls.at(-1)?.startedAt;
    const older = await this.#conclave.history({ before, limit: PAGE }).catch(() => []);
    this.#calls.push(...older);
    return older;
  }

  /** Many calls may make few rows: more are asked for until there are `wanted`. `last` is the page that was loaded last. */
  async #fill(wanted, last) {
    for (let pages = 1; pages < PAGES && last.length === PAGE && this.#rows < wanted; pages += 1) last = await this.#older();
    byID('history-more').hidden = last.length < PAGE;
    await this.#watch();
    this.show();
  }

  async #watch() {
    for (const call of this.#calls) learnNames(call.members);
    const users = this.#calls.flatMap((call) => othersOf(call, this.#conclave.user).map(({ user }) => user));
    await this.#conclave.presence.watch([...this.#favourites.users, ...users]).catch(() => {});
  }

  /** Without `calls`: all. */
  async #delete(calls) {
    const ids = calls?.map(({ id }) => id);
    try {
      await this.#conclave.deleteHistory(ids);
      this.#calls = ids ? this.#calls.filter(({ id }) => !ids.includes(id)) : []; // the list may have been loaded again meanwhile
      byID('history-more').hidden ||= !calls;
      this.show();
    } catch (error) {
      notice(wordsForError(error));
    }
  }

  #row({ others, calls }) {
    const [newest] = calls;
    const who = others.length > 0 ? listNames(others.map(({ user }) => labelFor(user)), NAMED) : t('history.only-you');
    const count = calls.length > 1 ? t('history.times', { count: calls.length }) : '';
    const name = count ? `${who} ${count}` : who;
    const isOpen = calls.some(({ id }) => this.#opened.has(id));
    const details = element('button', { type: 'button', className: 'row-text', ariaLabel: t('history.details', { who: name }) });
    // As an attribute, which `replaceRows` compares.
    details.setAttribute('aria-expanded', String(isOpen));
    const heading = element('span', { className: 'row-name' }, element('span', { textContent: who }), count && element('span', { className: 'row-count', textContent: count }));
    details.append(heading, wordsOf(newest));
    details.addEventListener('click', () => this.#toggle(calls, others));
    const made = element('li', {}, avatarOf(others, who, this.#conclave.presence), details);
    Object.assign(made.dataset, { call: newest.id, outcome: newest.outcome, direction: newest.direction, count: String(calls.length) });
    const users = others.map(({ user }) => user);
    if (newest.rejoinable) made.append(rowButton(t('running.rejoin'), name, () => this.#enter(newest.id)));
    else if (users.length > 0) made.append(rowButton(t('history.call-back'), who, () => this.#callBack(users, newest.media === 'video')));
    if (users.length === 1) made.append(this.#favourites.star(users[0], who));
    made.append(this.#deleteButton(name, calls));
    if (isOpen) made.append(this.#details(calls, others));
    return made;
  }

  #deleteButton(about, calls) {
    const remove = rowButton(t('history.delete'), about, () => this.#delete(calls), 'quiet icon-only');
    remove.replaceChildren(icon('trash'));
    return remove;
  }

  /** The single calls of a row, and the totals of its people. */
  #details(calls, others) {
    const made = element('div', { className: 'row-details' });
    if (calls.length > 1) {
      const single = (call) => element('li', {}, wordsOf(call), this.#deleteButton(outcomeOf(call), [call]));
      made.append(element('ul', { className: 'single-calls' }, ...calls.map(single)));
    }
    const told = others.filter(({ user }) => this.#totals.has(user));
    made.append(...told.map(({ user }) => element('p', { className: 'row-sub totals', textContent: this.#wordsForTotals(user) })));
    return made;
  }

  #wordsForTotals(user) {
    const totals = this.#totals.get(user);
    const facts = [wordsForPresence(this.#conclave.presence.of(user)), totals && t('history.in-all', { totals: totalsOf(totals) })].filter(Boolean);
    return `${labelFor(user)}: ${facts.join(' · ') || t('history.unknown')}`;
  }

  async #toggle(calls, others) {
    if (calls.some(({ id }) => this.#opened.has(id))) {
      for (const { id } of calls) this.#opened.delete(id);
      return this.show();
    }
    for (const { id } of calls) this.#opened.add(id);
    this.show();
    for (const { user } of others.slice(0, TOTALS)) {
      this.#totals.set(user, await this.#conclave.totals(user).catch(() => undefined));
      this.show();
    }
    return undefined;
  }
}

/** The outcome, time and length of a call. */
const wordsOf = (call) => {
  const made = element('span', { className: 'row-sub' }, icon(call.direction), outcomeOf(call));
  Object.assign(made.dataset, { outcome: call.outcome, direction: call.direction });
  return made;
};
