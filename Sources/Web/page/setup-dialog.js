// Camera and sound: which devices are used, before and during a call, and how its controls work.

import { byID } from './dom.js';
import { preview } from './preview.js';
import { beginVideoFirst } from './video-first.js';

let conclave;
let followed; // the call whose devices are shown

export function beginSetup(connection) {
  conclave = connection;
  preview.use(conclave.capture);
  beginVideoFirst(conclave.capture);
  conclave.addEventListener('calls', () => byID('setup-dialog').open && conclave.current !== followed && show());
}

export function openSetup() {
  byID('setup-dialog').showModal();
  return show();
}

function show() {
  followed = conclave.current;
  return preview.show(byID('setup-preview'), { call: followed, isWhole: true });
}

byID('setup-dialog').addEventListener('close', () => preview.leave(byID('setup-preview')));
