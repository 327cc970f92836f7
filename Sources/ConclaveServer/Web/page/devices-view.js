// This user's own devices, and whether only verified ones of others are talked to.

import { byID, element, setText } from './dom.js';
import { deviceRow, replaceRows, rowButton } from './dialogs.js';
import { notice, wordsForError } from './notices.js';
import { beginPairing, openPairing } from './pair-dialog.js';
import { saveSetting, savedSetting } from './session.js';

const words = {
  verified: 'paired with this device ✓',
  vouched: 'paired with another device of yours ✓',
  revoked: 'removed for good',
};

let conclave;
let removed;

export function beginDevices(connection) {
  conclave = connection;
  conclave.verifiedOnly = savedSetting('verified-only') ?? false;
  byID('verified-only').checked = conclave.verifiedOnly;
  beginPairing(connection, { changed: () => showAgain() });
}

async function show() {
  const devices = await conclave.ownDevices.list();
  replaceRows(byID('own-device-list'), devices.map(rowOf), byID('own-devices-title'));
}

const showAgain = () => show().catch((error) => notice(wordsForError(error)));

function rowOf(own) {
  const { device, name, fingerprint, registeredAt, level, problem, isThis } = own;
  const since = new Date(registeredAt).toLocaleDateString([], { dateStyle: 'medium' });
  const title = `${name || device}${isThis ? ' (this device)' : ''}`;
  const made = deviceRow(name || device, title, `${device} · since ${since}`, fingerprint);
  Object.assign(made.dataset, { device, level: isThis ? 'this' : level });
  if (isThis) return made;
  const state = problem === 'changed-key' ? 'its key has changed: pair it again' : (words[level] ?? 'not paired yet');
  const className = words[level] && level !== 'revoked' ? 'row-sub' : 'problem';
  made.querySelector('.row-text').append(element('span', { className, textContent: state }));
  const buttons = element('div', { className: 'row-actions' });
  const about = `${name || 'device'} ${device}`;
  if (level !== 'revoked' && level !== 'verified') buttons.append(rowButton('Pair', about, async () => openPairing(own)));
  buttons.append(rowButton('Remove', about, async () => askRemoval(own), 'quiet'));
  made.append(buttons);
  return made;
}

byID('show-devices').addEventListener('click', async () => {
  byID('devices-dialog').showModal();
  await showAgain();
});

function askRemoval(own) {
  removed = own;
  setText(byID('remove-title'), `Remove ${own.name || own.device}?`);
  byID('remove-dialog').showModal();
}

byID('remove-confirm').addEventListener('click', async () => {
  byID('remove-dialog').close();
  try {
    await conclave.ownDevices.remove(removed);
    notice(`${removed.name || removed.device} is removed`);
    await show();
  } catch (error) {
    notice(wordsForError(error));
  }
});

byID('verified-only').addEventListener('change', () => {
  const { checked } = byID('verified-only');
  conclave.verifiedOnly = checked;
  saveSetting('verified-only', checked);
});
