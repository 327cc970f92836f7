// The page of a signed-in user: the connection, the lobby and the call, and which of them is shown.

import { hideCall, showCall, useSpeaker } from './call-view.js';
import { Conclave } from '../conclave/index.js';
import { beginDevices } from './devices-view.js';
import { DoNotDisturb } from './do-not-disturb.js';
import { busy, byID, setText } from './dom.js';
import { GuestVisit } from './guest-visit.js';
import { beginIdle } from './idle.js';
import { Lobby } from './lobby.js';
import { beginNames, labelFor, learnNames, nameFor } from './names.js';
import { clearWarnings, notice, placeNotices, warn, warnOfKey, wordsForEnd } from './notices.js';
import { answerTabs } from './other-tabs.js';
import { explainAsking } from './permissions.js';
import * as session from './session.js';
import { beginSetup, openSetup } from './setup-dialog.js';
import { beginShortcuts } from './shortcuts.js';
import { hasText, t } from './texts.js';
import { beginToolbar } from './toolbar.js';
import { ringsNobody } from './unanswered-view.js';
import { show } from './views.js';

let conclave;
let lobby;
let signIn;
let signedInAs;
let isLeaving = false;
/** With a link that was opened for somebody who is signed in elsewhere in this browser. @type {{ camera: boolean, microphone: boolean } | undefined} */
let joins;
/** Shows the sign-in with words on why it is needed. @type {(words: string) => void} */
let refuse;

document.addEventListener('view', () => {
  placeNotices();
  setTitle();
});
beginShortcuts();
beginToolbar();
beginIdle();
explainAsking();

// A browser may keep the page, with its connection, so that the user can go back to it. Calls would ring only there, so the device disconnects, and reconnects
// with the page.
addEventListener('pagehide', ({ persisted }) => persisted && conclave?.close());
addEventListener('pageshow', ({ persisted }) => persisted && location.reload());

function setTitle() {
  const ring = lobby?.rings.current;
  if (ring) document.title = `${t('ring.title', { name: labelFor(ring.from) })} · Conclave`;
  else {
    const view = !byID('waiting').hidden ? 'waiting' : conclave?.current ? 'call' : ['unanswered', 'message', 'record'].find((name) => !byID(name).hidden);
    const title = view && `${view}-title`;
    document.title = title ? `${byID(title).textContent} · Conclave` : 'Conclave';
  }
}

export { lastingLinkID } from '../conclave/index.js';
export { guestWhenStarted, onStop } from './link-wait.js';

/**
 * Signs in with `entered`, a name or a token, and with `link` joins the call whose link is open. `refuseSignIn(words)` asks for another.
 * @param {any} entered
 * @param {{ isDemo: boolean, link?: { camera: boolean, microphone: boolean }, refuse: (words: string) => void }} options
 */
