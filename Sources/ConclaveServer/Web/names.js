// What to call whom, as far as this page has heard.

import { nameOf } from './dom.js';

const names = new Map();

export const nameFor = (user) => names.get(user) || user;

/** A name that the server tells; it goes before one that was typed. */
export function learnNames(members) {
  for (const member of members) if (member.name) names.set(member.user, nameOf(member));
}

/** A name that was typed for `user`, until the server tells another. */
export function suggestName(user, name) {
  if (!names.has(user)) names.set(user, name);
}
