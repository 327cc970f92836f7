// The page of a running call: its stage, its bar and its buttons.

import { beginChat } from './chat-view.js';
import { openCode, showCode } from './code-dialog.js';
import { busy, byID, joinNames, rest, setIcon, setText } from './dom.js';
import { isFirstContact, labelFor, learnNames, namesakeOf, rememberNames } from './names.js';
import { clearWarnings, notice, warnOfKey, wordsFor, wordsForError, wordsForStop } from './notices.js';
import { openPeople, showPeople } from './people-dialog.js';
import * as session from './session.js';
import { Stage } from './stage.js';
import { Tone, outgoing } from './tone.js';

const SAVED_EVERY_S = 5;
const FAILURES_TOLD_EVERY_MS = 10_000;
const qualities = ['very bad', 'bad', 'fair', 'good', 'very good'];

const stage = new Stage({ root: byID('stage'), grid: byID('grid'), screens: byID('screens'), sound: byID('sound') });
const tone = new Tone(outgoing);
const known = new WeakSet();
const told = new Set(); // of people with the name of another, by call
let conclave;
let call;
let fieldOptions;
let timer;
let failuresToldAt = -Infinity;

/** Shows `entered` until another is shown or it is over. `options` is what `chosenIDs` wants. */
export function showCall(entered, { connection, options }) {
  if (entered.hasEnded || entered === call) return;
  call = entered;
  conclave = connection;
  fieldOptions = options;
  clearWarnings();
  beginChat(entered);
  if (!known.has(entered)) listen(entered);
  clearInterval(timer);
  timer = setInterval(() => tick(entered), 1_000);
  save();
  render(entered);
}

/** No call is shown any more. */
export function hideCall() {
  call = undefined;
  clearInterval(timer);
  tone.stop();
  for (const { id } of document.querySelectorAll('dialog[open]:not(#ring)')) byID(id).close();
  clearWarnings();
  stage.clear();
}

function tellFailures() {
  if (performance.now() - failuresToldAt < FAILURES_TOLD_EVERY_MS) return;
  failuresToldAt = performance.now();
  notice('Some sound or pictures could not be decrypted');
}

/** A call that is held and shown again has its listeners already. */
function listen(entered) {
  known.add(entered);
  const on = (name, action) => entered.addEventListener(name, ({ detail }) => entered === call && action(detail));
  on('change', () => render(entered));
  on('speaking', () => stage.showSpeaking(entered.speaking));
  on('failures', () => tellFailures());
  on('warning', (detail) => warned(detail));
  for (const detail of entered.takeEarlyWarnings()) warned(detail);
  entered.addEventListener('ended', () => rememberNames(new Set(entered.devices.map(({ user }) => user))));
  entered.addEventListener('notice', ({ detail }) => {
    const words = wordsFor(detail);
    if (words) notice(words);
  });
}

function render(rendered) {
  if (rendered !== call) return;
  learnNames(call.members.values());
  showHeading();
  showTools();
  const { roster } = call;
  clearWarnings(overIn(roster));
  checkNames(roster);
  showStop();
  stage.show(call);
  if (byID('code-dialog').open) showCode(call);
  if (byID('people-dialog').open) showPeople(call);
}

function warned(detail) {
  const { user } = detail;
  warnOfKey(detail, { label: user && labelFor(user), isOwn: user === call.user, trust: (fingerprint) => trust(detail, fingerprint) });
}

async function trust({ user, device }, fingerprint) {
  if (!(await conclave.trust(user, device, fingerprint))) notice('That key has changed once more. Look at the new one.');
}

/** Tells of the key of a warning whether what it is about has passed. That a stranger could hear stays until it is dismissed. */
function overIn(roster) {
  const gone = new Set(roster.filter(({ state }) => state === 'gone').map(({ user, device }) => `gone/${user}/${device}`));
  const over = {
    unverified: () => !call.hasUnverified,
    gone: (key) => !gone.has(key),
    'no-key': () => call.stop?.cause !== 'no-key',
    unconfirmed: () => call.confirmation.state === 'confirmed',
    'old-epoch': () => !call.isKeyOld,
  };
  return (key) => over[key.split('/', 1)[0]]?.(key);
}

/** Somebody who is met for the first time with the name of another person. */
function checkNames(roster) {
  for (const { user } of roster) {
    const other = user !== call.user && isFirstContact(user) && namesakeOf(user);
    if (!other || told.has(`${call.id}/${user}/${other}`)) continue;
    told.add(`${call.id}/${user}/${other}`);
    warned({ problem: 'namesake', user, other });
  }
}

/** Why nothing is sent, in a line above the stage. */
function showStop() {
  const { stop } = call;
  byID('call-notice').hidden = !stop;
  if (!stop) return;
  const { cause, user, device, needsPerson } = stop;
  byID('call-notice').dataset.cause = cause;
  setText(byID('call-notice-text'), wordsForStop(cause, user && `${user === call.user ? 'your own device' : labelFor(user)} (${device})`));
  const button = byID('send-anyway');
  setText(button, cause === 'broken-history' ? 'Join again' : 'Send anyway');
  if (button.hidden && needsPerson) rest(button);
  button.hidden = !needsPerson;
}

