// The person's lasting links in the lobby: making, starting, handing out and deleting them.

import { busy, byID, element, setText } from './dom.js';
import { replaceRows, row, rowButton } from './dialogs.js';
import { when } from './history-words.js';
import { addressOf } from './link.js';
import { notice, wordsForError } from './notices.js';
import * as session from './session.js';
import { t, withUnit } from './texts.js';

const DAYS = [1, 7, 30, 90, 365];
const DAY_SECONDS = 86_400;
const AWAITED_MS = 150_000; // the server says it once a minute while somebody waits

export class LinksView {
  #conclave;
  #actions;
  #links = [];
  #days = 0;
  #awaited = new Map(); // id -> when it was last said that somebody waits
  #shown; // the link of the dialog; undefined: a new one

  /** `actions` has `started(call, link)`, and `join(id)` for a call of a link that runs. */
  constructor(conclave, actions) {
    this.#conclave = conclave;
    this.#actions = actions;
    conclave.addEventListener('link-waiting', ({ detail: id }) => this.#isAwaited(id));
    this.#listen();
  }

  /** Asks the server for the links. Without lasting links the lobby has no place for them. */
  async refresh() {
    try {
      const { links, days } = await this.#conclave.lastingLinks.list();
      this.#links = links;
      this.#days = days;
    } catch (error) {
      if (error.code !== 'auth.forbidden') return; // what is shown stays
      this.#links = [];
      this.#days = 0;
    }
    this.#show();
  }

  /** Whether this user has the link with this id. */
  has(id) {
    return this.#links.some((link) => link.id === id);
  }

  focus() {
    byID('links-title').focus();
  }

  #show() {
    byID('links').hidden = this.#days === 0;
    byID('links-help').hidden = this.#links.length > 0;
    replaceRows(byID('links-list'), this.#links.map((link) => this.#row(link)), byID('links-title'));
  }

  #row(link) {
    const name = nameOf(link);
    const made = row('', name, this.#words(link));
    made.dataset.link = link.id;
    if (link.call) made.append(rowButton(t('running.join'), name, async () => this.#actions.join(link.call)));
    else if (link.secret) made.append(rowButton(t('links.start'), name, () => this.#start(link)));
    made.append(rowButton(t('links.show'), name, async () => this.#open(link), 'quiet'));
    return made;
  }

  #words({ id, call, device, secret, expiresAt }) {
    const state = call ? t('links.running') : this.#awaited.get(id) > Date.now() - AWAITED_MS ? t('links.somebody') : undefined;
    const elsewhere = secret ? undefined : t('links.elsewhere', { device: this.#conclave.deviceName(this.#conclave.user, device) ?? device });
    return [state, elsewhere, t('links.until', { time: when(expiresAt) })].filter(Boolean).join(' · ');
  }

  async #start(link) {
    const call = await this.#conclave.startLasting(link.id, { camera: true });
    this.#awaited.delete(link.id);
    if (!call.hasEnded) this.#actions.started(call, link);
  }

  async #isAwaited(id) {
    this.#awaited.set(id, Date.now());
    if (!this.has(id)) await this.refresh();
    const link = this.#links.find((each) => each.id === id);
    if (!link || link.call) return;
    this.#show();
    notice(link.name ? t('links.awaited', { name: link.name }) : t('links.somebody'));
  }

  // The dialog

  #open(link) {
    this.#shown = link;
    setText(byID('lasting-error'), '');
    byID('lasting-form').hidden = Boolean(link);
    byID('lasting-made').hidden = !link;
    setText(byID('lasting-title'), link ? nameOf(link) : t('links.new'));
    if (link) this.#showLink(link);
    else this.#showForm();
    if (!byID('lasting-dialog').open) byID('lasting-dialog').showModal();
  }

  #showForm() {
    byID('lasting-name').value = '';
    byID('lasting-waits').checked = byID('link-waits').checked;
    const days = [...new Set([...DAYS.filter((each) => each <= this.#days), this.#days])];
    byID('lasting-days').replaceChildren(...days.map((each) => element('option', { value: String(each), textContent: withUnit(each, 'day') })));
    byID('lasting-days').value = String(days.includes(7) ? 7 : days.at(-1));
  }

  #showLink(link) {
    const hasAddress = Boolean(link.secret);
    byID('lasting-address').hidden = !hasAddress;
    byID('lasting-text').value = hasAddress ? addressOf({ ...link, isLasting: true }) : '';
    setText(byID('lasting-words'), this.#words(link));
    byID('lasting-copy').hidden = !hasAddress;
    byID('lasting-share').hidden = !hasAddress || !navigator.share;
  }

  async #make() {
    const { user, device } = this.#conclave.identity;
    try {
      const made = await this.#conclave.lastingLinks.make({
        expiresIn: DAY_SECONDS * Number(byID('lasting-days').value), name: byID('lasting-name').value.trim(), guestsWait: byID('lasting-waits').checked,
      });
      session.preferDevice(user, device);
      await this.refresh();
      this.#open(this.#links.find(({ id }) => id === made.id) ?? made);
      byID('lasting-text').select();
    } catch (error) {
      setText(byID('lasting-error'), error.code === 'request.too-large' ? t('links.full') : wordsForError(error));
    }
  }

  async #delete() {
    await this.#conclave.lastingLinks.delete(this.#shown.id);
    byID('lasting-dialog').close();
    notice(t('links.deleted'));
    await this.refresh();
    this.focus();
  }

  async #share() {
    try {
      await navigator.share({ title: nameOf(this.#shown), url: byID('lasting-text').value });
    } catch (error) {
      if (error.name !== 'AbortError') throw error; // the person closed the system's sheet
    }
  }

  #listen() {
    const onClick = (id, action) => byID(id).addEventListener('click', busy(byID(id), () => action().catch((error) => notice(wordsForError(error)))));
    onClick('links-new', async () => this.#open(undefined));
    onClick('lasting-copy', async () => {
      await navigator.clipboard.writeText(byID('lasting-text').value);
      notice(t('link.copied'));
    });
    onClick('lasting-share', () => this.#share());
    onClick('lasting-delete', () => this.#delete());
    const make = busy(byID('lasting-make'), () => this.#make());
    byID('lasting-form').addEventListener('submit', (event) => {
      event.preventDefault();
      make();
    });
  }
}

const nameOf = ({ name }) => name || t('links.unnamed');
