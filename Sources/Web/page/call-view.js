// The page of a running call: its stage, its bar and its buttons.

import { isGuest, isLost } from '../conclave/index.js';
import { Alone } from './alone.js';
import { Captions } from './captions-view.js';
import { CallRecordingView } from './call-recording-view.js';
import { beginChat } from './chat-view.js';
import { openCode, showCode } from './code-dialog.js';
import { busy, byID, nameOf, rest, setIcon, setText } from './dom.js';
import { Admitted, showDoor } from './door-view.js';
import { Removals } from './guest-removal.js';
import { Hands } from './hands.js';
import { acceptName, isFirstContact, labelFor, learnNames, namesakeOf, newNameOf, rememberNames } from './names.js';
import { clearNotices, clearWarnings, notice, warn, warnOfKey, wordsFor, wordsForError, wordsForStop } from './notices.js';
import { OwnVoice } from './own-voice.js';
import { forgetLink, openPeople, showPeople } from './people-dialog.js';
import { isDenied, showSteps } from './permissions.js';
import { beginReactions } from './reactions.js';
import * as session from './session.js';
import { smallWindow } from './small-window.js';
import { Stage } from './stage.js';
import { hasText, listNames, t } from './texts.js';
import { Tone, outgoing } from './tone.js';
import { keepAwake } from './wake-lock.js';

const SAVED_EVERY_S = 5;
const FAILURES_TOLD_EVERY_MS = 10_000;
const KEY_PATIENCE_MS = 3_000; // the key of a call arrives with a join, or moments later
const NAMED = 3; // in the heading
const UPLINK = ['weak-uplink', 'uplink-recovered'];

const stage = new Stage({ compare: () => openCode(call, conclave) });
const hands = new WeakMap(); // by call
const tone = new Tone(outgoing);
const known = new WeakSet();
const met = new WeakMap(); // the people who were seen in a call, by call
const alone = new WeakMap(); // by call
const removals = new WeakMap(); // by call
const admitted = new WeakMap(); // by call
const told = new Set(); // people whose name equals another's, by call
let conclave;
let call;
let fieldOptions;
let timer;
let shownStop; // the contents of the line above the stage
let failuresToldAt = -Infinity;
let keylessSince;

/** Shows `entered` until another call is shown or it is over. `options` is the argument of `chosenIDs`. */
export function showCall(entered, { connection, options }) {
  if (entered.hasEnded || entered === call) return;
  if (call) closeDialogs();
  call?.unattend();
  call = entered;
  conclave = connection;
  fieldOptions = options;
  clearWarnings();
  clearNotices();
  stage.clear();
  keylessSince = undefined;
  shownStop = undefined;
  keepAwake(true);
  smallWindow.begin();
  beginChat(entered);
  if (!known.has(entered)) listen(entered);
  clearInterval(timer);
  timer = setInterval(() => tick(entered), 1_000);
  save();
  render(entered);
  for (const [name, detail] of entered.attend()) (name === 'warning' ? warned : noticed)(detail);
}

/** Plays voices through this output device from now on; '' is the system's choice. */
export function useSpeaker(id) {
  stage.chooseSpeaker(id).catch((error) => notice(wordsForError(error)));
}

/** No call is shown any longer. */
export function hideCall() {
  call = undefined;
  smallWindow.end();
  showDoor(undefined);
  recordingView.hide();
  voice.clear();
  captions.clear();
  keepAwake(false);
  clearInterval(timer);
  tone.stop();
  closeDialogs();
  clearWarnings();
  stage.clear();
}

/** They are about the call that was shown. */
function closeDialogs() {
  for (const { id } of document.querySelectorAll('dialog[open]:not(#ring)')) byID(id).close();
}

function tellFailures() {
  if (performance.now() - failuresToldAt < FAILURES_TOLD_EVERY_MS) return;
  failuresToldAt = performance.now();
  notice(t('call.undecrypted'));
}

