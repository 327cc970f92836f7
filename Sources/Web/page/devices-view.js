// This user's own devices, and whether to send only to verified devices of others.

import { byID, element, setText } from './dom.js';
import { deviceRow, replaceRows, rowButton } from './dialogs.js';
import { notice, wordsForError } from './notices.js';
import { beginPairing, openPairing } from './pair-dialog.js';
import { saveDeviceName, saveSetting, savedSetting } from './session.js';
import { daysAgo, locale, t } from './texts.js';

const texts = { verified: 'own.paired', vouched: 'own.vouched', revoked: 'own.revoked' };

let conclave;
let removed; // undefined: all except this device

export function beginDevices(connection) {
  conclave = connection;
  conclave.verifiedOnly = savedSetting('verified-only') ?? false;
  byID('verified-only').checked = conclave.verifiedOnly;
  beginPairing(connection, { changed: () => showAgain() });
}

async function show() {
  const devices = await conclave.ownDevices.list();
  replaceRows(byID('own-device-list'), devices.map(rowOf), byID('own-devices-title'));
  byID('remove-others').hidden = devices.length < 3; // a single other device has its own button
}

const showAgain = () => show().catch((error) => notice(wordsForError(error)));

function rowOf(own) {
  const { device, name, fingerprint, registeredAt, seenDay, level, problem, isThis } = own;
  const since = new Date(registeredAt).toLocaleDateString(locale, { dateStyle: 'medium' });
  const title = isThis ? t('own.this', { name: name || device }) : name || device;
  const facts = [device, t('own.since', { date: since })];
  if (!isThis && Number.isFinite(seenDay)) facts.push(t('own.seen', { when: daysAgo(seenDay) }));
  const made = deviceRow(name || device, title, facts.join(' · '), fingerprint);
  Object.assign(made.dataset, { device, level: isThis ? 'this' : level });
  if (isThis) {
    made.append(rowButton(t('own.rename'), title, async () => askName(name)));
    return made;
  }
  const state = t(problem === 'changed-key' ? 'own.changed-key' : (texts[level] ?? 'own.unpaired'));
  const className = texts[level] && level !== 'revoked' ? 'row-sub' : 'problem';
  made.querySelector('.row-text').append(element('span', { className, textContent: state }));
  const buttons = element('div', { className: 'row-actions' });
  const about = name ? `${name} ${device}` : device;
  if (level !== 'revoked' && level !== 'verified') buttons.append(rowButton(t('own.pair'), about, async () => openPairing(own)));
  buttons.append(rowButton(t('own.remove'), about, async () => askRemoval(own), 'quiet'));
  made.append(buttons);
  return made;
}

byID('show-devices').addEventListener('click', async () => {
  byID('devices-dialog').showModal();
  await showAgain();
});

function askName(name) {
  byID('device-name').value = name ?? '';
  setText(byID('rename-error'), '');
  byID('rename-dialog').showModal();
  byID('device-name').select();
}

byID('rename-form').addEventListener('submit', async (event) => {
  event.preventDefault();
  const name = byID('device-name').value.trim();
  if (!name) return byID('device-name').focus();
  try {
    await conclave.rename(name);
    saveDeviceName(conclave.identity.device, name);
    byID('rename-dialog').close();
    await showAgain();
  } catch (error) {
    setText(byID('rename-error'), wordsForError(error));
  }
  return undefined;
});

/** Without `own`: of all devices except this one. */
function askRemoval(own) {
  removed = own;
  setText(byID('remove-title'), own ? t('own.remove-title', { name: own.name || own.device }) : t('own.remove-others-title'));
  setText(byID('remove-text'), t(own ? 'own.remove-text' : 'own.remove-others-text'));
  setText(byID('remove-confirm'), t(own ? 'own.remove-confirm' : 'own.remove-others'));
  byID('remove-dialog').showModal();
}

byID('remove-others').addEventListener('click', () => askRemoval(undefined));

byID('remove-confirm').addEventListener('click', async () => {
  byID('remove-dialog').close();
  try {
    if (removed) await conclave.ownDevices.remove(removed);
    else await conclave.ownDevices.removeOthers();
    notice(removed ? t('own.is-removed', { name: removed.name || removed.device }) : t('own.others-removed'));
  } catch (error) {
    notice(wordsForError(error));
  }
  await showAgain();
});

byID('verified-only').addEventListener('change', () => {
  const { checked } = byID('verified-only');
  conclave.verifiedOnly = checked;
  saveSetting('verified-only', checked);
});
