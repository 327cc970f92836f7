// Whether somebody can be reached: in words, and as a dot on the avatar.

import { avatar, element } from './dom.js';
import { nameFor } from './names.js';
import { hasText, t } from './texts.js';

/** A person's presence, in words; undefined for a state that this page does not know. */
export const wordsForPresence = (state) => (hasText(`presence.${state}`) ? t(`presence.${state}`) : undefined);

/** The avatar of a single person has a dot that shows the presence. */
export function avatarOf(others, who, presence) {
  const user = others[0]?.user;
  const made = user ? avatar(nameFor(user), user) : avatar(who);
  const state = others.length === 1 ? presence.of(user) : undefined;
  const words = wordsForPresence(state);
  if (!words) return made;
  const dot = element('span', { className: 'presence', title: words });
  dot.dataset.state = state;
  return element('div', { className: 'with-presence' }, made, dot, element('span', { className: 'visually-hidden', textContent: words }));
}
