// Small pieces of page: elements, icons, avatars, names.

export const SVG = 'http://www.w3.org/2000/svg';

/** @type {(id: string) => any} Elements of the page's own markup, each of a different type. */
export const byID = (id) => document.getElementById(id);

/**
 * An element with properties, attributes (by `attributes`) and children.
 * @param {string} name
 * @param {{ attributes?: Record<string, string>, [property: string]: any }} options
 * @param {...any} children
 * @returns {any}
 */
export function element(name, { attributes = {}, ...properties } = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children.filter((child) => child !== undefined && child !== ''));
  return made;
}

export function icon(name) {
  const svg = document.createElementNS(SVG, 'svg');
  svg.setAttribute('aria-hidden', 'true');
  const use = document.createElementNS(SVG, 'use');
  use.setAttribute('href', `#icon-${name}`);
  svg.append(use);
  return svg;
}

export function setIcon(button, name) {
  const use = button.querySelector('use');
  if (use.getAttribute('href') !== `#icon-${name}`) use.setAttribute('href', `#icon-${name}`);
}

/** Sets text only if it differs, so that screen readers do not announce it twice. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** `user` chooses the colour: it stays when the name changes, and two people of one name differ. */
export function setInitials(avatar, name, user = name) {
  const words = name.trim().split(/[\s._-]+/u).filter(Boolean);
  const letters = [words[0], words.length > 1 ? words.at(-1) : undefined].map((word) => [...(word ?? '')][0] ?? '');
  setText(avatar, letters.join('').toUpperCase());
  const hue = [...user].reduce((sum, character) => (sum * 31 + character.codePointAt(0)) % 360, 7);
  avatar.style.setProperty('--hue', hue);
}

export function avatar(name, user = name) {
  const made = element('div', { className: 'avatar', ariaHidden: 'true' });
  setInitials(made, name, user);
  return made;
}

/** Another person's text on one line, without the characters that change the direction of text: it must not rewrite the sentence that contains it. */
export const plainLine = (text) => text.replace(/[\p{Cc}\u2028\u2029]+/gu, ' ').replace(/[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, '').trim();

export const nameOf = (member) => (typeof member?.name === 'string' && plainLine(member.name)) || member?.user || '';

/** The dialog in front: the page behind it can be neither seen well nor pressed. */
export const openDialog = () => [...document.querySelectorAll('dialog[open]')].at(-1);

export const REST_MS = 2_000;

/** `button` is disabled for 2 s: a press meant for the previous content must not apply to the current one. */
export function rest(button) {
  button.disabled = true;
  clearTimeout(resting.get(button));
  resting.set(button, setTimeout(() => (button.disabled = false), REST_MS));
}
const resting = new WeakMap();

/** A handler that runs once at a time, with its button disabled meanwhile. */
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
