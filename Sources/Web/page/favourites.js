// Favourites: the people whom this user wants to see first, stored in this browser.

import { element, icon } from './dom.js';
import { saveFavourites, savedFavourites } from './session.js';
import { t } from './texts.js';

const MOST = 24;

export class Favourites {
  #user;
  #users = [];
  #changed;

  /** `changed()` is called after a press on a star. */
  constructor(changed) {
    this.#changed = changed;
  }

  /** Those of `user`, who is signed in. */
  begin(user) {
    this.#user = user;
    this.#users = savedFavourites(user);
  }

  /** Their ids, in the order in which they were chosen. */
  get users() {
    return this.#users;
  }

  has(user) {
    return this.#users.includes(user);
  }

  toggle(user) {
    const others = this.#users.filter((other) => other !== user);
    this.#users = this.has(user) ? others : [...others, user].slice(-MOST);
    saveFavourites(this.#user, this.#users);
  }

  /** A star that makes `user`, who is shown as `who`, a favourite, and ends that. */
  star(user, who) {
    const button = element('button', { type: 'button', className: 'quiet icon-only star', ariaLabel: t('history.favourite', { who }) }, icon('star'));
    // As an attribute, which `replaceRows` compares.
    button.setAttribute('aria-pressed', String(this.has(user)));
    button.addEventListener('click', () => {
      this.toggle(user);
      this.#changed();
    });
    return button;
  }
}
