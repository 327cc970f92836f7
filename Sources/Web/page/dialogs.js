// Shared by all dialogs: their close buttons, and rows of people or devices.

import { readable } from '../conclave/index.js';
import { avatar, busy, element } from './dom.js';
import { notice, wordsForError } from './notices.js';

for (const button of document.querySelectorAll('[data-close]')) {
  button.addEventListener('click', () => button.closest('dialog')?.close());
}

/** A row with the avatar of `name`, if given, in the colour of `user`, a line and one below it. */
export function row(name, line, below, user = name) {
  const text = element('div', { className: 'row-text' });
  text.append(element('span', { textContent: line }));
  if (below) text.append(element('span', { className: 'row-sub', textContent: below }));
  return element('li', {}, name ? avatar(name, user) : '', text);
}

/** A row for a device, with its key's fingerprint, base64, for people to compare. */
export function deviceRow(name, line, below, fingerprint) {
  const made = row(name, line, below);
  const digits = element('span', { className: 'row-sub fingerprint', textContent: readable(fingerprint), translate: false });
  made.querySelector('.row-text').append(digits);
  return made;
}

/** A button in a row; `about` tells a screen reader which row. Errors become notices. */
export function rowButton(label, about, action, className = 'secondary') {
  const button = element('button', { type: 'button', className, textContent: label, ariaLabel: `${label}: ${about}` });
  button.addEventListener('click', busy(button, () => action().catch((error) => notice(wordsForError(error)))));
  return button;
}

const shown = new WeakMap();

/**
 * Like `replaceChildren`, but only if something differs, because a button must not disappear while it is pressed. The keyboard focus keeps its place, or moves
 * to `fallback` if its row is gone.
 */
export function replaceRows(list, rows, fallback) {
  const look = rows.map(({ outerHTML }) => outerHTML).join('');
  if (shown.get(list) === look) return;
  shown.set(list, look);
  const { activeElement } = document;
  const focused = activeElement && list.contains(activeElement) ? activeElement.ariaLabel : undefined;
  list.replaceChildren(...rows);
  if (!focused) return;
  const again = [...list.querySelectorAll('button')].find(({ ariaLabel }) => ariaLabel === focused);
  (again ?? fallback).focus();
}