/** A call that is held and shown again already has its listeners. */
function listen(entered) {
  known.add(entered);
  hands.set(entered, new Hands());
  removals.set(entered, new Removals());
  admitted.set(entered, new Admitted());
  met.set(entered, new Set());
  alone.set(entered, new Alone({ leave: () => leaveDeserted(entered) }));
  const on = (name, action) => entered.addEventListener(name, ({ detail }) => entered === call && action(detail));
  entered.addEventListener('change', () => entered.hasEnded || isDone(() => alone.get(entered).look(entered.facts)));
  on('change', () => render(entered));
  on('door', () => render(entered));
  on('speaking', () => stage.showSpeaking(entered.speaking));
  on('failures', () => tellFailures());
  on('warning', (detail) => warned(detail));
  entered.addEventListener('message', ({ detail }) => messageCame(entered, detail));
  entered.addEventListener('ended', () => {
    alone.get(entered).stop();
    rememberNames(met.get(entered));
  });
  on('notice', (detail) => noticed(detail));
}

/**
 * The notice about a missing camera or microphone stays until it is available, because the person has to act. So does the notice about a camera that is off
 * because the path is poor.
 */
function noticed(detail) {
  const words = wordsFor({ ...detail, starter: detail.by?.user, by: detail.cause === 'removed' ? removalOf(detail.member) : undefined });
  if (!words) return;
  if (detail.kind === 'no-device') warn(`no-device/${detail.source}`, words, { isOfCall: true, action: isDenied(detail.error) ? wayBack(detail.source) : undefined });
  else if (UPLINK.includes(detail.kind)) warn('uplink', words, { isOfCall: true, action: { label: t('call.camera-again'), run: () => setCamera(true).catch((error) => notice(wordsForError(error))) } });
  else notice(words);
}

function tellAdmitted(roster) {
  for (const { user, by } of admitted.get(call).news(roster, call.user)) notice(t('event.admitted', { name: labelFor(user), by: labelFor(by) }));
}

/** The member who removed the guest. The links are void with it. */
function removalOf({ user }) {
  const by = removals.get(call).by(user);
  removals.get(call).forget(user);
  if (isGuest(user) && forgetLink(call)) notice(t('link.revoked'));
  return by;
}

/** The browser's own steps, after which the source is opened again. */
function wayBack(source) {
  const again = () => (source === 'camera' ? setCamera(true) : call?.setMicrophone(true));
  return { label: t('permission.how'), isRepeatable: true, run: () => showSteps(() => again()?.catch((error) => notice(wordsForError(error)))) };
}

function messageCame(to, message) {
  const isHand = hands.get(to).take(message);
  removals.get(to).take(to, message);
  if (to !== call) return;
  captions.take(to, message);
  const { participant, reaction, hand } = message;
  if (reaction) stage.react(participant, reaction);
  if (!isHand) return;
  const owner = hand && participant !== to.participant && to.ownerOf(participant);
  if (owner) notice(t('call.hand-raised', { name: labelFor(owner.user) }));
  render(to);
}

/**
 * The parts of the page, each drawn separately: a failing one does not prevent the others from being drawn. The tiles and the stop's line come first, after the
 * names that they contain.
 */
const PARTS = [
  () => learnNames(call.members.values()),
  () => stage.show(call, hands.get(call)),
  () => showStop(),
  () => showHeading(),
  () => showTools(),
  () => recordingView.show(call),
  () => voice.show(call),
  () => captions.show(call),
  () => showAlone(),
  () => showDoor(call),
  () => tellAdmitted(call.roster),
  () => clearWarnings(overIn(call.roster)),
  () => meet(call.roster),
  () => checkNames(call.roster),
  () => checkNewNames(call.roster),
  () => byID('code-dialog').open && showCode(call),
  () => byID('people-dialog').open && showPeople(call),
];
let isDrawing = false;

/** If a part cannot be drawn, sending stops: people might not see who hears. */
function render(rendered) {
  if (rendered !== call || isDrawing) return;
  isDrawing = true;
  try {
    const failed = PARTS.filter((part) => !isDone(part));
    call.setShown(failed.length === 0);
    isDone(() => showStop());
  } finally {
    isDrawing = false;
  }
}

