// The preview of one's own picture before joining, and what is asked of the browser for it.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { page } from './fake-page.mjs';
import { loadPage } from './web.mjs';

globalThis.HTMLMediaElement ??= class {};
globalThis.MediaStream ??= class {
  constructor(tracks) {
    this.tracks = tracks;
  }
};
const permissions = {};
const asked = {
  async query({ name }) {
    if (permissions[name] === undefined) throw new TypeError(name);
    return Object.assign(new EventTarget(), { state: permissions[name] });
  },
};
Object.defineProperty(globalThis, 'navigator', { value: { permissions: asked, userAgent: '' }, configurable: true });
const byID = page();
const Element = byID('preview').constructor;
const { append, querySelector } = Element.prototype;
Element.prototype.append = function (...children) {
  append.apply(this, children);
  for (const child of children) child.parentElement = this;
};
Element.prototype.querySelector = function (selector) {
  return querySelector.call(this, selector) ?? (this.parts ??= {}, (this.parts[selector] ??= document.createElement(selector)));
};
Element.prototype.getAttribute = function (name) {
  return this[name];
};
Element.prototype.close = function () {
  this.open = false;
};
const { preview } = await loadPage('preview.js');
const { browserOf, permissionOf } = await loadPage('permissions.js');
const { t } = await loadPage('texts.js');

const settled = async () => {
  for (let turn = 0; turn < 40; turn += 1) await undefined;
};

/** A capture that opens all sources except those in `fails`, which has an error's name by source; `open` has the sources of its tracks. */
function captureWith(fails = {}) {
  const capture = Object.assign(new EventTarget(), {
    choice: { camera: '', microphone: '', speaker: '', facing: 'user', hasBlur: false }, asked: [], open_: new Set(),
    choose: () => {},
    inputs: async () => [],
    async open(source) {
      capture.asked.push(source);
      if (fails[source]) throw Object.assign(new Error(), { name: fails[source] });
      const track = { source, stop: () => capture.open_.delete(track) };
      capture.open_.add(track);
      return track;
    },
  });
  preview.use(capture);
  return { capture, open: () => [...capture.open_].map(({ source }) => source).sort() };
}

test('a permission is explained before the browser asks, and the browser asks only after a press', async (t_) => {
  t_.after(() => preview.leave(byID('guest-preview')));
  Object.assign(permissions, { camera: 'prompt', microphone: 'prompt' });
  const { capture, open } = captureWith();
  await preview.show(byID('guest-preview'), { switches: ['microphone', 'camera'] });
  assert.deepEqual([capture.asked, byID('preview-ask').hidden, byID('setup-off').hidden], [[], false, false]);
  byID('preview-allow').click();
  await settled();
  assert.deepEqual([open(), byID('preview-ask').hidden, byID('setup-off').hidden], [['camera', 'microphone'], true, true]);
  await preview.leave(byID('guest-preview'));
  assert.deepEqual(open(), [], 'nothing stays open');
});

test('an allowed device is shown at once, and for a denied one the page says how to allow it', async (t_) => {
  t_.after(() => preview.leave(byID('invited-preview')));
  Object.assign(permissions, { camera: 'denied', microphone: 'granted' });
  const fails = { camera: 'NotAllowedError' };
  const { capture, open } = captureWith(fails);
  await preview.show(byID('invited-preview'), { switches: ['microphone', 'camera'] });
  assert.deepEqual([open(), byID('setup-problem').textContent, byID('preview-how').hidden], [['microphone'], t('camera.NotAllowedError'), false]);
  byID('preview-how').click();
  assert.deepEqual([byID('permission-dialog').open, byID('permission-steps').textContent], [true, t('permission.other')]);
  delete fails.camera;
  capture.asked.length = 0;
  byID('permission-again').onclick();
  await settled();
  assert.deepEqual([open(), byID('setup-problem').textContent, byID('preview-how').hidden, byID('permission-dialog').open], [['camera', 'microphone'], '', true, false]);
});

test('a missing camera is reported, without steps for the browser', async (t_) => {
  t_.after(() => preview.leave(byID('invited-preview')));
  Object.assign(permissions, { camera: 'granted', microphone: 'granted' });
  captureWith({ camera: 'NotFoundError' });
  await preview.show(byID('invited-preview'));
  assert.deepEqual([byID('setup-problem').textContent, byID('preview-how').hidden], [t('camera.NotFoundError'), true]);
});

test('a source that is switched off is closed, stays off for the join, and is on again in the next preview', async (t_) => {
  t_.after(() => preview.leave(byID('guest-preview')));
  Object.assign(permissions, { camera: 'granted', microphone: 'granted' });
  const { capture, open } = captureWith();
  const show = () => preview.show(byID('guest-preview'), { switches: ['microphone', 'camera'] });
  await show();
  for (const isOn of [false, true]) {
    byID('preview-microphone').click();
    await settled();
    assert.deepEqual(open(), isOn ? ['camera', 'microphone'] : ['camera']);
  }
  assert.deepEqual(capture.asked, ['camera', 'microphone', 'microphone'], 'the camera stays open meanwhile');
  byID('preview-camera').click();
  await settled();
  assert.deepEqual([open(), preview.wants], [['microphone'], { camera: false, microphone: true }]);
  assert.equal(byID('preview-camera').querySelector('.tool-label').textContent, t('tool.start-camera'));
  byID('preview-microphone').click();
  await settled();
  await show(); // a name was missing
  assert.deepEqual([open(), preview.wants], [[], { camera: false, microphone: false }]);
  await preview.leave(byID('guest-preview'));
  assert.deepEqual(preview.wants, { camera: false, microphone: false }, 'the join reads it after that');
  await show();
  assert.deepEqual(preview.wants, { camera: true, microphone: true });
});

