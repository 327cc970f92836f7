// The page of a running call: its stage, its buttons and its dialogs.

import { fromBase64 } from './bytes.js';
import { readable } from './conclave.js';
import { avatar, busy, byID, element, joinNames, nameOf, setIcon, setText } from './dom.js';
import { learnNames, nameFor } from './names.js';
import { clearWarnings, notice, tellResults, warn, wordsFor, wordsForError } from './notices.js';
import { PeopleField, chosenIDs } from './people.js';
import * as session from './session.js';
import { Stage } from './stage.js';

const stage = new Stage({ root: byID('stage'), grid: byID('grid'), screens: byID('screens'), sound: byID('sound') });
const added = new PeopleField(byID('add-name'));
let conclave;
let call;
let fieldOptions;
let timer;

/** Shows `entered` until it is over here; then `whenLeft(detail)` is called. `options` is what `chosenIDs` wants. */
export function showCall(entered, { connection, camera, options, whenLeft }) {
  if (entered.hasEnded) return;
  call = entered;
  conclave = connection;
  fieldOptions = options;
  session.saveCall({ id: call.id, camera });
  clearWarnings();
  call.addEventListener('change', () => render(entered));
  call.addEventListener('speaking', () => stage.showSpeaking(entered.speaking));
  call.addEventListener('notice', ({ detail }) => {
    const words = wordsFor(detail);
    if (words) notice(words);
  });
  call.addEventListener('failures', () => notice('Some sound or pictures could not be decrypted'));
  call.addEventListener('warning', ({ detail }) => warnOfKey(entered, detail));
  call.addEventListener('ended', ({ detail }) => leave(entered, detail, whenLeft));
  clearInterval(timer);
  timer = setInterval(() => showTime(entered), 1_000);
  render(entered);
}

function leave(ended, detail, whenLeft) {
  if (ended !== call) return;
  call = undefined;
  clearInterval(timer);
  session.forgetCall();
  for (const dialog of document.querySelectorAll('dialog[open]:not(#ring)')) dialog.close();
  clearWarnings();
  stage.clear();
  whenLeft(detail);
}

function render(rendered) {
  if (rendered !== call) return;
  learnNames(call.members.values());
  const others = [...call.members.values()].filter(({ user }) => user !== conclave.user);
  const present = others.filter(({ participants }) => participants.length > 0);
  const ringing = others.filter(({ state }) => state === 'ringing');
  const who = present.length > 0 ? present : ringing;
  const verb = present.length > 0 || ringing.length === 0 ? '' : 'Calling ';
  setText(byID('call-title'), who.length > 0 ? verb + joinNames(who.map(nameOf)) : 'Nobody else is here');
  const path = conclave.status === 'ready' ? call.path : 'reconnecting';
  byID('call-path').dataset.state = path;
  setText(byID('call-path'), { connecting: 'Connecting…', connected: 'Connected', reconnecting: 'Reconnecting…' }[path]);
  showTool('microphone', call.local('microphone').isOn, 'Mute', 'Unmute');
  showTool('camera', call.local('camera').isOn, 'Stop camera', 'Start camera');
  const isSharing = call.local('screen').isOn;
  setIcon(byID('toggle-screen'), isSharing ? 'screen-off' : 'screen');
  setText(byID('toggle-screen').querySelector('span'), isSharing ? 'Stop sharing' : 'Share screen');
  byID('toggle-screen').classList.toggle('on', isSharing);
  byID('toggle-screen').hidden = !navigator.mediaDevices?.getDisplayMedia;
  byID('end').hidden = !call.isInitiator;
  byID('add-form').hidden = !call.mayInvite;
  stage.show(call);
  if (byID('people-dialog').open) showMembers();
  if (byID('code-dialog').open) showCode();
}

function showTool(source, isOn, off, on) {
  const button = byID(`toggle-${source}`);
  setIcon(button, isOn ? source : `${source}-off`);
  setText(button.querySelector('span'), isOn ? off : on);
  button.classList.toggle('off', !isOn);
  button.dataset.on = isOn;
}

function showTime({ startedAt }) {
  const seconds = Math.max(0, Math.floor((Date.now() - startedAt) / 1_000));
  const parts = [Math.floor(seconds / 3_600), Math.floor(seconds / 60) % 60, seconds % 60];
  const [first, ...rest] = parts[0] > 0 ? parts : parts.slice(1);
  setText(byID('call-timer'), [first, ...rest.map((part) => String(part).padStart(2, '0'))].join(':'));
}