function isDone(action) {
  try {
    action();
    return true;
  } catch (error) {
    console.warn(`Conclave: a part of the page was not drawn: ${error.name}`);
    return false;
  }
}

function warned(detail) {
  const { user } = detail;
  const trusted = (fingerprint) => trust(detail, fingerprint);
  warnOfKey(detail, { label: user && labelFor(user), deviceName: (device) => conclave.deviceName(user, device), isOwn: user === call.user, trust: trusted, isOfCall: true, compare: () => openCode(call, conclave) });
}

async function trust({ user, device }, fingerprint) {
  if (!(await conclave.trust(user, device, fingerprint))) notice(t('call.key-changed-again'));
}

/**
 * Returns a function that says, for the key of a warning, whether its cause has passed. The warning that a stranger could hear stays until it is dismissed. The
 * warning about somebody whom nobody let in stays until it turns out that somebody did.
 */
function overIn(roster) {
  const letIn = new Set(roster.filter(({ admission }) => admission).map(({ user, device }) => `uninvited/${user}/${device}`));
  const trusted = new Set(roster.filter(({ level }) => level === 'verified' || level === 'vouched').map(({ user, device }) => `new-device/${user}/${device}`));
  const gone = new Set(roster.filter(({ state }) => state === 'gone').map(({ user, device }) => `gone/${user}/${device}`));
  const over = {
    unverified: () => !call.hasUnverified,
    gone: (key) => !gone.has(key),
    'no-key': () => call.stop?.cause !== 'no-key',
    unconfirmed: () => call.confirmation.state === 'confirmed',
    'old-epoch': () => !call.isKeyOld,
    uninvited: (key) => letIn.has(key),
    'by-service': () => !call.isByService,
    'new-device': (key) => trusted.has(key), // the word of a verified device may arrive later
    'no-device': (key) => call.local(key.split('/')[1]).isOn,
    uplink: () => call.local('camera').isOn,
    alone: () => !alone.get(call).isAsking,
  };
  return (key) => over[key.split('/', 1)[0]]?.(key);
}

/**
 * The people on the list of keys who are in the call: they are remembered after it is over. The keys are gone then, and the server alone makes nobody known.
 */
function meet(roster) {
  for (const { user, state } of roster) if (state === 'member') met.get(call).add(user);
}

/** A page that closes in a call remembers its people, too. */
addEventListener('pagehide', () => call && rememberNames(met.get(call)));

/** The person has not answered, and is still alone. */
function leaveDeserted(entered) {
  entered.leave();
  notice(t('over.all-left'));
}

/** Asks somebody whom all others have left. */
function showAlone() {
  const { isAsking } = alone.get(call);
  const isShown = [...byID('warnings').children].some(({ dataset }) => dataset.key === 'alone');
  if (!isAsking || isShown) return;
  const dismissal = { label: t('call.wait'), run: () => alone.get(call)?.wait() };
  warn('alone', t('call.alone'), { isOfCall: true, dismissal, action: { label: t('tool.leave'), run: () => call?.leave() } });
}

/** Somebody met for the first time who has the name of another person. */
function checkNames(roster) {
  for (const { user } of roster) {
    const other = user !== call.user && isFirstContact(user) && namesakeOf(user);
    if (!other || told.has(`${call.id}/${user}/${other}`)) continue;
    told.add(`${call.id}/${user}/${other}`);
    warned({ problem: 'namesake', user, other });
  }
}

/** A known person to whom the server gives another name: the remembered one stays until the person accepts the new one. */
function checkNewNames(roster) {
  for (const { user } of roster) {
    const other = newNameOf(user);
    if (!other || told.has(`${call.id}/${user}/is ${other}`)) continue;
    told.add(`${call.id}/${user}/is ${other}`);
    const run = () => {
      acceptName(user, other);
      if (call) render(call);
    };
    warn(`renamed/${user}`, t('key.renamed', { name: labelFor(user), other }), { action: { label: t('key.use-name'), run } });
  }
}

