// The call code, as words if the page's language has a list of them, and every device on the list of the keys in use: none can listen without being shown here.
// The devices of one person at a time are verified, as they were shown when the dialog opened.

import { wordsForAdmission } from './admission-words.js';
import { wordList, wordsOf } from './code-words.js';
import { REST_MS, avatar, byID, element, icon, nameOf, rest, setText } from './dom.js';
import { deviceRow, replaceRows, row, rowButton } from './dialogs.js';
import { isFirstContact, labelFor, nameFor, namesakeOf } from './names.js';
import { clearWarnings, notice, warn } from './notices.js';
import { hasText, listNames, t } from './texts.js';

const PROBLEMS = ['changed-key', 'unverified', 'revoked']; // others: the device could not be verified

let conclave;
let call;
let shown; // what the person is looking at: {code, key, devices}
let seen; // the key of the call when it was last examined
let changedAt = 0;
let list; // of words; undefined while it is loaded, and if there is none
let isLoading = true;

export function openCode(opened, connection) {
  call = opened;
  conclave = connection;
  renew();
  byID('code-dialog').showModal();
  if (isLoading) loadList();
}

/** Once: until then the code is not shown, so that nobody begins to read digits that turn into words. */
async function loadList() {
  list = await wordList();
  isLoading = false;
  drawCode();
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
  drawCode();
  const people = grouped(devices);
  const othersFirst = [...people].sort(([a], [b]) => Number(a === call.user) - Number(b === call.user));
  replaceRows(byID('person-list'), othersFirst.map(([user, theirs]) => personOf(user, theirs)), byID('code-title'));
  if (performance.now() - changedAt < REST_MS) for (const button of byID('person-list').querySelectorAll('button')) rest(button);
  replaceRows(byID('fingerprint-list'), devices.map(fingerprintOf), byID('code-title'));
  showConfirmation();
}

const spansOf = (texts) => texts.map((text) => element('span', { textContent: text }));

/** Shows the words, with their digits under *Details*; or the digits. */
function drawCode() {
  const { code } = shown;
  const place = byID('call-code');
  const form = !code ? 'none' : isLoading ? 'loading' : list ? 'words' : 'digits';
  if (place.dataset.code === code && place.dataset.form === form) return;
  Object.assign(place.dataset, { code, form });
  const digits = spansOf(code.match(/.{5}/g) ?? []);
  if (form === 'words') place.replaceChildren(...wordsOf(code, list).map((words) => element('span', { className: 'code-line' }, ...words.flatMap((word) => [...spansOf([word]), ' ']))));
  else place.replaceChildren(...(form === 'digits' ? digits : form === 'none' ? spansOf([t('code.none')]) : []));
  setText(byID('code-text'), isLoading ? '' : t(list ? 'code.words' : 'code.text'));
  byID('code-digits-help').hidden = form !== 'digits';
  byID('code-digits-part').hidden = form !== 'words';
  byID('code-digits').replaceChildren(...(form === 'words' ? digits : []));
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
  text.append(element('span', { className: 'row-sub', textContent: count }));
  if (areVerified) text.append(element('span', { className: 'shield' }, icon('shield'), element('span', { textContent: t('code.verified') })));
  const head = element('div', { className: 'person-head' }, avatar(nameFor(user), user), text);
  if (others.length > 0 && !areVerified) {
    const about = isOwn ? t('code.own-devices') : labelFor(user);
    const match = rowButton(t('code.match'), about, () => verify(user, others), 'primary');
    head.append(element('div', { className: 'row-actions' }, match, rowButton(t('code.differ'), about, async () => tellDifference(user, about))));
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
  const { user, device, fingerprint, problem, level, participant } = listed;
  const name = deviceNameOf(listed);
  const title = isThis(listed) ? t('own.this', { name }) : name;
  // The server reports the name: the id stays in sight.
  const state = [name === device ? '' : device, participant === 0 ? t('code.rings') : '', hasText(`code.${level}`) ? t(`code.${level}`) : ''].filter(Boolean).join(' · ');
  // A changed key is compared with what the other device shows; the others are under *Details*.
  const made = problem === 'changed-key' ? deviceRow('', title, state, fingerprint) : row('', title, state);
  Object.assign(made.dataset, { user, device, level: level ?? '', problem: problem ?? '' });
  if (!problem) return made;
  made.querySelector('.row-text').append(element('span', { className: 'problem', textContent: t(`code.${PROBLEMS.includes(problem) ? problem : 'unknown-keys'}`) }));
  if (problem === 'changed-key') made.append(rowButton(t('code.trust'), t('code.new-key', { name: labelFor(user) }), () => conclave.trust(user, device, fingerprint)));
  return made;
}

/** For those who look closely: the fingerprint of a device, and whether the device has confirmed the key. */
function fingerprintOf(listed) {
  const { user, fingerprint, isConfirmed } = listed;
  return deviceRow('', `${user === call.user ? nameFor(user) : labelFor(user)}: ${deviceNameOf(listed)}`, isConfirmed ? t('code.key-confirmed') : '', fingerprint);
}

/** `about` says whose code it is. The warning lasts: what to do next is beyond this page. */
function tellDifference(user, about) {
  const [opened, connection] = [call, conclave];
  byID('code-dialog').close();
  const again = { label: t('key.compare'), run: () => openCode(opened, connection), isRepeatable: true };
  warn(differenceOf(user), t('code.differs', { name: about }), { action: again, isOfCall: true });
}

const differenceOf = (user) => `code-differs/${user}`;

async function verify(user, devices) {
  const verified = await conclave.verify(devices.map(({ device, fingerprint }) => ({ user, device, fingerprint })));
  const isAll = verified.length === devices.length;
  if (isAll) clearWarnings((key) => key === differenceOf(user));
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