function onClick(id, action) {
  byID(id).addEventListener('click', busy(byID(id), () => action().catch((error) => notice(wordsForError(error)))));
}

onClick('toggle-microphone', async () => call.setMicrophone(!call.local('microphone').isOn));
onClick('toggle-camera', async () => {
  await call.setCamera(!call.local('camera').isOn);
  if (call) session.saveCall({ id: call.id, camera: call.local('camera').isOn });
});
onClick('toggle-screen', async () => (call.local('screen').isOn ? call.stopScreen() : share()));
onClick('leave', async () => call.leave());
byID('end').addEventListener('click', () => byID('end-dialog').showModal());
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

function warnOfKey(warned, { problem, user, device }) {
  const name = nameFor(user);
  if (problem === 'changed-key') {
    const words = `The security key of ${name}’s device has changed. Until you trust it, it neither hears nor sees you. Ask ${name} first.`;
    warn(words, { label: 'Trust the new key', run: () => warned.trust(user, device) });
  } else {
    warn(`A device of ${name} could not be verified. It gets no keys, and is neither heard nor seen.`);
  }
}

// Dialogs of the call

for (const button of document.querySelectorAll('[data-close]')) {
  button.addEventListener('click', () => button.closest('dialog').close());
}

byID('add-people').addEventListener('click', () => {
  added.clear();
  setText(byID('add-error'), '');
  showMembers();
  byID('people-dialog').showModal();
  if (call.mayInvite) added.focus();
});

const invite = busy(byID('add-button'), async () => {
  const ids = chosenIDs(added, byID('add-error'), fieldOptions);
  if (!ids) return;
  try {
    tellResults(await call.invite(ids), nameFor);
    byID('people-dialog').close();
  } catch (error) {
    setText(byID('add-error'), wordsForError(error));
  }
});
byID('add-form').addEventListener('submit', (event) => {
  event.preventDefault();
  invite();
});

const phases = {
  ringing: 'Ringing…',
  joined: 'In the call',
  left: 'Left',
  declined: 'Declined',
  missed: 'Did not answer',
  cancelled: 'No longer rung',
  disconnected: 'Connection lost',
};

function showMembers() {
  const rows = [...call.members.values()].map((member) => {
    const isOwn = member.user === conclave.user;
    const text = element('div', { className: 'row-text' });
    text.append(
      element('span', { textContent: isOwn ? `${nameOf(member)} (you)` : nameOf(member) }),
      element('span', { className: 'row-sub', textContent: phases[member.state] }),
    );
    const row = element('li', {}, avatar(nameOf(member)), text);
    row.dataset.user = member.user;
    row.dataset.state = member.state;
    const canRing = ['left', 'declined', 'missed', 'cancelled'].includes(member.state) && call.mayInvite && !isOwn;
    if (canRing || (member.state === 'ringing' && call.isInitiator)) {
      const label = canRing ? 'Ring again' : 'Stop ringing';
      const button = element('button', { type: 'button', className: 'secondary', textContent: label });
      button.setAttribute('aria-label', `${label}: ${nameOf(member)}`);
      const act = async () => (canRing ? tellResults(await call.invite([member.user]), nameFor) : call.cancel(member.user));
      button.addEventListener('click', busy(button, () => act().catch((error) => notice(wordsForError(error)))));
      row.append(button);
    }
    return row;
  });
  const list = byID('member-list');
  const focused = list.contains(document.activeElement);
  list.replaceChildren(...rows);
  if (focused) byID('people-dialog-title').focus();
}

byID('show-code').addEventListener('click', () => {
  showCode();
  byID('code-dialog').showModal();
});

function showCode() {
  const groups = call.code.match(/.{5}/g) ?? ['The code appears once you are connected.'];
  const code = byID('call-code');
  if (code.dataset.code === call.code) return;
  code.dataset.code = call.code;
  code.replaceChildren(...groups.map((group) => element('span', { textContent: group })));
  byID('device-list').replaceChildren(
    ...call.devices.map(({ user, fingerprint }) => {
      const text = element('div', { className: 'row-text' });
      const name = user === conclave.user ? `${nameFor(user)} (you)` : nameFor(user);
      const readableFingerprint = readable(fromBase64(fingerprint));
      text.append(
        element('span', { textContent: name }),
        element('span', { className: 'row-sub', textContent: readableFingerprint }),
      );
      return element('li', {}, avatar(nameFor(user)), text);
    }),
  );
}
