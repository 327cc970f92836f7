// A field for several people: typed names become chips, and chips become user ids.

import { byID, element, icon, setText } from './dom.js';
import { knownPeople, labelFor, suggestName, userIDOf } from './names.js';
import { listAlternatives, t } from './texts.js';

const SUGGESTED = 100;

/** Fills the list from which the fields suggest people while a name is typed. */
export function suggestPeople() {
  byID('known-people').replaceChildren(...knownPeople(SUGGESTED).map((value) => element('option', { value, label: labelFor(value) })));
}

export class PeopleField {
  #input;
  #list;
  #names = [];
  #doubtful = new Set();
  #known = new Set();
  #taken;
  #changed;

  /** `taken(names)` is called when names were entered one by one, and not with the whole form; `changed()` when the chips have changed. */
  constructor(input, taken = (_) => {}, changed = () => {}) {
    this.#input = input;
    this.#taken = taken;
    this.#changed = changed;
    const root = input.closest('.chips');
    this.#list = root.querySelector('.chip-list');
    root.addEventListener('click', (event) => event.target === root && input.focus());
    input.addEventListener('keydown', (event) => this.#key(event));
    input.addEventListener('input', (event) => {
      // A chosen suggestion is a whole name.
      if (/[,;]/.test(input.value) || event.inputType === 'insertReplacementText') this.#take();
    });
  }

  /** The names so far, including what is still in the field. */
  get names() {
    this.#read();
    return [...this.#names];
  }

  get hasNames() {
    return this.#names.length > 0;
  }

  add(name) {
    this.#input.value = this.#input.value ? `${this.#input.value},${name}` : name;
    this.#take();
  }

  /** The names of which it is unknown whether a call reaches them. */
  get unsure() {
    return this.#names.filter((name) => !this.#known.has(name));
  }

  /** Records which of `names` a call reaches, and marks the others, which may be wrong. */
  judge(names, isReached) {
    for (const name of names) {
      (isReached(name) ? this.#known : this.#doubtful).add(name);
      (isReached(name) ? this.#doubtful : this.#known).delete(name);
    }
    this.#render();
  }

  isDoubtful(name) {
    return this.#doubtful.has(name);
  }

  clear() {
    this.#names = [];
    this.#doubtful.clear();
    this.#known.clear();
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
    const fresh = this.#read();
    if (fresh.length > 0) this.#taken(fresh);
  }

  /** Turns typed text into chips; returns the new ones. */
  #read() {
    const typed = this.#input.value.split(/[,;]/).map((name) => name.trim()).filter(Boolean);
    this.#input.value = '';
    const fresh = [...new Set(typed)].filter((name) => !this.#names.includes(name));
    if (fresh.length > 0) {
      this.#names.push(...fresh);
      this.#render();
    }
    return fresh;
  }

  #render() {
    this.#list.replaceChildren(
      ...this.#names.map((name) => {
        const remove = element('button', { type: 'button', ariaLabel: t('people.remove', { name: labelFor(name) }) }, icon('close'));
        remove.addEventListener('click', () => {
          this.#names = this.#names.filter((other) => other !== name);
          this.#render();
          this.focus();
        });
        const chip = element('li', { className: 'chip' }, element('span', { textContent: labelFor(name) }), remove);
        chip.dataset.doubtful = this.#doubtful.has(name);
        return chip;
      }),
    );
    this.#changed();
  }
}

/** Says in `problem` which of `names`, just typed, cannot be reached: a typing error is found before the call. `reachable` asks the server. */
export async function checkNames(field, names, problem, { isDemo, reachable }) {
  const ids = new Map(names.map((name) => [name, userIDOf(name, isDemo)]));
  const asked = [...ids.values()].filter(Boolean);
  const found = asked.length > 0 ? await reachable(asked).catch(() => undefined) : new Set();
  if (!found) return; // the server could not be asked; the call will show it
  const isReached = (name) => found.has(ids.get(name));
  const missing = names.filter((name) => !isReached(name));
  field.judge(names, isReached);
  if (missing.length === 0) return setText(problem, '');
  setText(problem, t('people.unknown', { names: listAlternatives(missing.map((name) => t('quoted', { name }))) }));
}

/** Whether a call with the names in `field` rings anybody: those that are not known to exist are checked once more. If none exists, `problem` says so. */
export async function canRing(field, problem, options) {
  const { unsure } = field;
  if (unsure.length > 0) await checkNames(field, unsure, problem, options);
  return field.names.some((name) => !field.isDoubtful(name));
}

/** The user ids that a field names; undefined if something is wrong with them, which `problem` then says. */
export function chosenIDs(field, problem, { isDemo, own }) {
  const typed = field.names;
  const ids = typed.map((name) => userIDOf(name, isDemo));
  const wrong = typed.find((_, index) => !ids[index]);
  if (wrong) setText(problem, t('people.invalid', { name: wrong }));
  else if (ids.length === 0) setText(problem, t('people.none'));
  else if (ids.includes(own)) setText(problem, t('people.yourself'));
  else {
    setText(problem, '');
    typed.forEach((name, index) => suggestName(ids[index], name));
    return ids;
  }
  field.focus();
  return undefined;
}
