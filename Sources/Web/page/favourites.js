// Favourites: a button in the lobby for each, stored in this browser.

import { byID, element, icon } from './dom.js';
import { labelFor } from './names.js';
import { saveFavourites, savedFavourites } from './session.js';
import { t } from './texts.js';

const MOST = 24;

export class Favourites {
  #user;
  #users = [];
  #chosen;

  /** `chosen(user)` is called after a press. */
  constructor(chosen) {
    this.#chosen = chosen;
  }

  /** Those of `user`, who is signed in. */
  begin(user) {
    this.#user = user;
    this.#users = savedFavourites(user);
    this.show();
  }

  show() {
    byID('favourites').hidden = this.#users.length === 0;
    byID('favourites').replaceChildren(...this.#users.map((user) => this.#button(user)));
  }

  has(user) {
    return this.#users.includes(user);
  }

  toggle(user) {
    const others = this.#users.filter((other) => other !== user);
    this.#users = this.has(user) ? others : [...others, user].slice(-MOST);
    saveFavourites(this.#user, this.#users);
    this.show();
  }

  #button(user) {
    const name = labelFor(user);
    const button = element('button', { type: 'button', className: 'chip', ariaLabel: t('favourites.add', { name }) }, icon('star'), element('span', { textContent: name }));
    button.addEventListener('click', () => this.#chosen(user));
    return button;
  }
}
