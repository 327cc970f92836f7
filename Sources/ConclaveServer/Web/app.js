// The page: signing in, whom to call, and the call. All that it knows of Conclave is `conclave.js`.

import { showCall } from './call-view.js';
import { Conclave, isSupported } from './conclave.js';
import { avatar, busy, byID, element, joinNames, nameOf, setText } from './dom.js';
import { learnNames, nameFor } from './names.js';
import { notice, tellResults, wordsForEnd, wordsForError } from './notices.js';
import { PeopleField, chosenIDs, userIDOf } from './people.js';
import { RingDialog } from './ringing.js';
import * as session from './session.js';

const views = ['welcome', 'lobby', 'call', 'elsewhere'];
const callees = new PeopleField(byID('people'));
const rings = new RingDialog({ accept, decline, isInCall: () => Boolean(call) });
let conclave;
let call;
let isDemo = false;
let signIn;
let signedInAs;

// Views

function show(view) {
  for (const name of views) byID(name).hidden = name !== view;
  document.body.classList.toggle('in-call', view === 'call');
  byID('account').hidden = view === 'welcome';
  setTitle();
  byID(`${view}-title`).focus({ preventScroll: true });
}

function setTitle() {
  const ring = rings.current;
  if (ring) document.title = `${nameFor(ring.from)} is calling · Conclave`;
  else document.title = call ? `${byID('call-title').textContent} · Conclave` : 'Conclave';
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
  const saved = session.savedSignIn();
  if (saved && Boolean(saved.token) !== isDemo) connect(saved);
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

function connect(entered) {
  signIn = entered;
  const device = session.tabDevice();
  const credentials = async (wasRefused) => {
    if (!signIn.token) return session.demoToken(signIn, device);
    if (wasRefused) throw new session.SignInError('The token was not accepted, or has expired.');
    return { token: signIn.token };
  };
  const scheme = location.protocol === 'https:' ? 'wss' : 'ws';
  conclave = new Conclave({ url: `${scheme}://${location.host}/stomp`, device, name: browserName(), credentials });
  conclave.addEventListener('connection', () => showConnection(conclave.status));
  conclave.addEventListener('ready', () => signedIn());
  conclave.addEventListener('ring', ({ detail }) => {
    learnNames(detail.members);
    rings.add(detail);
    setTitle();
  });
  conclave.addEventListener('ring-over', ({ detail }) => ringOver(detail));
  conclave.connect();
}

const browserName = () => navigator.userAgentData?.brands?.at(-1)?.brand ?? 'Browser';

function showConnection(status) {
  const words = { connecting: 'Connecting…', reconnecting: 'Reconnecting…', ready: 'Connected' };
  const pill = byID('connection');
  pill.hidden = !words[status];
  pill.dataset.state = status;
  setText(pill, words[status] ?? '');
  byID('sign-in-button').disabled = status === 'connecting';
  if (status === 'refused') signedOut();
  else if (status === 'replaced') {
    call?.giveUp();
    show('elsewhere');
  }
}

/** The server does not need the token for a call that runs: it goes on while a fresh one is asked for. */
function signedOut() {
  const words = conclave.reason || 'Signing in did not work.';
  if (call && signIn.token) {
    setText(byID('fresh-token-error'), words);
    byID('fresh-token').value = '';
    if (!byID('fresh-token-dialog').open) byID('fresh-token-dialog').showModal();
    return;
  }
  call?.giveUp();
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
byID('fresh-token-leave').addEventListener('click', () => byID('fresh-token-dialog').close());
byID('fresh-token-dialog').addEventListener('cancel', (event) => event.preventDefault());
byID('fresh-token-dialog').addEventListener('close', () => conclave.status === 'refused' && call?.leave());

async function signedIn() {
  session.saveSignIn(signIn);
  if (signIn.name) learnNames([{ user: conclave.user, name: signIn.name }]);
  setText(byID('account-name'), nameFor(conclave.user));
  if (signedInAs === conclave.user) {
    if (!call) showRunning();
    return;
  }
  call?.giveUp(); // the fresh token is somebody else's
  signedInAs = conclave.user;
  show('lobby');
  callees.focus();
  await showRunning();
  await comeBack();
}

byID('sign-out').addEventListener('click', () => {
  session.forgetSignIn();
  conclave.close();
  location.reload();
});
byID('use-here').addEventListener('click', () => location.reload());
window.addEventListener('online', () => conclave?.hurry());
document.addEventListener('visibilitychange', () => document.hidden || conclave?.hurry());

// Whom to call

const fieldOptions = () => ({ isDemo, own: conclave.user });

async function start(camera) {
  const ids = chosenIDs(callees, byID('call-error'), fieldOptions());
  if (!ids) return;
  try {
    enter(await conclave.start(ids, { camera }), camera);
    tellResults(call?.results, nameFor);
    callees.clear();
  } catch (error) {
    setText(byID('call-error'), wordsForError(error));
  }
}

const startVideo = busy(byID('call-video'), () => start(true));
byID('call-form').addEventListener('submit', (event) => {
  event.preventDefault();
  startVideo();
});
byID('call-audio').addEventListener('click', busy(byID('call-audio'), () => start(false)));

async function showRunning() {
  const list = byID('running-list');
  const calls = await conclave.joinable().catch(() => []);
  const mine = (state) => state.members.find(({ user }) => user === conclave.user);
  const open = calls.filter((state) => mine(state)?.state !== 'ringing');
  byID('running').hidden = open.length === 0;
  list.replaceChildren(
    ...open.map((state) => {
      learnNames(state.members);
      const others = state.members.filter(({ user, state: phase }) => user !== conclave.user && phase === 'joined');
      const who = others.length > 0 ? `Call with ${joinNames(others.map(nameOf))}` : 'Your call';
      const button = element('button', { type: 'button', className: 'secondary', textContent: 'Join' });
      button.setAttribute('aria-label', `Join: ${who}`);
      button.addEventListener('click', busy(button, () => join(state, true)));
      const since = new Date(state.startedAt).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' });
      const text = element('div', { className: 'row-text' });
      text.append(element('span', { textContent: who }), element('span', { className: 'row-sub', textContent: `since ${since}` }));
      return element('li', {}, avatar(nameOf(others[0] ?? mine(state))), text, button);
    }),
  );
  return calls;
}

async function join(state, camera) {
  try {
    learnNames(state.members);
    enter(await conclave.enter(state, { camera }), camera);
  } catch (error) {
    notice(wordsForError(error));
    showRunning();
  }
}

/** After a reload: back into the call that this tab was in. */
async function comeBack() {
  const saved = session.savedCall();
  if (!saved || call) return;
  const calls = await conclave.joinable().catch(() => []);
  const state = calls.find(({ id }) => id === saved.id);
  if (state) await join(state, saved.camera);
  else session.forgetCall();
}

async function accept(ring, camera) {
  try {
    enter(await conclave.accept(ring, { camera }), camera);
  } catch (error) {
    notice(wordsForError(error));
  }
}

async function decline(ring) {
  setTitle();
  await conclave.decline(ring).catch((error) => notice(wordsForError(error)));
}

function ringOver({ ring, reason, by }) {
  rings.remove(ring);
  setTitle();
  const from = nameFor(ring.from);
  const words = {
    'answered-elsewhere': 'Answered on another device',
    'declined-elsewhere': 'Declined on another device',
    cancelled: `${by ? nameFor(by) : from} stopped ringing`,
    missed: `Missed call from ${from}`,
    ended: `${from}’s call is over`,
  };
  if (words[reason]) notice(words[reason]);
}

function enter(entered, camera) {
  if (entered.hasEnded) return;
  call = entered;
  const whenLeft = (detail) => {
    call = undefined;
    show('lobby');
    const words = wordsForEnd(detail, nameFor, conclave.user);
    if (words) notice(words);
    if (conclave.status === 'ready') showRunning();
    if (conclave.status === 'refused') signedOut();
  };
  showCall(entered, { connection: conclave, camera, options: fieldOptions(), whenLeft });
  show('call');
  call.addEventListener('change', setTitle);
}

begin();