export async function connect(entered, { isDemo, link = undefined, refuse: refuseSignIn }) {
  signIn = entered;
  joins = link;
  refuse = refuseSignIn;
  const device = session.deviceOf(signIn) ?? (await session.claimDevice(session.userOf(signIn)));
  if (conclave) return conclave.connect(); // a token that was not accepted was replaced by another
  let demo; // a token of demo mode, kept because requesting the next one in another network may take many seconds
  const token = async (wasRefused) => {
    if (signIn.guest) return lobby.freshToken(wasRefused);
    if (!signIn.token) {
      if (!demo || wasRefused) demo = (await session.demoToken(signIn, device)).token;
      return demo;
    }
    if (wasRefused) throw new session.SignInError('token-refused');
    return signIn.token;
  };
  const credentials = async (wasRefused) => {
    const user = session.userOf(signIn);
    return { token: await token(wasRefused), user };
  };
  // Relative to the page, which may be served under a path.
  const url = new URL('stomp', location.href);
  url.protocol = location.protocol === 'https:' ? 'wss:' : 'ws:';
  conclave = new Conclave({ url: url.href, device, name: session.savedDeviceName(device) || browserName(), credentials });
  conclave.addEventListener('connection', () => showConnection(conclave.status));
  conclave.addEventListener('ready', () => signedIn());
  conclave.addEventListener('warning', ({ detail }) => {
    const { user, device } = detail;
    warnOfKey(detail, { label: labelFor(user), deviceName: (id) => conclave.deviceName(user, id), isOwn: user === conclave.user, trust: (fingerprint) => conclave.trust(user, device, fingerprint) });
  });
  conclave.addEventListener('calls', () => conclave.current && conclave.current.participant && showCurrent());
  document.body.classList.toggle('as-guest', Boolean(signIn.guest));
  if (signIn.guest) lobby = new GuestVisit({ conclave, signIn, entered: () => showCurrent() });
  else {
    lobby = new Lobby({ conclave, isDemo, token, entered: () => showCurrent(), ringsChanged: setTitle });
    lobby.usesLink = Boolean(joins);
    // Calls that did not ring meanwhile are missed calls.
    new DoNotDisturb({ conclave, ended: () => lobby.refresh() });
  }
  beginDevices(conclave);
  answerTabs(() => (signedInAs ? signIn : undefined));
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
  const shown = { connecting: 'connecting', reconnecting: 'reconnecting', ready: 'connected' }[status];
  const pill = byID('connection');
  pill.hidden = !shown;
  pill.dataset.state = status;
  setText(pill, shown ? t(`connection.${shown}`) : '');
  byID('sign-in-button').disabled = status === 'connecting';
  showObstacle(conclave.obstacle);
  if (isLeaving || lobby.hasEnded) return;
  if (status === 'refused') signedOut();
  else if (status === 'replaced') {
    endAll();
    show('elsewhere');
  } else if (status === 'removed') removed();
}

/** The server, or something before it, does not let this page connect. That does not pass by itself, and the person is told what to do. */
function showObstacle(obstacle) {
  if (!hasText(`obstacle.${obstacle}`)) clearWarnings((key) => key === 'obstacle');
  else warn('obstacle', t(`obstacle.${obstacle}`, { origin: location.origin }));
}

/** The keys of this device are revoked permanently: it starts over as another one. */
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
  for (const call of [conclave.current, ...conclave.held]) call?.giveUp();
}

/** The server does not need the token for a running call, which goes on while a fresh one is requested. */
function signedOut() {
  if (signIn.guest) return lobby.end({ words: t(hasText(conclave.reason) ? conclave.reason : 'sign-in.failed') });
  const words = t(hasText(`sign-in.${conclave.reason}`) ? `sign-in.${conclave.reason}` : 'sign-in.failed');
  if (conclave.current && signIn.token) {
    setText(byID('fresh-token-error'), words);
    byID('fresh-token').value = '';
    if (!byID('fresh-token-dialog').open) byID('fresh-token-dialog').showModal();
    return undefined;
  }
  endAll();
  signedInAs = undefined;
  session.forgetSignIn();
  byID('token').value = '';
  refuse(words);
  return undefined;
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
  conclave.current?.leave();
});
byID('fresh-token-dialog').addEventListener('close', () => {
  if (conclave.status === 'refused' && conclave.current) byID('fresh-token-dialog').showModal(); // Escape is not an answer
});

async function signedIn() {
  session.saveSignIn(signIn);
  if (signIn.guest) {
    beginNames(conclave.user, [], () => {});
    learnNames([{ user: conclave.user, name: signIn.name }]);
    return lobby.begin();
  }
  beginNames(conclave.user, session.savedNames(conclave.user), (names) => session.saveNames(conclave.user, names));
  if (signIn.name) learnNames([{ user: conclave.user, name: signIn.name }]);
  setText(byID('account-name'), nameFor(conclave.user));
  const isNew = signedInAs !== conclave.user;
  if (isNew) {
    if (signedInAs) endAll(); // a fresh token that belongs to somebody else
    signedInAs = conclave.user;
    show('lobby');
    lobby.focus();
  }
  if (!conclave.keepsKeys) warn('in-memory', t('key.in-memory'));
  lobby.notifications.subscribe();
  await lobby.refresh();
  if (isNew && joins) await lobby.joinByLink(joins);
  else if (isNew) await lobby.comeBack();
  joins = undefined;
  return undefined;
}

