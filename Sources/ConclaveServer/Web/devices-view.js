// This user's own devices, and whether only verified ones of others are talked to.

import { byID } from './dom.js';
import { deviceRow, replaceRows, rowButton } from './dialogs.js';
import { notice, wordsForError } from './notices.js';
import { saveSetting, savedSetting } from './session.js';

let conclave;

export function beginDevices(connection) {
  conclave = connection;
  conclave.verifiedOnly = savedSetting('verified-only') ?? false;
  byID('verified-only').checked = conclave.verifiedOnly;
}

async function show() {
  const isOwn = ({ device }) => device === conclave.identity.device;
  const devices = (await conclave.devices()).sort((a, b) => isOwn(b) - isOwn(a)); // this one first
  const rows = devices.map(({ device, name, fingerprint, registeredAt }) => {
    const isThis = isOwn({ device });
    const since = new Date(registeredAt).toLocaleDateString([], { dateStyle: 'medium' });
    const title = `${name || device}${isThis ? ' (this device)' : ''}`;
    const made = deviceRow(name || device, title, `${device} · since ${since}`, fingerprint);
    made.dataset.device = device;
    const remove = async () => {
      await conclave.removeDevice(device);
      notice(`${name || device} is removed`);
      await show();
    };
    if (!isThis) made.append(rowButton('Remove', `${name || 'device'} ${device}`, remove));
    return made;
  });
  replaceRows(byID('own-device-list'), rows, byID('own-devices-title'));
}

byID('show-devices').addEventListener('click', async () => {
  byID('devices-dialog').showModal();
  await show().catch((error) => notice(wordsForError(error)));
});

byID('verified-only').addEventListener('change', ({ target }) => {
  conclave.verifiedOnly = target.checked;
  saveSetting('verified-only', target.checked);
});
