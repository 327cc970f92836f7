// Single keys for a call's buttons. They can be switched off, and do nothing where text is typed (WCAG 2.2, 2.1.4).

import { byID, element } from './dom.js';
import { saveSetting, savedSetting } from './session.js';
import { t } from './texts.js';

const SHORTCUTS = [
  { key: 'm', button: 'toggle-microphone', words: 'shortcuts.microphone' },
  { key: 'v', button: 'toggle-camera', words: 'shortcuts.camera' },
  { key: 's', button: 'toggle-screen', words: 'shortcuts.screen' },
  { key: 'h', button: 'toggle-hand', words: 'shortcuts.hand' },
  { key: 'c', button: 'toggle-chat', words: 'shortcuts.chat' },
  { key: 'p', button: 'add-people', words: 'shortcuts.people' },
  { key: '?', button: 'show-shortcuts', words: 'shortcuts.list' },
];

/** The id of the button for a key; undefined if there is none, or text is typed. */
export function buttonFor({ key, ctrlKey, metaKey, altKey, target }) {
  if (ctrlKey || metaKey || altKey || target?.closest?.('input, textarea, select, [contenteditable]')) return undefined;
  return SHORTCUTS.find((shortcut) => shortcut.key === key.toLowerCase())?.button;
}

export function beginShortcuts() {
  for (const { key, button, words } of SHORTCUTS) {
    const shown = key.toUpperCase();
    byID('shortcut-list').append(element('dt', {}, element('kbd', { textContent: shown })), element('dd', { textContent: t(words) }));
    byID(button).setAttribute('aria-keyshortcuts', shown);
  }
  byID('shortcuts-on').checked = savedSetting('shortcuts') ?? true;
  showOn();
  byID('shortcuts-on').addEventListener('change', () => {
    saveSetting('shortcuts', byID('shortcuts-on').checked);
    showOn();
  });
  byID('show-shortcuts').addEventListener('click', () => {
    byID('more-dialog').close();
    byID('shortcuts-dialog').showModal();
  });
  document.addEventListener('keydown', (event) => {
    if (!byID('shortcuts-on').checked || byID('call').hidden || document.querySelector('dialog[open]')) return;
    const id = buttonFor(event);
    if (!id || event.repeat) return;
    event.preventDefault();
    if (!byID(id).hidden) byID(id).click();
  });
}

/** A finger presses no keys: there the buttons name none. */
function showOn() {
  const isOn = byID('shortcuts-on').checked && !matchMedia('(pointer: coarse)').matches;
  for (const { key, button } of SHORTCUTS) byID(button).title = isOn ? key.toUpperCase() : '';
}
