// Recordings for others that a closed or crashed page has left: what had not left the device is being uploaded, and the person finishes them, records on, or deletes them.

import { element, byID } from './dom.js';
import { replaceRows, rowButton } from './dialogs.js';
import { Undeliverable, deliver } from './delivery.js';
import { when } from './history-words.js';
import { notice } from './notices.js';
import { endOf } from './own-recording.js';
import { wordsForNetwork, wordsForProgress } from './own-words.js';
import { shortTime, wordsForProblem } from './recordings-words.js';
import { t } from './texts.js';

export class LeftView {
  #actions;
  #recordings;
  #left = [];
  #uploads = new Map(); // id -> a SegmentUploader
  #finishing = new Set();

  /** `resume(left)` records on, `ask(left)` asks whether it is to be deleted, `isBusy(id)`: it is being made here; `changed()` is called when one was finished. */
  constructor(actions) {
    this.#actions = actions;
  }

  use(recordings) {
    [this.#recordings, this.#left] = [recordings, []];
    this.#uploads.clear();
    this.show();
  }

  /** Shows what there is, and goes on with its upload. */
  async refresh() {
    const recordings = this.#recordings;
    const left = (await recordings.unfinished()).filter(({ isLive }) => isLive);
    if (recordings !== this.#recordings) return;
    this.#left = left;
    for (const { id } of left) await this.#upload(recordings, id).catch(() => {}); // a store that fails: the row is shown without its progress
    this.show();
  }

  async #upload(recordings, id) {
    const upload = await recordings.upload(id);
    if (recordings !== this.#recordings || this.#uploads.get(id) === upload) return;
    this.#uploads.set(id, upload);
    upload.addEventListener('change', () => this.#uploads.get(id) === upload && this.show());
  }

  show() {
    const left = this.#left.filter(({ id }) => !this.#actions.isBusy(id));
    byID('record-left').hidden = left.length === 0;
    replaceRows(byID('record-left-list'), left.map((each) => this.#row(each)), byID('record-left-title'));
  }

  #row(left) {
    const { id, startedAt, length } = left;
    const upload = this.#uploads.get(id);
    const { sealed = 0, stored = 0 } = upload?.progress ?? {};
    const share = sealed > 0 ? stored / sealed : 0;
    const problem = upload && endOf(upload);
    const told = problem ? wordsForProblem(problem) : [wordsForProgress({ left: length * share, waits: length * (1 - share), isAll: share === 1 }), wordsForNetwork(upload?.state)].filter(Boolean).join(' ');
    const title = `${when(startedAt)} · ${shortTime(length)}`;
    const text = element('div', { className: 'row-text' });
    text.append(element('span', { textContent: title }), element('span', { className: problem ? 'row-sub problem' : 'row-sub', textContent: told }));
    const actions = element('div', { className: 'row-actions' });
    if (!problem) {
      const isFinishing = this.#finishing.has(id);
      const finish = rowButton(t('record.finish'), title, () => this.#finish(id));
      finish.disabled = isFinishing;
      const resume = rowButton(t('record.resume'), title, async () => this.#actions.resume(left), 'quiet');
      resume.disabled = isFinishing;
      actions.append(finish, resume);
    }
    actions.append(rowButton(t('history.delete'), title, async () => this.#actions.ask(left), 'quiet'));
    const made = element('li', {}, text, actions);
    made.dataset.left = id;
    return made;
  }

  /** Once all of it has left. */
  async #finish(id) {
    const recordings = this.#recordings;
    this.#finishing.add(id);
    this.show();
    try {
      await deliver(recordings, id, { send: () => recordings.finish(id), told: () => this.show() });
      notice(t('record.complete'));
    } catch (error) {
      if (!(error instanceof Undeliverable)) throw error; // else its row says so
    } finally {
      this.#finishing.delete(id);
      await this.#actions.changed();
    }
  }
}
