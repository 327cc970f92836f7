// The start of the page: signing in. The rest, and all that it knows of Conclave (`../conclave/index.js`), is loaded when somebody begins to sign in.

import { isSupported } from '../conclave/support.js';
import { byID, element, nameOf, setText } from './dom.js';
import { linkIn } from './link.js';
import { userIDOf } from './names.js';
import { askTabs } from './other-tabs.js';
import { openedFor } from './push.js';
import * as session from './session.js';
import { LANGUAGES, language, t, translatePage } from './texts.js';
import { show } from './views.js';

let isDemo = false;

async function begin() {
  if (!isSupported()) {
    byID('sign-in-button').disabled = true;
    setText(byID('sign-in-error'), t(window.isSecureContext ? 'sign-in.unsupported' : 'sign-in.insecure'));
    show('welcome');
    return;
  }
  isDemo = await session.isDemo();
  byID('name-field').hidden = !isDemo;
  byID('token-field').hidden = isDemo;
  byID('name').value = session.savedName();
  const saved = session.savedSignIn() ?? (openedFor(location.hash) && session.keptSignIn());
  const link = linkIn(location.hash);
  const farewell = session.takeFarewell();
  if (farewell && !farewell.isError) return showFarewell(farewell);
  if (saved?.guest) {
    if (saved.guest.isLasting ? link?.isLasting : saved.guest.id === link?.id) return connect(saved);
    session.forgetSignIn();
    return begin();
  }
  if (link && !saved) {
    const [mayBeGuest, signedIn] = await Promise.all([session.allowsGuests(), askTabs()]);
    const known = signedIn ?? session.keptSignIn();
    if (mayBeGuest || known) return showGuest({ mayBeGuest, known, farewell });
  }
  if (session.takeRemoval()) {
    refuseSignIn(t('sign-in.removed'));
  } else if (saved && Boolean(saved.token) !== isDemo) await connect(saved);
  else {
    show('welcome');
    byID(isDemo ? 'name' : 'token').focus();
  }
  return undefined;
}

/** The server has listed all modules of the rest in the page, so that they are loaded in parallel: each imports others, in long chains. */
function loadRest() {
  document.head.append(byID('rest').content);
  return import('./account.js');
}

/** @param {any} signIn @param {{camera: boolean, microphone: boolean} | undefined} link */
async function connect(signIn, link = undefined) {
  byID('sign-in-button').disabled = true;
  isEntering = true;
  preview?.leave(byID('guest-preview'));
  try {
    const account = await loadRest();
    await account.connect(signIn, { isDemo, link, refuse: signIn.guest ? refuseGuest : refuseSignIn });
  } catch (error) {
    console.warn(error);
    byID('sign-in-button').disabled = false;
    (signIn.guest ? refuseGuest : refuseSignIn)(t('sign-in.failed'));
  }
}

byID('sign-in').addEventListener('input', () => loadRest().catch(() => {}), { once: true }); // signing in tries again
byID('sign-in').addEventListener('submit', (event) => {
  event.preventDefault();
  setText(byID('sign-in-error'), '');
  const name = byID('name').value.trim();
  const token = byID('token').value.trim();
  const user = userIDOf(name, true);
  if (isDemo && !user) return refuseSignIn(t('sign-in.no-name'));
  if (!isDemo && !token) return refuseSignIn(t('sign-in.no-token'));
  connect(isDemo ? { user, name } : { token });
  return undefined;
});

function refuseSignIn(words) {
  show('welcome');
  setText(byID('sign-in-error'), words);
  byID(isDemo ? 'name' : 'token').focus();
}

// A guest with a link

let knownElsewhere; // the sign-in of another tab

/**
 * `known` is the sign-in of another tab of this browser: its user does not need a guest's name.
 * @param {{ mayBeGuest?: boolean, known?: any, farewell?: any }} options
 */
