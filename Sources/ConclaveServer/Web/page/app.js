// The start of the page: signing in. The rest, and all that it knows of Conclave (`../conclave/index.js`), is loaded when somebody begins to sign in.

import { isSupported } from '../conclave/support.js';
import { byID, element, setText } from './dom.js';
import { linkIn } from './link.js';
import { userIDOf } from './names.js';
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
  if (saved?.guest) {
    if (saved.guest.id === link?.id) return connect(saved);
    session.forgetSignIn();
    return begin();
  }
  if (link && !saved && (await session.allowsGuests())) return showGuest();
  if (session.takeRemoval()) {
    refuseSignIn(t('sign-in.removed'));
  } else if (saved && Boolean(saved.token) !== isDemo) await connect(saved);
  else {
    show('welcome');
    byID(isDemo ? 'name' : 'token').focus();
  }
  return undefined;
}

/** The server has named all modules of the rest in the page, so that they come side by side: each imports others, in long chains. */
function loadRest() {
  document.head.append(byID('rest').content);
  return import('./account.js');
}

async function connect(signIn) {
  byID('sign-in-button').disabled = true;
  try {
    const account = await loadRest();
    await account.connect(signIn, { isDemo, refuse: signIn.guest ? refuseGuest : refuseSignIn });
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

function showGuest() {
  show('guest');
  byID('guest-name').value = session.savedName();
  setText(byID('guest-error'), session.takeFarewell());
  byID('guest-name').focus();
}

function refuseGuest(words) {
  session.saveFarewell(words);
  showGuest();
}

async function joinAsGuest(camera) {
  const name = byID('guest-name').value.trim();
  if (!name) return refuseGuest(t('sign-in.no-name'));
  setText(byID('guest-error'), '');
  const invitation = linkIn(location.hash);
  if (!invitation) return begin();
  const { id, link } = invitation;
  for (const button of ['guest-video', 'guest-audio']) byID(button).disabled = true;
  try {
    const granted = await session.guestToken({ call: id, link, name });
    await connect({ ...granted, name, guest: { id, link, camera } });
  } catch (error) {
    refuseGuest(t(error.message));
  } finally {
    for (const button of ['guest-video', 'guest-audio']) byID(button).disabled = false;
  }
  return undefined;
}

byID('guest-form').addEventListener('input', () => loadRest().catch(() => {}), { once: true });
byID('guest-form').addEventListener('submit', (event) => {
  event.preventDefault();
  joinAsGuest(true);
});
byID('guest-audio').addEventListener('click', () => joinAsGuest(false));
byID('guest-sign-in').addEventListener('click', () => {
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
