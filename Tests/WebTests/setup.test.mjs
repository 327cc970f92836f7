// The dialog for camera and sound, the choices that the browser remembers, and the wake lock.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { page } from './fake-page.mjs';
import { load, loadPage } from './web.mjs';

const stored = new Map();
globalThis.sessionStorage ??= {};
Object.defineProperty(globalThis, 'localStorage', {
  value: { getItem: (key) => stored.get(key) ?? null, setItem: (key, value) => void stored.set(key, value) },
  configurable: true,
});
globalThis.HTMLMediaElement ??= class {};
globalThis.MediaStream ??= class {
  constructor(tracks) {
    this.tracks = tracks;
  }
};
const byID = page();
const { Capture } = await load('capture.js');
const { beginSetup, openSetup } = await loadPage('setup-dialog.js');
const { keepAwake } = await loadPage('wake-lock.js');

const settled = async () => {
  for (let turn = 0; turn < 20; turn += 1) await undefined;
};

/** The part of `Conclave` that the dialog needs. */
const connectionWith = (call) => Object.assign(new EventTarget(), { current: call, capture: Object.assign(new Capture(), { inputs: async () => [] }) });

/** A call whose devices are in `open`, by source. */
const callWith = (open) => Object.assign(new EventTarget(), { local: (source) => ({ isOn: Boolean(open[source]), track: open[source] }) });

test('a chosen camera is remembered, the side of a phone’s camera is not', () => {
  const connection = connectionWith();
  beginSetup(connection);
  connection.capture.flip();
  connection.capture.choose({ microphone: 'm2', hasBlur: true });
  const next = connectionWith();
  beginSetup(next);
  assert.deepEqual(next.capture.choice, { camera: '', microphone: 'm2', speaker: '', facing: 'user', hasBlur: true, isVideoFirst: false });
});

test('in a call the preview follows the call’s open devices until the dialog is closed', async () => {
  const open = { camera: { label: 'c1' }, microphone: { label: 'm1' } };
  const call = callWith(open);
  beginSetup(connectionWith(call));
  await openSetup();
  const pictured = () => byID('setup-video').srcObject?.tracks[0];
  assert.deepEqual([pictured(), byID('setup-off').hidden], [open.camera, true]);
  const change = async (camera) => {
    open.camera = camera;
    call.dispatchEvent(new Event('change'));
    await settled();
  };
  await change(undefined);
  assert.deepEqual([pictured(), byID('setup-off').hidden], [undefined, false]);
  await change({ label: 'c2' });
  assert.deepEqual([pictured(), byID('setup-off').hidden], [open.camera, true]);
  byID('setup-dialog').listeners.close();
  await change({ label: 'c3' });
  assert.equal(pictured(), undefined);
});

test('two requests to stay awake before the browser has answered take one lock, and none is left over', async (t) => {
  const before = Object.getOwnPropertyDescriptor(globalThis, 'navigator');
  t.after(() => before && Object.defineProperty(globalThis, 'navigator', before));
  let held = 0;
  let asked = 0;
  const answers = [];
  const request = async () => {
    asked += 1;
    await new Promise((resolve) => answers.push(resolve));
    held += 1;
    const lock = { released: false, release: async () => void ((lock.released = true), (held -= 1)) };
    return lock;
  };
  Object.defineProperty(globalThis, 'navigator', { value: { wakeLock: { request } }, configurable: true });
  const answer = async () => {
    answers.shift()();
    await settled();
  };
  keepAwake(true);
  keepAwake(true);
  await answer();
  assert.deepEqual([asked, held], [1, 1]);
  keepAwake(false);
  await settled();
  assert.equal(held, 0);
  keepAwake(true);
  keepAwake(false);
  await answer();
  assert.equal(held, 0, 'no longer wanted when it came');
});
