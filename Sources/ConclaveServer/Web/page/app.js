// The page: signing in, and which view is shown. All that it knows of Conclave is `../conclave/index.js`.

import { hideCall, showCall, useSpeaker } from './call-view.js';
import { Conclave, isSupported } from '../conclave/index.js';
import { beginDevices } from './devices-view.js';
import { busy, byID, setText } from './dom.js';
import { Lobby } from './lobby.js';
import { beginNames, labelFor, learnNames, nameFor } from './names.js';
import { notice, placeNotices, warnOfKey, wordsForEnd, wordsForError } from './notices.js';
import { userIDOf } from './people.js';
import * as session from './session.js';
import { beginSetup, openSetup } from './setup-dialog.js';
import { beginShortcuts } from './shortcuts.js';

const views = ['welcome', 'lobby', 'call', 'elsewhere'];
let conclave;
let lobby;
let isDemo = false;
let signIn;
let signedInAs;
let isLeaving = false;

// Views

function show(view) {
  for (const name of views) byID(name).hidden = name !== view;
  document.body.classList.toggle('in-call', view === 'call');
  byID('account').hidden = view === 'welcome' || view === 'elsewhere';
  placeNotices();
  setTitle();
  byID(`${view}-title`).focus({ preventScroll: true });
}

function setTitle() {
  const ring = lobby?.rings.current;
  if (ring) document.title = `${labelFor(ring.from)} is calling · Conclave`;
  else document.title = conclave?.call ? `${byID('call-title').textContent} · Conclave` : 'Conclave';
}

// Signing in

async function begin() {
  if (!isSupported()) {
    const words = window.isSecureContext
      ? 'This browser cannot encrypt calls. A current Chrome, Edge, Firefox or Safari can.'
      : 'The browser allows calls only over HTTPS, or at localhost.';
    byID('sign-in-button').disabled = true;
    setText(byID('sign-in-error'), words);
    show('welcome');
    return;
  }
  isDemo = await session.isDemo();
  byID('name-field').hidden = !isDemo;
  byID('token-field').hidden = isDemo;
  byID('name').value = session.savedName();
  const saved = session.savedSignIn();
  if (session.takeRemoval()) {
    refuseSignIn('Another device of yours has removed this one. Sign in to use it again, as a new device.');
  } else if (saved && Boolean(saved.token) !== isDemo) await connect(saved);
  else {
    show('welcome');
    byID(isDemo ? 'name' : 'token').focus();
  }
}

byID('sign-in').addEventListener('submit', (event) => {
  event.preventDefault();
  setText(byID('sign-in-error'), '');
  const name = byID('name').value.trim();
  const token = byID('token').value.trim();
  const user = userIDOf(name, true);
  if (isDemo && !user) return refuseSignIn('Please type your name.');
  if (!isDemo && !token) return refuseSignIn('Please paste your token.');
  connect(isDemo ? { user, name } : { token });
  return undefined;
});

function refuseSignIn(words) {
  show('welcome');
  setText(byID('sign-in-error'), words);
  byID(isDemo ? 'name' : 'token').focus();
}

async function connect(entered) {
  signIn = entered;
  byID('sign-in-button').disabled = true;
  const device = session.deviceOf(signIn) ?? (await session.claimDevice(session.userOf(signIn)));
  if (conclave) return conclave.connect(); // a token that was not accepted, and now another
  const credentials = async (wasRefused) => {
    const user = session.userOf(signIn);
    if (!signIn.token) return { ...(await session.demoToken(signIn, device)), user };
    if (wasRefused) throw new session.SignInError('The token was not accepted, or has expired.');
    return { token: signIn.token, user };
  };
  const scheme = location.protocol === 'https:' ? 'wss' : 'ws';
  conclave = new Conclave({ url: `${scheme}://${location.host}/stomp`, device, name: browserName(), credentials });
  conclave.addEventListener('connection', () => showConnection(conclave.status));
  conclave.addEventListener('ready', () => signedIn());
  conclave.addEventListener('warning', ({ detail }) => {
    const { user, device } = detail;
    warnOfKey(detail, { label: labelFor(user), isOwn: user === conclave.user, trust: (fingerprint) => conclave.trust(user, device, fingerprint) });
  });
  conclave.addEventListener('presence', showAvailability);
  conclave.addEventListener('calls', () => conclave.call && conclave.call.participant && showCurrent());
  lobby = new Lobby({ conclave, isDemo, entered: () => showCurrent(), ringsChanged: setTitle });
  beginDevices(conclave);
  const { capture } = conclave;
  capture.addEventListener('change', ({ detail: { source } }) => source === 'speaker' && useSpeaker(capture.choice.speaker));
  beginSetup(conclave);
  return conclave.connect();
}

function browserName() {
  const brand = navigator.userAgentData?.brands?.at(-1)?.brand ?? 'Browser';
  const system = navigator.userAgentData?.platform;
  return system ? `${brand} on ${system}` : brand;
}

function showConnection(status) {
  const words = { connecting: 'Connecting…', reconnecting: 'Reconnecting…', ready: 'Connected' };
  const pill = byID('connection');
  pill.hidden = !words[status];
  pill.dataset.state = status;
  setText(pill, words[status] ?? '');
  byID('sign-in-button').disabled = status === 'connecting';
  if (isLeaving) return;
  if (status === 'refused') signedOut();
  else if (status === 'replaced') {
    endAll();
    show('elsewhere');
  } else if (status === 'removed') removed();
}

