// Passing a recording on to others.

import { busy, byID, setText } from './dom.js';
import { labelFor } from './names.js';
import { notice, wordsForError } from './notices.js';
import { PeopleField, canRing, checkNames, chosenIDs } from './people.js';
import { namesOf } from './recordings-words.js';
import { t } from './texts.js';

export class ShareDialog {
  #options;
  #share;
  #id;
  #readers = new PeopleField(byID('share-people'), (names) => checkNames(this.#readers, names, byID('share-error'), this.#options()));

  /** `options()` is the argument of `chosenIDs`; `share(id, users)` resolves with how many devices of each can open it. */
  constructor({ options, share }) {
    this.#options = options;
    this.#share = share;
    const submit = busy(byID('share-button'), () => this.#submit());
    byID('share-form').addEventListener('submit', (event) => {
      event.preventDefault();
      submit();
    });
  }

  open(id) {
    this.#id = id;
    this.#readers.clear();
    setText(byID('share-error'), '');
    byID('share-dialog').showModal();
    this.#readers.focus();
  }

  async #submit() {
    const users = chosenIDs(this.#readers, byID('share-error'), this.#options());
    if (!users || !(await canRing(this.#readers, byID('share-error'), this.#options()))) return;
    try {
      const devices = await this.#share(this.#id, users);
      byID('share-dialog').close();
      const reached = users.filter((user) => devices[user]);
      if (reached.length > 0) notice(t('message.sent', { names: namesOf(reached) }));
      for (const user of users) if (!devices[user]) notice(t('result.no-keys', { name: labelFor(user) }));
    } catch (error) {
      setText(byID('share-error'), wordsForError(error));
    }
  }
}