/** Why nothing is sent, in a line above the stage. The button applies to the devices that the line names: after a change it is disabled for a moment. */
function showStop() {
  keylessSince = call.hasKey ? undefined : (keylessSince ?? performance.now());
  const isKeyless = performance.now() - keylessSince >= KEY_PATIENCE_MS;
  const stop = call.stop ?? (isKeyless ? { cause: 'no-key', devices: [], needsPerson: false } : undefined);
  const isSame = sameStop(stop, shownStop);
  shownStop = stop;
  byID('call-notice').hidden = !stop;
  if (!stop) return;
  const { cause, devices, needsPerson } = stop;
  byID('call-notice').dataset.cause = cause;
  const who = devices.map(({ user, device }) => t(user === call.user ? 'stop.your-device' : 'stop.their-device', { name: labelFor(user), device: nameOf({ user: device, name: conclave.deviceName(user, device) }) }));
  setText(byID('call-notice-text'), wordsForStop(stop, listNames(who)));
  const button = byID('send-anyway');
  setText(button, t(cause === 'broken-history' ? 'call.join-again' : 'call.send-anyway'));
  if (needsPerson && (button.hidden || !isSame)) rest(button);
  button.hidden = !needsPerson;
}

const sameStop = (one, other) => JSON.stringify([one?.cause, one?.devices]) === JSON.stringify([other?.cause, other?.devices]);

function showHeading() {
  const { others } = call.facts;
  const present = others.filter(({ participants }) => participants.length > 0);
  const ringing = others.filter(({ state }) => state === 'ringing');
  const isCalling = present.length === 0 && ringing.length > 0;
  const names = listNames((isCalling ? ringing : present).map(({ user }) => labelFor(user)), NAMED);
  setText(byID('call-title'), isCalling ? t('call.calling', { names }) : names || t('call.nobody'));
  byID('call-timer').hidden = call.answeredAt === undefined;
  showTime(call);
  if (isCalling && !call.isHeld) tone.start();
  else tone.stop();
  const path = conclave.status === 'ready' ? call.path : 'reconnecting';
  // "Connected" is shown while somebody is there. People whose connection is lost may return, and the call waits.
  const isReady = path === 'connected' && call.hasKey && !isCalling;
  const isAlone = isReady && !present.some(({ participants }) => participants.some(({ connected }) => connected));
  const lost = isAlone ? present.filter(isLost) : [];
  byID('call-path').dataset.state = isAlone || (path === 'connected' && !call.hasKey) ? 'connecting' : path;
  setText(byID('call-path'), isAlone ? wordsForAlone(present, lost) : wordsForPath(path, isCalling));
  byID('leave-lost').hidden = lost.length === 0;
  showQuality(path === 'connected' ? call.quality : undefined);
}

function wordsForAlone(present, lost) {
  if (lost.length > 0) return t('call.lost', { name: listNames(lost.map(({ user }) => labelFor(user)), NAMED) });
  return present.length > 0 ? t('connection.connecting') : '';
}

function wordsForPath(path, isCalling) {
  if (path === 'held') return t('running.held');
  if (path !== 'connected') return t(`connection.${path}`);
  if (isCalling) return t('call.ringing');
  return t(call.hasKey ? 'connection.connected' : 'call.no-key');
}

function showQuality(level) {
  const node = byID('call-quality');
  node.hidden = level === undefined;
  if (level === undefined) return;
  node.dataset.level = level;
  node.ariaLabel = t('quality', { level: hasText(`quality.${level}`) ? t(`quality.${level}`) : level });
  node.title = node.ariaLabel;
}

