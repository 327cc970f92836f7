// A field for several people: typed names become chips, and chips become user ids.

import { element, icon, setText } from './dom.js';
import { suggestName } from './names.js';

const VALID = /^[A-Za-z0-9._~@+-]{1,128}$/;

/** The user id that stands for a typed name: as it is where ids are known, made from the name in demo mode. */
export function userIDOf(name, isDemo) {
  const typed = name.trim();
  if (!isDemo) return VALID.test(typed) ? typed : '';
  const plain = typed.normalize('NFKD').replace(/\p{M}/gu, '').toLowerCase();
  const id = plain.replace(/[^a-z0-9._~@+-]+/g, '-').replace(/^-+|-+$/g, '').slice(0, 128);
  if (id || !typed) return id;
  // A name in another script: its characters' numbers, so that everybody who types it means the same person.
  return `u${[...typed].map((character) => character.codePointAt(0).toString(36)).join('-')}`.slice(0, 128);
}

export class PeopleField {
  #input;
  #list;
  #names = [];

  constructor(input) {
    this.#input = input;
    const root = input.closest('.chips');
    this.#list = root.querySelector('.chip-list');
    root.addEventListener('click', (event) => event.target === root && input.focus());
    input.addEventListener('keydown', (event) => this.#key(event));
    input.addEventListener('input', () => /[,;]/.test(input.value) && this.#take());
  }

  /** The names so far, with what is still in the field. */
  get names() {
    this.#take();
    return [...this.#names];
  }

  clear() {
    this.#names = [];
    this.#input.value = '';
    this.#render();
  }

  focus() {
    this.#input.focus();
  }

  #key(event) {
    if (event.key === 'Enter' && this.#input.value.trim()) {
      event.preventDefault();
      this.#take();
    } else if (event.key === 'Backspace' && !this.#input.value && this.#names.length > 0) {
      this.#names.pop();
      this.#render();
    }
  }

  #take() {
    const typed = this.#input.value.split(/[,;]/).map((name) => name.trim()).filter(Boolean);
    this.#input.value = '';
    this.#names = [...new Set([...this.#names, ...typed])];
    this.#render();
  }

  #render() {
    this.#list.replaceChildren(
      ...this.#names.map((name) => {
        const remove = element('button', { type: 'button', ariaLabel: `Remove ${name}` }, icon('close'));
        remove.addEventListener('click', () => {
          this.#names = this.#names.filter((other) => other !== name);
          this.#render();
          this.focus();
        });
        return element('li', { className: 'chip' }, element('span', { textContent: name }), remove);
      }),
    );
  }
}

/** The user ids that a field names; undefined when something is wrong with them, which `problem` then says. */
export function chosenIDs(field, problem, { isDemo, own }) {
  const typed = field.names;
  const ids = typed.map((name) => userIDOf(name, isDemo));
  const wrong = typed.find((_, index) => !ids[index]);
  if (wrong) setText(problem, `“${wrong}” is not a user id.`);
  else if (ids.length === 0) setText(problem, 'Type at least one name.');
  else if (ids.includes(own)) setText(problem, 'You cannot call yourself.');
  else {
    setText(problem, '');
    typed.forEach((name, index) => suggestName(ids[index], name));
    return ids;
  }
  field.focus();
  return undefined;
}
