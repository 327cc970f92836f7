// Pairing two devices of this user, as the person sees it: one shows six digits, which are typed on the other (`pairing.js`).

import { busy, byID, setText } from './dom.js';
import { notice, wordsForError } from './notices.js';
import { qrCode } from './qr.js';
import { t } from './texts.js';

const TICK_MS = 1_000;

let own;
let other; // the device of the pressed row
const names = new Map();
let timer;
let paired;

/** `connection` is the library. It has other `ownDevices` after somebody else signs in. */
export function beginPairing(connection, { changed }) {
  paired = changed;
  connection.addEventListener('identity', () => {
    own = connection.ownDevices;
    own.addEventListener('change', () => show());
    own.addEventListener('asked', ({ detail }) => asked(detail));
  });
}

/** Opens the dialog about `device`, `{device, name}`. */
export function openPairing(device) {
  other = device;
  names.set(device.device, device.name ? `${device.name} (${device.device})` : device.device);
  byID('pair-digits').value = '';
  byID('pair-other-text').value = '';
  byID('pair-own-text').value = own.text;
  byID('pair-qr').replaceChildren(qrCode(own.text, t('pair.qr')));
  byID('pair-more').open = false;
  setText(byID('pair-error'), '');
  show();
  if (!byID('pair-dialog').open) byID('pair-dialog').showModal();
  clearInterval(timer);
  timer = setInterval(() => own.tick(), TICK_MS);
}

/** The name by which the person recognises a device. */
function nameOf(device) {
  return names.get(device) || device;
}

function asked(device) {
  if (byID('pair-dialog').open && other?.device === device) return;
  notice(t('pair.asked', { name: nameOf(device) }));
}

const wordsOf = ({ state, reason, peer }) => t(`pair.${state === 'failed' ? reason : state}`, { name: nameOf(peer ?? other.device) });

function show() {
  if (!other) return;
  const { pairing } = own;
  const { state } = pairing;
  setText(byID('pair-text'), wordsOf(pairing));
  setText(byID('pair-code'), pairing.code ? `${pairing.code.slice(0, 3)} ${pairing.code.slice(3)}` : '');
  byID('pair-code').hidden = !pairing.code;
  const wasTyping = !byID('pair-form').hidden;
  byID('pair-form').hidden = state !== 'typing';
  if (state === 'typing' && !wasTyping) byID('pair-digits').focus();
  for (const id of ['pair-show', 'pair-type']) byID(id).hidden = state !== 'idle';
  byID('pair-yes').hidden = state !== 'asking';
  byID('pair-again').hidden = state !== 'failed';
  byID('pair-more').hidden = !['idle', 'waiting', 'failed'].includes(state);
  setText(byID('pair-cancel'), t(state === 'confirmed' ? 'pair.done' : 'cancel'));
  byID('pair-dialog').dataset.state = state;
}

/** Starts again, if the previous session is over. */
function restart() {
  setText(byID('pair-error'), '');
  own.renew();
}

function onPress(id, action) {
  byID(id).addEventListener('click', busy(byID(id), () => action().catch((error) => setText(byID('pair-error'), wordsForError(error)))));
}

onPress('pair-show', async () => {
  await own.show(other.device);
  if (own.pairing.state === 'idle') setText(byID('pair-error'), t('pair.too-often'));
});
onPress('pair-type', async () => {
  await own.type();
  if (own.pairing.state === 'idle') setText(byID('pair-error'), t('pair.too-often'));
});
onPress('pair-yes', async () => {
  if (await own.confirm()) paired();
});
onPress('pair-again', async () => restart());
byID('pair-cancel').addEventListener('click', () => byID('pair-dialog').close());

byID('pair-dialog').addEventListener('close', () => {
  clearInterval(timer);
  own.cancel();
  own.renew();
  other = undefined;
});

byID('pair-form').addEventListener('submit', async (event) => {
  event.preventDefault();
  const digits = byID('pair-digits').value.replaceAll(/\s/g, '');
  setText(byID('pair-error'), '');
  try {
    if (await own.enter(digits)) paired();
    else if (own.pairing.state === 'typing') setText(byID('pair-error'), t('pair.wrong-digits'));
  } catch (error) {
    setText(byID('pair-error'), wordsForError(error));
  }
  byID('pair-digits').value = '';
});

byID('pair-paste-form').addEventListener('submit', async (event) => {
  event.preventDefault();
  setText(byID('pair-error'), '');
  try {
    const found = await own.confirmText(byID('pair-other-text').value);
    if (!found) return setText(byID('pair-error'), t('pair.wrong-text'));
    byID('pair-dialog').close();
    notice(t('pair.is-paired', { name: found.name || found.device }));
    paired();
  } catch (error) {
    setText(byID('pair-error'), wordsForError(error));
  }
  return undefined;
});