byID('sign-out').addEventListener('click', () => byID('sign-out-dialog').showModal());
byID('sign-out-keep').addEventListener('click', busy(byID('sign-out-keep'), async () => {
  await lobby.notifications?.unsubscribe();
  session.forgetSignIn();
  if (conclave.identity) session.forgetCall(conclave.identity.device);
  conclave.close();
  location.reload();
}));
byID('sign-out-forget').addEventListener('click', busy(byID('sign-out-forget'), async () => {
  const { user } = conclave;
  isLeaving = true;
  // Without their keys the devices can do nothing any longer. A server that is down must not keep them here.
  await removeDevices(session.devicesOf(user)).catch(() => {});
  await lobby.notifications?.unsubscribe();
  await lobby.forgetRecordings?.().catch(() => {});
  conclave.close();
  await conclave.forget({ all: true });
  session.forgetAll(user);
  location.reload();
}));

/** Removes this device, and the others that this browser has for the user. */
async function removeDevices(here) {
  const own = await conclave.ownDevices.list();
  // This device last: its signature no longer counts once it is removed.
  for (const each of own.filter(({ device, isThis }) => !isThis && here.includes(device))) await conclave.ownDevices.remove(each);
  await conclave.ownDevices.remove(conclave.ownDevices.self);
}

byID('use-here').addEventListener('click', () => location.reload());
// A phone that switches from Wi-Fi to mobile data is not offline in between. If the type is unknown, `change` reports mere estimates.
const network = navigator.connection;
let networkType = network?.type;
network?.addEventListener('change', () => {
  if (network.type === networkType) return;
  networkType = network.type;
  conclave?.networkChanged();
});
window.addEventListener('online', () => conclave?.networkChanged());
document.addEventListener('visibilitychange', () => document.hidden || conclave?.hurry());

for (const id of ['show-setup', 'more-setup', 'ring-setup']) {
  byID(id).addEventListener('click', () => {
    byID('more-dialog').close();
    openSetup();
  });
}

// The call

const shown = new WeakSet();
const STILL_ON = ['left', 'lost']; // a guest may come back

/** Shows the active call. */
function showCurrent() {
  const { current: call } = conclave;
  if (!call || call.hasEnded) return;
  if (!shown.has(call)) {
    shown.add(call);
    call.addEventListener('ended', ({ detail }) => left(call, detail));
    call.addEventListener('change', setTitle);
    if (!signIn.guest) call.addEventListener('change', () => call === conclave.current && lobby.leaveUnanswered(call));
  }
  showCall(call, { connection: conclave, options: lobby.fieldOptions });
  if (byID('call').hidden) show('call');
}

function left(call, detail) {
  // A call that rang nobody: the result for each callee was already reported.
  const words = ringsNobody(call.results) ? undefined : wordsForEnd(detail, conclave.user, call.facts.others);
  if (signIn.guest) return lobby.end({ words: detail.reason === 'removed' ? t('farewell.removed') : words, mayReturn: STILL_ON.includes(detail.reason) });
  const isOther = conclave.current && conclave.current !== call; // one on hold ended
  if (!isOther) {
    session.forgetCall(conclave.identity.device);
    hideCall();
    if (lobby.showUnanswered(call, detail)) return undefined;
    show('lobby');
  }
  // A ring beside the active call that was cancelled because it crossed another is no news.
  if (words && !(isOther && detail.reason === 'cancelled')) notice(words);
  if (isOther) return undefined;
  if (conclave.status === 'ready') lobby.refresh();
  if (conclave.status === 'refused') signedOut();
  return undefined;
}