test('a ring requests no permission, and shows one’s own picture if the camera is allowed', async (t_) => {
  t_.after(() => preview.leave(byID('ring-preview')));
  const ring = { sources: ['camera'], switches: ['microphone'], mayAsk: false };
  Object.assign(permissions, { camera: 'prompt', microphone: 'prompt' });
  const { capture, open } = captureWith();
  await preview.show(byID('ring-preview'), ring);
  assert.deepEqual([capture.asked, byID('preview-picture').hidden, byID('preview-ask').hidden], [[], true, true]);
  permissions.camera = 'denied';
  await preview.show(byID('ring-preview'), ring);
  assert.deepEqual([capture.asked, byID('preview-picture').hidden], [[], true]);
  permissions.camera = 'granted';
  await preview.show(byID('ring-preview'), ring);
  assert.deepEqual([open(), byID('preview-picture').hidden], [['camera'], false]);
});

test('it is shown in the view that was opened last, and returns to the one below', async (t_) => {
  Object.assign(permissions, { camera: 'granted', microphone: 'granted' });
  const { open } = captureWith();
  const place = () => byID('preview').parentElement;
  await preview.show(byID('invited-preview'), { switches: ['microphone', 'camera'] });
  await preview.show(byID('ring-preview'), { sources: ['camera'], switches: ['microphone'], mayAsk: false });
  await preview.show(byID('setup-preview'), { isWhole: true });
  assert.deepEqual([place() === byID('setup-preview'), byID('preview-devices').open, open()], [true, true, ['camera', 'microphone']]);
  await preview.leave(byID('ring-preview')); // the ring is over while the dialog is open
  assert.equal(place(), byID('setup-preview'));
  await preview.leave(byID('setup-preview'));
  assert.deepEqual([place() === byID('invited-preview'), byID('preview-devices').open, byID('preview-switches').hidden], [true, false, false]);
  await preview.leave(byID('invited-preview'));
  assert.deepEqual(open(), []);
});

test('a picture that arrives after the preview was left is closed', async () => {
  Object.assign(permissions, { camera: 'granted', microphone: 'granted' });
  const { capture, open } = captureWith();
  const shown = preview.show(byID('guest-preview'));
  while (capture.asked.length === 0) await undefined;
  await preview.leave(byID('guest-preview'));
  await shown;
  await settled();
  assert.deepEqual(open(), []);
});

const chrome = (brand) => ({ userAgentData: { brands: [{ brand: 'Not A;Brand' }, { brand: 'Chromium' }, { brand }] }, userAgent: 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Safari/537.36' });
const apple = (system, rest) => `Mozilla/5.0 (${system}) AppleWebKit/605.1.15 (KHTML, like Gecko) ${rest}`;
const [iPhone, mac] = ['iPhone; CPU iPhone OS 17_5 like Mac OS X', 'Macintosh; Intel Mac OS X 10_15_7'];
const BROWSERS = [
  ['chromium', chrome('Google Chrome')],
  ['chromium', chrome('Microsoft Edge')],
  ['chromium', { userAgent: chrome('').userAgent }],
  ['firefox', { userAgent: 'Mozilla/5.0 (X11; Linux x86_64; rv:132.0) Gecko/20100101 Firefox/132.0' }],
  ['firefox', { userAgent: 'Mozilla/5.0 (Android 14; Mobile; rv:132.0) Gecko/132.0 Firefox/132.0', maxTouchPoints: 5 }],
  ['safari', { userAgent: apple(mac, 'Version/17.5 Safari/605.1.15'), maxTouchPoints: 0 }],
  ['safari-phone', { userAgent: apple(mac, 'Version/17.5 Safari/605.1.15'), maxTouchPoints: 5 }],
  ['safari-phone', { userAgent: apple(iPhone, 'Version/17.5 Mobile/15E148 Safari/604.1'), maxTouchPoints: 5 }],
  ['other', { userAgent: apple(iPhone, 'CriOS/126.0 Mobile/15E148 Safari/604.1'), maxTouchPoints: 5 }],
  ['other', { userAgent: apple(iPhone, 'FxiOS/127.0 Mobile/15E148 Safari/605.1.15'), maxTouchPoints: 5 }],
  ['other', {}],
];

test('the steps are those of the browser', () => {
  for (const [wanted, facts] of BROWSERS) assert.equal(browserOf(facts), wanted, facts.userAgent);
  const texts = new Set(BROWSERS.map(([name]) => t(`permission.${name}`)));
  assert.equal(texts.size, 5);
  assert.ok(!texts.has(''));
});

test('a browser that does not tell whether it will ask is assumed to ask', async () => {
  delete permissions.camera;
  permissions.microphone = 'denied';
  assert.deepEqual([await permissionOf('camera'), await permissionOf('microphone')], ['prompt', 'denied']);
});
