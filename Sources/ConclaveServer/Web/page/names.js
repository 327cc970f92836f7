// The names of people, as far as this page has heard. They are the server's words: where one could mislead, the user id stands beside it.

import { nameOf } from './dom.js';

const KNOWN = 1_000; // people from calls before this one

const names = new Map();
let known = new Map();
let byLook; // what a name looks like -> the users with such a name; made when it is needed, after names have changed
let own;
/** @type {(names: [string, string][]) => void} */
let keep = () => {};

/** `user` is signed in; `saved` are the names of the people in earlier calls, as `save` was given them. */
export function beginNames(user, saved, save) {
  own = user;
  known = new Map(Array.isArray(saved) ? saved : []);
  byLook = undefined;
  keep = save;
}

export const nameFor = (user) => names.get(user) || known.get(user) || user;

/** A name that the server tells; it goes before one that was typed. */
export function learnNames(members) {
  for (const member of members) if (member.name) setName(member.user, nameOf(member));
}

/** A name that was typed for `user`, until the server tells another. */
export function suggestName(user, name) {
  if (!names.has(user)) setName(user, name);
}

function setName(user, name) {
  if (names.get(user) === name) return;
  names.set(user, name);
  byLook = undefined;
}

/** What two names have in common that a person would take for the same one. */
const looks = (name) => name.normalize('NFKC').toLowerCase().replace(/[\s\p{P}\p{Cf}]/gu, '');

/** Somebody else, known from now or before, who has the name of `user`. */
export function namesakeOf(user) {
  byLook ??= usersByLook();
  return byLook.get(looks(nameFor(user)))?.find((other) => other !== user);
}

function usersByLook() {
  const users = new Map();
  for (const [user, name] of [...known, ...names]) {
    const look = looks(name);
    if (users.has(look)) users.get(look).push(user);
    else users.set(look, [user]);
  }
  return users;
}

/** Whether nobody here has been in a call with `user` before. */
export const isFirstContact = (user) => user !== own && !known.has(user);

/** The name of `user`, with the id at the first contact and where somebody else has the same name. */
export function labelFor(user) {
  const name = nameFor(user);
  if (user === own || name === user) return name;
  const saysTheSame = looks(name) === looks(user);
  return namesakeOf(user) || (isFirstContact(user) && !saysTheSame) ? `${name} (${user})` : name;
}

/** The ids of people from earlier calls and of this visit, the latest first. */
export function knownPeople(most) {
  const all = new Set([...known.keys(), ...names.keys()]);
  all.delete(own);
  return [...all].reverse().slice(0, most);
}

/** The call with `users` is over: by these names they are known from now on. */
export function rememberNames(users) {
  for (const user of users) {
    if (user === own) continue;
    known.delete(user);
    known.set(user, nameFor(user));
  }
  known = new Map([...known].slice(-KNOWN));
  byLook = undefined;
  keep([...known]);
}
