// The call code, and every device on the list of the keys in use: none can listen without being shown here. The devices of one person at a time are verified,
// as they were shown when the dialog opened.

import { wordsForAdmission } from './admission-words.js';
import { REST_MS, avatar, byID, element, nameOf, rest, setText } from './dom.js';
import { deviceRow, replaceRows, rowButton } from './dialogs.js';
import { isFirstContact, labelFor, nameFor, namesakeOf } from './names.js';
import { notice } from './notices.js';
import { hasText, listNames, t } from './texts.js';

const PROBLEMS = ['changed-key', 'unverified', 'revoked']; // others: the device could not be verified

let conclave;
let call;
let shown; // what the person is looking at: {code, key, devices}
let seen; // the key of the call when it was last examined
let changedAt = 0;

export function openCode(opened, connection) {
  call = opened;
  conclave = connection;
  renew();
  byID('code-dialog').showModal();
}

/** The call has changed. The code that is being compared stays until the person requests the new one. */
export function showCode(changed) {
  if (changed !== call) return;
  const key = keyOf(call);
  if (!shown.code || key === shown.key) return renew();
  byID('code-changed').hidden = false;
  // A call changes several times a second in other ways: only another key disables the buttons for a moment again.
  if (key !== seen) {
    changedAt = performance.now();
    for (const button of byID('person-list').querySelectorAll('button')) rest(button);
  }
  seen = key;
  return showConfirmation();
}

const keyOf = ({ code, devices }) =>
  JSON.stringify([code, ...devices.map(({ user, device, participant, fingerprint }) => [user, device, participant, fingerprint])]);

/** Shows the call as it is now. */
function renew() {
  const { code, devices } = call;
  const key = keyOf(call);
  if (shown?.key !== key) changedAt = performance.now();
  shown = { code, key, devices };
  seen = key;
  byID('code-changed').hidden = true;
  const groups = code.match(/.{5}/g) ?? [t('code.none')];
  if (byID('call-code').dataset.code !== code) {
    byID('call-code').dataset.code = code;
    byID('call-code').replaceChildren(...groups.map((group) => element('span', { textContent: group })));
  }
  const people = grouped(devices);
  const othersFirst = [...people].sort(([a], [b]) => Number(a === call.user) - Number(b === call.user));
  replaceRows(byID('person-list'), othersFirst.map(([user, theirs]) => personOf(user, theirs)), byID('code-title'));
  if (performance.now() - changedAt < REST_MS) for (const button of byID('person-list').querySelectorAll('button')) rest(button);
  showConfirmation();
}

function grouped(devices) {
  const people = new Map();
  for (const device of devices) people.set(device.user, [...(people.get(device.user) ?? []), device]);
  return people;
}

/** The name that the server reports for a device, else its id. */
const deviceNameOf = ({ user, device }) => nameOf({ user: device, name: conclave.deviceName(user, device) });

const isThis = ({ user, device }) => user === call.user && device === call.device;

/** One person with the devices on the list. A device that only rings has not been asked for anything yet, so the code does not verify it. */
function personOf(user, devices) {
  const isOwn = user === call.user;
  const name = isOwn ? t('members.you', { name: nameFor(user) }) : labelFor(user);
  const count = t('code.device-count', { count: devices.length });
  const others = devices.filter((device) => !isThis(device) && device.participant > 0);
  const areVerified = others.length > 0 && others.every(({ level, problem }) => level === 'verified' && problem !== 'changed-key');
  const text = element('div', { className: 'row-text' }, element('span', { textContent: name }));
  text.append(element('span', { className: 'row-sub', textContent: areVerified ? `${count} · ${t('code.verified')}` : count }));
  const head = element('div', { className: 'person-head' }, avatar(nameFor(user)), text);
  if (others.length > 0 && !areVerified) {
    head.append(rowButton(t('code.verify'), isOwn ? t('code.own-devices') : labelFor(user), () => verify(user, others)));
  }
  const other = namesakeOf(user);
  const doubt = other && !isOwn ? t('code.namesake', { other }) : isFirstContact(user) ? t('code.first-contact') : '';
  if (doubt) text.append(element('span', { className: other ? 'problem' : 'row-sub', textContent: doubt }));
  const admission = devices.some(({ isUninvited }) => isUninvited) ? t('admission.nobody') : wordsForAdmission(devices.find((device) => device.admission)?.admission);
  if (admission) text.append(element('span', { className: 'row-sub admission', textContent: admission }));
  const made = element('li', {}, head, element('ul', { className: 'rows devices' }, ...devices.map(rowOf)));
  Object.assign(made.dataset, { user, count: devices.length });
  return made;
}

function rowOf(listed) {
  const { user, device, fingerprint, problem, level, participant, isConfirmed } = listed;
  const name = deviceNameOf(listed);
  const title = isThis(listed) ? t('own.this', { name }) : name;
  // The server reports the name: the id stays in sight.
  const state = [name === device ? '' : device, participant === 0 ? t('code.rings') : '', hasText(`code.${level}`) ? t(`code.${level}`) : '', isConfirmed ? t('code.key-confirmed') : ''].filter(Boolean).join(' · ');
  const made = deviceRow('', title, state, fingerprint);
  Object.assign(made.dataset, { user, device, level: level ?? '', problem: problem ?? '' });
  if (!problem) return made;
  made.querySelector('.row-text').append(element('span', { className: 'problem', textContent: t(`code.${PROBLEMS.includes(problem) ? problem : 'unknown-keys'}`) }));
  if (problem === 'changed-key') made.append(rowButton(t('code.trust'), t('code.new-key', { name: labelFor(user) }), () => conclave.trust(user, device, fingerprint)));
  return made;
}

async function verify(user, devices) {
  const verified = await conclave.verify(devices.map(({ device, fingerprint }) => ({ user, device, fingerprint })));
  const isAll = verified.length === devices.length;
  notice(t(isAll ? 'code.is-verified' : 'code.not-all-verified', { name: labelFor(user) }));
  showCode(call);
}

/** Shows which devices have confirmed that they have this key for this list. */
function showConfirmation() {
  const { state, missing } = call.confirmation;
  const names = missing.map((entry) => `${labelFor(entry.user)} (${deviceNameOf(entry)})`);
  const isMissing = state === 'not-confirmed' && names.length > 0;
  byID('confirmation').dataset.state = state;
  setText(byID('confirmation'), isMissing ? t('code.missing', { names: listNames(names) }) : t(`code.${state}`));
}

byID('code-renew').addEventListener('click', () => {
  renew();
  byID('code-title').focus();
});