function showGuest({ mayBeGuest = true, known = undefined, farewell = undefined } = {}) {
  knownElsewhere = known && Boolean(known.token) !== isDemo ? known : undefined;
  show('guest');
  const { name: callName } = linkIn(location.hash) ?? {};
  setText(byID('guest-title'), callName ? t('invited.named', { name: callName }) : t('invited.title'));
  byID('guest-known').hidden = !knownElsewhere;
  byID('guest-known').disabled = false;
  byID('guest-form').hidden = !mayBeGuest;
  byID('guest-lead').hidden = !mayBeGuest;
  if (knownElsewhere) {
    const name = nameOf({ name: session.nameIn(knownElsewhere) });
    setText(byID('guest-known'), t('guest.join-as', { name }));
  }
  byID('guest-name').value = farewell?.name || session.savedName();
  setText(byID('guest-error'), farewell?.words ?? '');
  byID(knownElsewhere ? 'guest-title' : 'guest-name').focus();
  showPreview();
}

function refuseGuest(words) {
  setText(byID('guest-error'), words);
  show('guest');
  byID('guest-name').focus();
  showPreview();
}

/** Loaded by `showPreview`. @type {any} */
let preview;
let isEntering = false; // the call opens the devices

/** A guest sees the own picture before joining. Where it does not load, one can join without. */
async function showPreview() {
  isEntering = false;
  preview ??= (await import('./preview.js').catch(() => undefined))?.preview;
  if (!byID('guest').hidden && !isEntering) preview?.show(byID('guest-preview'), { switches: ['microphone', 'camera'] });
}

/** The devices that the person has left switched on. */
const wanted = () => ({ camera: true, microphone: true, ...preview?.wants });

byID('guest-known').addEventListener('click', () => {
  byID('guest-known').disabled = true;
  connect(knownElsewhere, wanted());
});

// A guest whose visit is over

function showFarewell(farewell) {
  show('farewell');
  setText(byID('farewell-title'), farewell.words);
  byID('farewell-again').hidden = !farewell.mayReturn || !linkIn(location.hash);
  byID('farewell-again').addEventListener('click', () => showGuest({ farewell: { name: farewell.name } }), { once: true });
}

async function tokenFor({ id, link }, name) {
  return { ...(await session.guestToken({ call: id, link, name })), id, link };
}

/** As `tokenFor`, once a call of the lasting link runs; undefined when the guest has stopped waiting. */
async function waitForStart({ secret }, name) {
  const { guestWhenStarted, lastingLinkID, onStop } = await loadRest();
  const enough = new AbortController();
  const off = onStop(() => enough.abort());
  try {
    const granted = await guestWhenStarted(await lastingLinkID(secret), name, enough.signal);
    return granted && { token: granted.token, user: granted.user, id: granted.call, link: granted.link, isLasting: true };
  } finally {
    off();
  }
}

async function joinAsGuest() {
  const name = byID('guest-name').value.trim();
  if (!name) return refuseGuest(t('sign-in.no-name'));
  setText(byID('guest-error'), '');
  const invitation = linkIn(location.hash);
  if (!invitation) return begin();
  byID('guest-join').disabled = true;
  try {
    const granted = invitation.isLasting ? await waitForStart(invitation, name) : await tokenFor(invitation, name);
    if (!granted) return showGuest({ farewell: { name } });
    const { token, user, ...guest } = granted;
    await connect({ token, user, name, guest: { ...guest, ...wanted() } });
  } catch (error) {
    refuseGuest(t(error.message));
  } finally {
    byID('guest-join').disabled = false;
  }
  return undefined;
}

byID('guest-form').addEventListener('input', () => loadRest().catch(() => {}), { once: true });
byID('guest-form').addEventListener('submit', (event) => {
  event.preventDefault();
  joinAsGuest();
});
byID('guest-sign-in').addEventListener('click', () => {
  preview?.leave(byID('guest-preview'));
  show('welcome');
  byID(isDemo ? 'name' : 'token').focus();
});

// The language

byID('language').append(...Object.entries(LANGUAGES).map(([value, name]) => element('option', { value, textContent: name, lang: value })));
byID('language').value = language;
byID('language').addEventListener('change', () => {
  session.saveSetting('language', byID('language').value);
  location.reload();
});

translatePage();
begin();
