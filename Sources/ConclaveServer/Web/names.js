// What to call whom, as far as this page has heard.

const names = new Map();

export const nameFor = (user) => names.get(user) || user;

/** A name that the server tells; it goes before one that was typed. */
export function learnNames(members) {
  for (const { user, name } of members) if (name) names.set(user, name);
}

/** A name that was typed for `user`, until the server tells another. */
export function suggestName(user, name) {
  if (!names.has(user)) names.set(user, name);
}
