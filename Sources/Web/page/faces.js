// The people at the top of the lobby: favourites, then those of the last calls, each with a face that a press calls.

import { byID, element, icon } from './dom.js';
import { replaceRows, rowButton } from './dialogs.js';
import { labelFor } from './names.js';
import { avatarOf, wordsForPresence } from './presence-view.js';
import { t } from './texts.js';

const RECENT = 8; // beside the favourites

export class Faces {
  #favourites;
  #history;
  #presence;
  #field;
  #call;

  /**
   * `history.people` are those of the last calls; `call([user], withCamera)` rings one. While `field` has names, which are to be called together, a press adds to
   * them instead.
   */
  constructor({ favourites, history, presence, field, call }) {
    this.#favourites = favourites;
    this.#history = history;
    this.#presence = presence;
    this.#field = field;
    this.#call = call;
  }

  show() {
    const { people } = this.#history;
    const { users } = this.#favourites;
    const recent = [...people.keys()].filter((user) => !users.includes(user)).slice(0, RECENT);
    const shown = [...users, ...recent];
    byID('faces').hidden = shown.length === 0;
    replaceRows(byID('faces'), shown.map((user) => this.#row(user, people.get(user) ?? true)), byID('lobby-title'));
  }

  #row(user, withCamera) {
    const name = labelFor(user);
    const made = element('li', {}, this.#face(user, name, withCamera), this.#favourites.star(user, name));
    Object.assign(made.dataset, { user, favourite: String(this.#favourites.has(user)) });
    return made;
  }

  #face(user, name, withCamera) {
    const isAdding = this.#field.hasNames;
    const press = async () => (isAdding ? this.#field.add(user) : this.#call([user], withCamera));
    const button = rowButton('', '', press, 'face');
    button.ariaLabel = isAdding ? t('favourites.add', { name }) : `${t(withCamera ? 'call.video' : 'call.audio')}: ${name}`;
    // The presence is no part of the name: the keyboard's focus finds the button by its name when the presence has changed.
    const presence = element('span', { id: `presence-${user}`, textContent: wordsForPresence(this.#presence.of(user)) ?? '' });
    button.setAttribute('aria-describedby', presence.id);
    const below = element('span', { className: 'face-sub' }, icon(isAdding ? 'add' : withCamera ? 'camera' : 'phone'), presence);
    button.replaceChildren(avatarOf([{ user }], name, this.#presence), element('span', { className: 'face-name', textContent: name }), below);
    return button;
  }
}
