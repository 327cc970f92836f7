// The names of people, as far as this page knows them. They come from the server: if one could mislead, the user id is shown beside it.

import { isGuest } from '../conclave/guests.js';
import { nameOf } from './dom.js';
import { isDoubtful, skeletonOf } from './looks.js';
import { t } from './texts.js';

const KNOWN = 1_000; // people from earlier calls
const VALID = /^[A-Za-z0-9._~@+-]{1,128}$/;

const names = new Map(); // as last reported by the server
let known = new Map(); // as people remember them: the server does not change these
let byLook; // the look of a name -> the users with such a name; computed on demand, after names have changed
const looks = new Map(); // a name -> {skeleton, isDoubtful}
const LOOKS_KEPT = 10_000;
let own;
/** @type {(names: [string, string][]) => void} */
let keep = () => {};

/** `user` is signed in; `saved` are the names of the people in earlier calls, as passed to `save`. */
export function beginNames(user, saved, save) {
  own = user;
  known = new Map(Array.isArray(saved) ? saved : []);
  byLook = undefined;
  keep = save;
}

/** The name by which `user` is remembered. An id that was remembered for lack of a name does not count. */
const rememberedName = (user) => (known.get(user) === user ? undefined : known.get(user));

const plainName = (user) => rememberedName(user) ?? (names.get(user) || user);

/** The name that the server gives a known person now, if it differs from the remembered one: the person decides. */
export function newNameOf(user) {
  const [before, now] = [rememberedName(user), names.get(user)];
  return user !== own && before !== undefined && now && now !== before ? now : undefined;
}

/** The person accepts the new name of `user`, as it was shown. */
export function acceptName(user, name) {
  if (newNameOf(user) !== name) return;
  known.set(user, name);
  byLook = undefined;
  keep([...known]);
}

/** A guest's name was chosen by the guest and not checked by anybody: it is always marked. */
export const nameFor = (user) => (isGuest(user) ? t('guest.name', { name: plainName(user) }) : plainName(user));

/** A name reported by the server. It takes precedence over a typed one, but not over a remembered one. */
export function learnNames(members) {
  for (const member of members) if (member.name) setName(member.user, nameOf(member));
}

/** A name typed for `user`, until the server reports another. */
export function suggestName(user, name) {
  if (!names.has(user) && !rememberedName(user)) setName(user, name);
}

function setName(user, name) {
  if (names.get(user) === name) return;
  names.set(user, name);
  byLook = undefined;
}

/** The look of a name, computed once. */
function looksOf(name) {
  let found = looks.get(name);
  if (!found) {
    if (looks.size >= LOOKS_KEPT) looks.clear();
    found = { skeleton: skeletonOf(name), isDoubtful: isDoubtful(name) };
    looks.set(name, found);
  }
  return found;
}

/** Somebody else, known from now or before, who has the name of `user`. */
export function namesakeOf(user) {
  byLook ??= usersByLook();
  return byLook.get(looksOf(plainName(user)).skeleton)?.find((other) => other !== user);
}

function usersByLook() {
  const users = new Map();
  for (const user of new Set([...known.keys(), ...names.keys()])) {
    const look = looksOf(plainName(user)).skeleton;
    if (users.has(look)) users.get(look).push(user);
    else users.set(look, [user]);
  }
  return users;
}

/** Whether nobody here has been in a call with `user` before. */
export const isFirstContact = (user) => user !== own && !known.has(user);

/**
 * The name of `user`, with the id at the first contact and if the name may mislead: somebody else's looks like it, it may be made to deceive, or the server
 * reports another now.
 */
export function labelFor(user) {
  const name = nameFor(user);
  if (user === own || name === user) return name;
  // A guest's id is made for one call and is meaningless.
  const saysTheSame = isGuest(user) || looksOf(name).skeleton === looksOf(user).skeleton;
  const mayMislead = known.get(user) === user || namesakeOf(user) || newNameOf(user) || (looksOf(plainName(user)).isDoubtful && !isGuest(user));
  return mayMislead || (isFirstContact(user) && !saysTheSame) ? `${name} (${user})` : name;
}

/** The ids of people from earlier calls and of this visit, latest first. */
export function knownPeople(most) {
  const all = new Set([...known.keys(), ...names.keys()]);
  all.delete(own);
  return [...all].filter((user) => !isGuest(user)).reverse().slice(0, most);
}

/** The call with `users` is over: they are known by these names from now on. */
export function rememberNames(users) {
  for (const user of users) {
    if (user === own || isGuest(user)) continue;
    const name = plainName(user);
    known.delete(user);
    known.set(user, name);
  }
  known = new Map([...known].slice(-KNOWN));
  byLook = undefined;
  keep([...known]);
}

/** The user id for a typed name: unchanged if ids are known, made from the name in demo mode. */
export function userIDOf(name, isDemo) {
  const typed = name.trim();
  if (!isDemo) return VALID.test(typed) ? typed : '';
  const plain = typed.normalize('NFKD').replace(/\p{M}/gu, '').toLowerCase();
  const id = plain.replace(/[^a-z0-9._~@+-]+/g, '-').replace(/^-+|-+$/g, '').slice(0, 128);
  if (id || !typed) return id;
  // A name in another script: its characters' numbers, so that everybody who types it means the same person.
  return `u${[...typed].map((character) => character.codePointAt(0).toString(36)).join('-')}`.slice(0, 128);
}