function showTools() {
  showSource('microphone');
  showSource('camera');
  showToggle('screen', call.local('screen').isOn);
  byID('toggle-screen').hidden = !navigator.mediaDevices?.getDisplayMedia;
  showToggle('hand', hands.get(call).isRaised(call.participant));
  showToggle('hold', call.isHeld);
  byID('toggle-hold').hidden = isGuest(call.user); // a guest has only this call
  // Phones have a camera on each side; elsewhere one is chosen by its name.
  byID('flip-camera').hidden = !matchMedia('(pointer: coarse)').matches || !call.local('camera').isOn;
  for (const source of ['microphone', 'camera', 'screen']) byID(`toggle-${source}`).disabled = call.isHeld;
  // While nobody else is there, leaving ends it.
  byID('end').hidden = !call.isInitiator || call.facts.others.every(({ participants }) => participants.length === 0);
}

/** Labels tell what a press does: the first while a source or a hand is off. So these buttons have no pressed state (WAI-ARIA, "button"). */
const DEEDS = {
  microphone: ['tool.unmute', 'tool.mute'],
  camera: ['tool.start-camera', 'tool.stop-camera'],
  screen: ['tool.share-screen', 'tool.stop-sharing'],
  hand: ['tool.raise-hand', 'tool.lower-hand'],
};

function showSource(source) {
  const { isOn } = call.local(source);
  const button = byID(`toggle-${source}`);
  setIcon(button, isOn ? source : `${source}-off`);
  showDeed(source, isOn);
  button.classList.toggle('off', !isOn);
}

function showToggle(name, isOn) {
  if (DEEDS[name]) showDeed(name, isOn);
  else byID(`toggle-${name}`).ariaPressed = isOn;
  byID(`toggle-${name}`).classList.toggle('on', isOn);
}

function showDeed(name, isOn) {
  setText(byID(`toggle-${name}`).querySelector('.tool-label'), t(DEEDS[name][Number(isOn)]));
}

const secondsSince = (time) => Math.max(0, Math.floor((Date.now() - time) / 1_000));

/** Since the second person has joined. */
function showTime({ answeredAt }) {
  if (answeredAt === undefined) return;
  const seconds = secondsSince(answeredAt);
  const parts = [Math.floor(seconds / 3_600), Math.floor(seconds / 60) % 60, seconds % 60];
  const [first, ...rest] = parts[0] > 0 ? parts : parts.slice(1);
  setText(byID('call-timer'), [first, ...rest.map((part) => String(part).padStart(2, '0'))].join(':'));
}

function tick(shown) {
  showTime(shown);
  if (secondsSince(shown.startedAt) % SAVED_EVERY_S === 0) save();
}

/** For a reload, or a browser that is restarted. */
function save() {
  session.saveCall(call.device, { id: call.id, camera: call.wantsCamera, root: call.root });
}

// Buttons

async function setCamera(isOn) {
  await call?.setCamera(isOn);
  if (call) save();
}

const voice = new OwnVoice();
const recordingView = new CallRecordingView();
smallWindow.prepare();
const captions = new Captions();
beginReactions((reaction) => call.send({ reaction }).catch((error) => notice(wordsForError(error))));

function onClick(id, action) {
  byID(id).addEventListener('click', busy(byID(id), () => action().catch((error) => notice(wordsForError(error)))));
}

onClick('toggle-microphone', async () => call.setMicrophone(!call.local('microphone').isOn));
onClick('toggle-camera', async () => setCamera(!call.local('camera').isOn));
onClick('toggle-screen', async () => (call.local('screen').isOn ? call.stopScreen() : share()));
onClick('toggle-hand', async () => call.send({ hand: !hands.get(call).isRaised(call.participant) }));
onClick('flip-camera', async () => {
  byID('more-dialog').close();
  conclave.capture.flip();
});
onClick('toggle-hold', async () => {
  byID('more-dialog').close();
  await call.hold(!call.isHeld);
});
byID('show-more').addEventListener('click', () => byID('more-dialog').showModal());
onClick('leave', async () => call.leave());
onClick('leave-lost', async () => call.leave());
onClick('send-anyway', async () => (shownStop?.cause === 'broken-history' ? call.rejoin() : call.sendAnyway(shownStop?.devices ?? [])));
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
