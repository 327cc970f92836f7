// The list of messages and recordings in the lobby: those that this user got or made, and those that were not sent yet.

import { avatar, busy, byID, element, icon, setText } from './dom.js';
import { replaceRows, rowButton } from './dialogs.js';
import { PASSING, Undeliverable, deliver } from './delivery.js';
import { when } from './history-words.js';
import { labelFor, learnNames, nameFor } from './names.js';
import { notice, wordsForError } from './notices.js';
import { namesOf, shortTime, wordsForProblem, wordsForUnreadable } from './recordings-words.js';
import { t } from './texts.js';

const ROWS = 10; // so many are shown, and as many more with each press

const titleFor = (readers) => (readers.length > 0 ? t('recordings.for', { names: namesOf(readers) }) : t('recordings.own'));

const titleForCall = (others, name) => (others.length > 0 ? t('recordings.call', { names: namesOf(others) }) : t('player.call', { name }));

/** The words of a recording's row; `user` is the person whose face it has. `facts` are of `describe`, or `{error}`. */
export function rowOf({ id, kind, role, by, startedAt, state, isNew }, own, facts) {
  const isOwn = role === 'owner';
  const readers = facts?.readers?.filter((user) => user !== own);
  const name = labelFor(by.user);
  const isOfCall = kind === 'call';
  const others = facts?.users?.filter((user) => user !== own) ?? [];
  const title = isOfCall ? titleForCall(others, name) : isOwn ? (readers ? titleFor(readers) : t('player.own')) : name;
  const length = facts?.length === undefined ? undefined : shortTime(facts.length);
  const told = [isNew && t('recordings.new'), when(startedAt), length, state !== 'finished' && t(`recordings.${state}`)].filter(Boolean);
  const problem = facts?.error && wordsForUnreadable(facts.error, name);
  const isRecorded = isOfCall && Boolean(facts?.users?.includes(own)) && state !== 'running';
  const user = isOfCall ? (others[0] ?? by.user) : isOwn ? readers?.[0] ?? own : by.user;
  return { id, isDraft: false, isNew, isOwn, isOfCall, isRecorded, user, name, title, facts: told.join(' · '), problem };
}

/** The same of one that was not sent yet. */
export function draftRowOf({ id, readers, startedAt, length }, own) {
  const others = readers.filter((user) => user !== own);
  const title = titleFor(others);
  const facts = [t('recordings.unsent'), when(startedAt), shortTime(length)].join(' · ');
  return { id, isDraft: true, isNew: false, isOwn: true, isOfCall: false, isRecorded: false, user: others[0] ?? own, name: title, title, facts, problem: undefined };
}

export class RecordingsView {
  #actions;
  #recordings;
  #own;
  #entries = [];
  #drafts = [];
  #facts = new Map(); // id -> of `describe`, or `{error}`
  #opened = new Set(); // ids of rows that show what else can be done
  #most = ROWS;
  #turn = 0;
  #describing;
  #asked; // the row whose deletion the person is asked about

  /**
   * `play({id, isDraft, title})`, `callBack(user)`, `share(id)` and `download({id, isDraft, startedAt})` are called by the buttons; `isBusy(id)` says that a recording is
   * being made elsewhere on the page; `deleted()` is called when one was deleted.
   */
  constructor(actions) {
    this.#actions = actions;
    byID('recordings-more').addEventListener('click', () => {
      this.#most += ROWS;
      this.show();
      this.#describe();
    });
    const erase = byID('erase-recording-confirm');
    erase.addEventListener('click', busy(erase, async () => {
      byID('erase-recording-dialog').close();
      await this.#erase(this.#asked).catch((error) => notice(wordsForError(error)));
    }));
    const confirm = byID('delete-recording-confirm');
    confirm.addEventListener('click', busy(confirm, async () => {
      byID('delete-recording-dialog').close();
      await this.#delete(this.#asked).catch((error) => notice(wordsForError(error)));
    }));
  }