/** The keys of this device are revoked for good: it begins anew, as another one. */
async function removed() {
  session.forgetSignIn();
  endAll();
  signedInAs = undefined;
  session.forgetDevice(conclave.user);
  await conclave.forget();
  session.saveRemoval();
  location.reload();
}

function endAll() {
  for (const call of [conclave.call, ...conclave.held]) call?.giveUp();
}

/** The server does not need the token for a call that runs: it goes on while a fresh one is asked for. */
function signedOut() {
  const words = conclave.reason || 'Signing in did not work.';
  if (conclave.call && signIn.token) {
    setText(byID('fresh-token-error'), words);
    byID('fresh-token').value = '';
    if (!byID('fresh-token-dialog').open) byID('fresh-token-dialog').showModal();
    return;
  }
  endAll();
  signedInAs = undefined;
  session.forgetSignIn();
  byID('token').value = '';
  refuseSignIn(words);
}

byID('fresh-token-form').addEventListener('submit', (event) => {
  event.preventDefault();
  const token = byID('fresh-token').value.trim();
  if (!token) return;
  signIn.token = token;
  byID('fresh-token-dialog').close();
  conclave.connect();
});
byID('fresh-token-leave').addEventListener('click', () => {
  byID('fresh-token-dialog').close();
  conclave.call?.leave();
});
byID('fresh-token-dialog').addEventListener('close', () => {
  if (conclave.status === 'refused' && conclave.call) byID('fresh-token-dialog').showModal(); // Escape is no answer
});

async function signedIn() {
  session.saveSignIn(signIn);
  beginNames(conclave.user, session.savedNames(conclave.user), (names) => session.saveNames(conclave.user, names));
  if (signIn.name) learnNames([{ user: conclave.user, name: signIn.name }]);
  setText(byID('account-name'), nameFor(conclave.user));
  const isNew = signedInAs !== conclave.user;
  if (isNew) {
    endAll(); // a fresh token that is somebody else's
    signedInAs = conclave.user;
    show('lobby');
    lobby.focus();
  }
  await lobby.refresh();
  if (isNew) await lobby.comeBack();
}

byID('sign-out').addEventListener('click', () => byID('sign-out-dialog').showModal());
byID('sign-out-keep').addEventListener('click', () => {
  session.forgetSignIn();
  if (conclave.identity) session.forgetCall(conclave.identity.device);
  conclave.close();
  location.reload();
});
byID('sign-out-forget').addEventListener('click', busy(byID('sign-out-forget'), async () => {
  const { user } = conclave;
  isLeaving = true;
  // Without their keys the devices can do nothing any more; that the server is away must not keep them here.
  await removeDevices(session.devicesOf(user)).catch(() => {});
  conclave.close();
  await conclave.forget({ all: true });
  session.forgetAll(user);
  location.reload();
}));

/** Removes this device, and the others that this browser has for the user. */
async function removeDevices(here) {
  const own = await conclave.ownDevices.list();
  // This one last: its signature counts no more once it is removed.
  for (const each of own.filter(({ device, isThis }) => !isThis && here.includes(device))) await conclave.ownDevices.remove(each);
  await conclave.ownDevices.remove(conclave.ownDevices.self);
}

byID('use-here').addEventListener('click', () => location.reload());
window.addEventListener('online', () => conclave?.hurry());
document.addEventListener('visibilitychange', () => document.hidden || conclave?.hurry());

for (const id of ['show-setup', 'more-setup']) {
  byID(id).addEventListener('click', () => {
    byID('more-dialog').close();
    openSetup();
  });
}

// Availability

function showAvailability() {
  const isAway = conclave.presence.own === 'unavailable';
  byID('availability').ariaPressed = isAway;
  byID('availability').classList.toggle('pressed', isAway);
}

byID('availability').addEventListener('click', busy(byID('availability'), async () => {
  const isAway = conclave.presence.own === 'unavailable';
  await conclave.presence.set(isAway ? 'available' : 'unavailable').catch((error) => notice(wordsForError(error)));
}));

// The call

const shown = new WeakSet();

/** Shows the call that is talked in. */
function showCurrent() {
  const { call } = conclave;
  if (!call || call.hasEnded) return;
  if (!shown.has(call)) {
    shown.add(call);
    call.addEventListener('ended', ({ detail }) => left(call, detail));
    call.addEventListener('change', setTitle);
  }
  showCall(call, { connection: conclave, options: lobby.fieldOptions });
  if (byID('call').hidden) show('call');
}

function left(call, detail) {
  const words = wordsForEnd(detail, labelFor, conclave.user, call.facts.others);
  const isOther = conclave.call && conclave.call !== call; // one on hold ended
  if (!isOther) {
    session.forgetCall(conclave.identity.device);
    hideCall();
    show('lobby');
  }
  if (words) notice(words);
  if (isOther) return;
  if (conclave.status === 'ready') lobby.refresh();
  if (conclave.status === 'refused') signedOut();
}

beginShortcuts();
begin();
