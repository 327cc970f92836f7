// Small pieces of page: elements, icons, avatars, names.

export const byID = (id) => document.getElementById(id);

/** An element with properties, attributes (by `attributes`) and children. */
export function element(name, { attributes = {}, ...properties } = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children.filter((child) => child !== undefined && child !== ''));
  return made;
}

export function icon(name) {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  svg.setAttribute('aria-hidden', 'true');
  const use = document.createElementNS('http://www.w3.org/2000/svg', 'use');
  use.setAttribute('href', `#icon-${name}`);
  svg.append(use);
  return svg;
}

export function setIcon(button, name) {
  const use = button.querySelector('use');
  if (use.getAttribute('href') !== `#icon-${name}`) use.setAttribute('href', `#icon-${name}`);
}

/** Sets text only where it differs, so that screen readers are not told twice. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export function setInitials(avatar, name) {
  const words = name.trim().split(/[\s._-]+/u).filter(Boolean);
  const letters = [words[0], words.length > 1 ? words.at(-1) : undefined].map((word) => [...(word ?? '')][0] ?? '');
  setText(avatar, letters.join('').toUpperCase());
  const hue = [...name].reduce((sum, character) => (sum * 31 + character.codePointAt(0)) % 360, 7);
  avatar.style.setProperty('--hue', hue);
}

export function avatar(name, className = 'avatar') {
  const made = element('div', { className, ariaHidden: 'true' });
  setInitials(made, name);
  return made;
}

/** Without the characters that turn text around: a name must not rewrite the sentence that it stands in. */
const plain = (name) => name.replace(/[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, '');

export const nameOf = (member) => plain(member?.name ?? '') || member?.user || '';

/** "Bob", "Bob and Carol", "Bob, Carol and 2 more". */
export function joinNames(names) {
  if (names.length <= 2) return names.join(' and ');
  if (names.length === 3) return `${names[0]}, ${names[1]} and ${names[2]}`;
  return `${names[0]}, ${names[1]} and ${names.length - 2} more`;
}

/** A handler that runs once at a time, its button disabled meanwhile. */
export function busy(button, action) {
  return async (...parameters) => {
    if (button.disabled) return;
    button.disabled = true;
    try {
      await action(...parameters);
    } finally {
      button.disabled = false;
    }
  };
}