  /** The recordings of `own`, who is signed in. */
  use(recordings, own) {
    [this.#recordings, this.#own] = [recordings, own];
    [this.#entries, this.#drafts] = [[], []];
    this.#facts.clear();
    this.show();
  }

  /** Asks the server, and looks what was not sent. */
  async refresh() {
    const turn = (this.#turn += 1);
    const [entries, drafts] = await Promise.all([this.#recordings.list(), this.#recordings.unfinished()]);
    if (turn !== this.#turn) return;
    const ids = new Set(drafts.map(({ id }) => id));
    this.#drafts = drafts.filter(({ isLive }) => !isLive); // `LeftView` has the others
    this.#entries = entries.filter(({ id }) => !ids.has(id));
    // A recording that grows is described again.
    for (const { id, state } of entries) if (state === 'running') this.#facts.delete(id);
    this.show();
    await this.#describe();
  }

  /** Asks for the signer and the length of those that are shown, one after the other. */
  #describe() {
    this.#describing ??= this.#describeShown().finally(() => (this.#describing = undefined));
    return this.#describing;
  }

  async #describeShown() {
    const asked = new Set();
    for (let next; (next = this.#shown.find(({ id }) => !this.#facts.has(id) && !asked.has(id))); this.show()) {
      asked.add(next.id);
      await this.#look(next.id);
    }
  }

  /** Resolves with what is known of a recording, `{error}` if it cannot be opened here. A server that does not answer is asked again the next time. */
  async #look(id) {
    const recordings = this.#recordings;
    const facts = await recordings.describe(id).catch((error) => ({ error }));
    if (!facts.error) learnNames([{ user: facts.by.user, name: facts.name }]);
    if (recordings === this.#recordings && !PASSING.includes(facts.error?.code)) this.#facts.set(id, facts);
    return facts;
  }

  get #shown() {
    return this.#entries.slice(0, this.#most);
  }

  /** Shows what is known. Nothing is to be seen of it while the page is in the background: another app may show a picture of it. */
  show() {
    const drafts = this.#drafts.filter(({ id }) => !this.#actions.isBusy(id)).map((draft) => ({ ...draftRowOf(draft, this.#own), startedAt: draft.startedAt }));
    const rows = [...drafts, ...this.#shown.map((entry) => ({ ...rowOf(entry, this.#own, this.#facts.get(entry.id)), startedAt: entry.startedAt }))];
    byID('recordings').hidden = rows.length === 0;
    byID('recordings-list').hidden = document.hidden;
    byID('recordings-more').hidden = this.#entries.length <= this.#most;
    replaceRows(byID('recordings-list'), rows.map((row) => this.#row(row)), byID('recordings-title'));
  }

  #row(row) {
    const { id, user, title, facts, problem, isNew, isDraft } = row;
    const isOpen = this.#opened.has(id);
    const details = element('button', { type: 'button', className: 'row-text', ariaLabel: t('history.details', { who: title }) });
    // As an attribute, which `replaceRows` compares.
    details.setAttribute('aria-expanded', String(isOpen));
    details.append(element('span', { className: 'row-name', textContent: title }), element('span', { className: problem ? 'row-sub problem' : 'row-sub', textContent: problem ?? facts }));
    details.addEventListener('click', () => this.#toggle(id));
    const made = element('li', {}, avatar(nameFor(user), user), details);
    Object.assign(made.dataset, { recording: id, new: String(isNew), draft: String(isDraft) });
    const about = `${title}, ${facts}`;
    if (!problem) made.append(rowButton(t('recordings.play'), about, () => this.#actions.play(row), isDraft ? 'quiet' : 'secondary'));
    if (isDraft) made.append(rowButton(t('chat.send'), about, () => this.#send(row)));
    const remove = rowButton(t('history.delete'), about, async () => this.ask(row), 'quiet icon-only');
    remove.replaceChildren(icon('trash'));
    made.append(remove);
    if (isOpen) made.append(this.#more(row, about));
    return made;
  }

  /** The buttons that are used less. */
  #more({ id, user, isOwn, isDraft, isOfCall, isRecorded, problem, startedAt }, about) {
    const made = element('div', { className: 'row-details row-actions' });
    const { callBack, share, download } = this.#actions;
    if (!isOwn && !isOfCall) made.append(rowButton(t('history.call-back'), about, () => callBack(user)));
    if (!isDraft && !problem) made.append(rowButton(t('link.share'), about, async () => share(id)));
    if (isRecorded) made.append(rowButton(t('recordings.erase'), about, async () => this.#askErasure(id)));
    if (!problem && !isOfCall) made.append(rowButton(t('recordings.download'), about, () => download({ id, isDraft, startedAt })));
    return made;
  }

  #toggle(id) {
    if (!this.#opened.delete(id)) this.#opened.add(id);
    this.show();
  }

  /** The person has opened it: it is no longer new. */
  opened(id) {
    this.#entries = this.#entries.map((entry) => (entry.id === id ? { ...entry, isNew: false } : entry));
    this.show();
  }

  /** Somebody has granted one to this device: the notice has the name of the person who has signed it. */
  async arrived(id) {
    await this.refresh();
    const entry = this.#entries.find((each) => each.id === id);
    if (!entry || entry.role === 'owner' || entry.kind === 'call') return; // the end of a call's recording is told in the call
    const facts = this.#facts.get(id) ?? (await this.#look(id));
    if (!facts.error) notice(t('recordings.arrived', { name: labelFor(facts.by.user) }));
  }

  async #send({ id }) {
    let said;
    const told = (state) => {
      const words = state === 'waiting' ? t('message.waiting') : state === 'full' ? t('error.recording.full') : undefined;
      if (words && words !== said) notice(words);
      said = words;
    };
    try {
      const devices = await deliver(this.#recordings, id, { told });
      const reached = Object.keys(devices).filter((user) => user !== this.#own);
      notice(reached.length > 0 ? t('message.sent', { names: namesOf(reached) }) : t('message.saved'));
    } catch (error) {
      notice(wordsForProblem(error instanceof Undeliverable ? error.problem : { error }));
    }
    await this.refresh();
  }

  /** Asks whether a recording is to be deleted. */
  ask(row) {
    this.#asked = row;
    setText(byID('delete-recording-text'), t(row.isDraft ? 'recordings.delete-unsent' : row.isOwn ? 'recordings.delete-own' : 'recordings.delete-received'));
    byID('delete-recording-dialog').showModal();
  }

  #askErasure(id) {
    this.#asked = { id };
    byID('erase-recording-dialog').showModal();
  }

  async #erase({ id }) {
    await this.#recordings.erase(id);
    this.#facts.delete(id);
    notice(t('recordings.erased'));
    await this.refresh();
  }

  async #delete({ id }) {
    await this.#recordings.delete([id]);
    this.#entries = this.#entries.filter((entry) => entry.id !== id);
    this.#drafts = this.#drafts.filter((draft) => draft.id !== id);
    this.show();
    await this.#actions.deleted();
  }
}
