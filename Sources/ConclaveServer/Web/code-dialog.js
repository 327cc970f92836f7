// The call code, and every device that is on the list of the keys in use: none can listen without being shown here.

import { busy, byID, element, setText } from './dom.js';
import { deviceRow, replaceRows, rowButton } from './dialogs.js';
import { nameFor } from './names.js';
import { notice, wordsForError } from './notices.js';

const problems = {
  'changed-key': 'Its key has changed: it neither hears nor sees you',
  'unknown-keys': 'It could not be verified: it gets no keys from you',
  'bad-join-key': 'It could not be verified: it gets no keys from you',
  unverified: 'Not verified: you send nothing while it is here',
};

let call;

export function openCode(shown) {
  call = shown;
  showCode(shown);
  byID('code-dialog').showModal();
}

export function showCode(shown) {
  if (shown !== call) return;
  const groups = call.code.match(/.{5}/g) ?? ['The code appears once you are connected.'];
  const code = byID('call-code');
  if (code.dataset.code !== call.code) {
    if (byID('code-dialog').open && code.dataset.code) notice('The call code has changed');
    code.dataset.code = call.code;
    code.replaceChildren(...groups.map((group) => element('span', { textContent: group })));
  }
  const others = call.devices.filter(({ user, device }) => !(user === call.user && device === call.device));
  const areVerified = others.length > 0 && others.every(({ isVerified }) => isVerified);
  setText(byID('verify'), areVerified ? 'These devices are verified' : 'We have the same code');
  byID('verify').disabled = areVerified || others.length === 0;
  replaceRows(byID('device-list'), call.devices.map(rowOf), byID('code-title'));
}

function rowOf({ user, device, fingerprint, problem, isVerified }) {
  const isOwn = user === call.user;
  const isThis = isOwn && device === call.device;
  const name = `${nameFor(user)}${isThis ? ' (you)' : isOwn ? ' (another device of yours)' : ''}`;
  const made = deviceRow(nameFor(user), name, isVerified ? `${device} · verified ✓` : device, fingerprint);
  Object.assign(made.dataset, { user, device, problem: problem ?? '' });
  if (!problem) return made;
  made.querySelector('.row-text').append(element('span', { className: 'problem', textContent: problems[problem] }));
  if (problem === 'changed-key') made.append(rowButton('Trust', `the new key of ${nameFor(user)}`, () => call.trust(user, device)));
  return made;
}

byID('verify').addEventListener('click', async () => {
  const done = busy(byID('verify'), () => call.verify());
  try {
    await done();
    notice('The devices in this call are verified');
  } catch (error) {
    notice(wordsForError(error));
  }
  showCode(call);
});