function showHeading() {
  const { others } = call.facts;
  const present = others.filter(({ participants }) => participants.length > 0);
  const ringing = others.filter(({ state }) => state === 'ringing');
  const isCalling = present.length === 0 && ringing.length > 0;
  const who = joinNames((isCalling ? ringing : present).map(({ user }) => labelFor(user)));
  setText(byID('call-title'), isCalling ? `Calling ${who}` : who || 'Nobody else is here');
  byID('call-timer').hidden = isCalling;
  if (isCalling && !call.isHeld) tone.start();
  else tone.stop();
  const path = conclave.status === 'ready' ? call.path : 'reconnecting';
  const connected = isCalling ? 'Ringing…' : 'Connected';
  byID('call-path').dataset.state = path;
  setText(byID('call-path'), { connecting: 'Connecting…', connected, reconnecting: 'Reconnecting…', held: 'On hold' }[path]);
  showQuality(path === 'connected' ? call.quality : undefined);
}

function showQuality(level) {
  const node = byID('call-quality');
  node.hidden = level === undefined;
  if (level === undefined) return;
  node.dataset.level = level;
  node.ariaLabel = `Connection: ${qualities[level] ?? level}`;
  node.title = node.ariaLabel;
}

function showTools() {
  showTool('microphone', call.local('microphone').isOn, 'Mute', 'Unmute');
  showTool('camera', call.local('camera').isOn, 'Stop camera', 'Start camera');
  const isSharing = call.local('screen').isOn;
  setIcon(byID('toggle-screen'), isSharing ? 'screen-off' : 'screen');
  setText(byID('toggle-screen').querySelector('span'), isSharing ? 'Stop sharing' : 'Share screen');
  byID('toggle-screen').classList.toggle('on', isSharing);
  byID('toggle-screen').hidden = !navigator.mediaDevices?.getDisplayMedia;
  setText(byID('toggle-hold').querySelector('span'), call.isHeld ? 'Resume' : 'Hold');
  byID('toggle-hold').classList.toggle('on', call.isHeld);
  for (const source of ['microphone', 'camera', 'screen']) byID(`toggle-${source}`).disabled = call.isHeld;
  // While nobody else is there, leaving ends it.
  byID('end').hidden = !call.isInitiator || call.facts.others.every(({ participants }) => participants.length === 0);
}

function showTool(source, isOn, off, on) {
  const button = byID(`toggle-${source}`);
  setIcon(button, isOn ? source : `${source}-off`);
  setText(button.querySelector('span'), isOn ? off : on);
  button.classList.toggle('off', !isOn);
  button.dataset.on = isOn;
}

function tick({ startedAt }) {
  const seconds = Math.max(0, Math.floor((Date.now() - startedAt) / 1_000));
  const parts = [Math.floor(seconds / 3_600), Math.floor(seconds / 60) % 60, seconds % 60];
  const [first, ...rest] = parts[0] > 0 ? parts : parts.slice(1);
  setText(byID('call-timer'), [first, ...rest.map((part) => String(part).padStart(2, '0'))].join(':'));
  if (seconds % SAVED_EVERY_S === 0) save();
}

/** For a reload, or a browser that is started again. */
function save() {
  session.saveCall(call.device, { id: call.id, camera: call.wantsCamera });
}

// Buttons

function onClick(id, action) {
  byID(id).addEventListener('click', busy(byID(id), () => action().catch((error) => notice(wordsForError(error)))));
}

onClick('toggle-microphone', async () => call.setMicrophone(!call.local('microphone').isOn));
onClick('toggle-camera', async () => {
  await call.setCamera(!call.local('camera').isOn);
  if (call) save();
});
onClick('toggle-screen', async () => (call.local('screen').isOn ? call.stopScreen() : share()));
onClick('toggle-hold', async () => call.hold(!call.isHeld));
onClick('leave', async () => call.leave());
onClick('send-anyway', async () => (call.stop?.cause === 'broken-history' ? call.rejoin() : call.sendAnyway()));
byID('end').addEventListener('click', () => byID('end-dialog').showModal());
byID('add-people').addEventListener('click', () => openPeople(call, fieldOptions));
byID('show-code').addEventListener('click', () => openCode(call, conclave));
onClick('end-confirm', async () => {
  byID('end-dialog').close();
  await call.endForAll();
});
onClick('screen-replace', async () => {
  byID('screen-dialog').close();
  await share({ replace: true });
});

async function share(options) {
  try {
    await call.shareScreen(options);
  } catch (error) {
    if (error.code === 'screen.busy') byID('screen-dialog').showModal();
    else if (error.name !== 'NotAllowedError' && error.name !== 'AbortError') throw error;
  }
}
