// The page draws first of all who can hear. If it cannot draw that, nothing is sent.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { page } from './fake-page.mjs';
import { loadPage } from './web.mjs';

/** The listeners for the page's end. */
const closings = [];
globalThis.addEventListener = (name, heard) => name === 'pagehide' && closings.push(heard);
const byID = page();
globalThis.ResizeObserver = class {
  observe() {}
};
globalThis.MutationObserver = class {
  observe() {}
};
globalThis.matchMedia = () => ({ matches: false, addEventListener() {} });
globalThis.Audio = class {};
Object.defineProperty(globalThis, 'navigator', { value: { mediaDevices: {} }, configurable: true });
byID('add-name').closest = () => ({ querySelector: () => byID('chips'), addEventListener() {} });
// Elements of the markup have the parts that are asked for.
const Element = byID('grid').constructor;
const { querySelector } = Element.prototype;
Element.prototype.querySelector = function (selector) {
  const found = querySelector.call(this, selector) ?? document.createElement(selector);
  found.getAttribute ??= () => '';
  return found;
};
Element.prototype.toggleAttribute = () => {};
Element.prototype.contains = () => false;
console.warn = process.env.LOUD ? console.log : () => {};
const { setInterval } = globalThis;
globalThis.setInterval = () => 0;
const { hideCall, showCall } = await loadPage('call-view.js');
const { beginNames } = await loadPage('names.js');
const { t } = await loadPage('texts.js');
globalThis.setInterval = setInterval;

/** A call as the page sees it. `shown` collects what the page reports about its drawing. */
function callOf({ tiles, facts = { others: [], policy: {} }, members = new Map() }) {
  const shown = [];
  const call = Object.assign(new EventTarget(), {
    id: 'c', user: 'alice', device: 'd', participant: 1, hasKey: true, isHeld: false, isInitiator: false, startedAt: 0, path: 'connected', quality: undefined, speaking: new Set(), audioTracks: [],
    members, facts, roster: [], devices: [], confirmation: { state: 'confirmed', missing: [] }, stop: undefined, shown,
    local: () => ({ isOn: true }), exported: [], recordedOf: () => undefined, tiles: () => tiles, watch: async () => {}, attend: () => [], unattend() {},
    setShown(isShown) {
      if (shown.at(-1) === isShown) return;
      shown.push(isShown);
      call.stop = isShown ? undefined : { cause: 'not-shown', devices: [], needsPerson: false };
      call.dispatchEvent(new Event('change')); // as a call does
    },
  });
  return call;
}

const connection = { status: 'ready', call: undefined };
const tile = (user, facts = {}) => ({ key: `${user}/d`, source: 'camera', member: { user }, device: 'd', participant: 2, isConnected: true, ...facts });
const drawn = () => byID('grid').querySelectorAll('.tile-name').map(({ textContent }) => textContent);

/** The fake page does not order nodes: it appends what is inserted. */
function openStage() {
  for (const id of ['grid', 'large']) {
    const list = byID(id);
    list.insertBefore = (node) => void (list.children.includes(node) || list.children.push(node));
    list.children = [];
    list.style = { setProperty() {} };
  }
  byID('stage').clientWidth = 900;
  byID('stage').clientHeight = 600;
}

test('a text that cannot be made does not prevent tiles from being drawn, but stops the sending until it can', (t_) => {
  openStage();
  t_.after(hideCall);
  let others = () => {
    throw new TypeError('no text');
  };
  const facts = {
    policy: {},
    get others() {
      return others();
    },
  };
  const call = callOf({ tiles: [tile('bob'), tile('zed')], facts });
  showCall(call, { connection, options: {} });
  assert.deepEqual(drawn(), ['bob', 'zed']);
  assert.deepEqual([call.shown, byID('call-notice').hidden, byID('call-notice-text').textContent], [[false], false, t('stop.not-shown')]);
  others = () => [];
  call.dispatchEvent(new Event('change'));
  assert.deepEqual([call.shown, byID('call-notice').hidden], [[false, true], true]);
});

test('a tile that cannot be drawn does not prevent others from being drawn', (t_) => {
  openStage();
  t_.after(hideCall);
  const call = callOf({ tiles: [tile('bob', { member: undefined }), tile('zed', { doubt: 'stranger', source: 'listener' })] });
  showCall(call, { connection, options: {} });
  assert.ok(drawn().includes('zed'));
  assert.deepEqual(call.shown, [false]);
});

test('unknown names and unknown states do not stop the drawing', (t_) => {
  openStage();
  t_.after(hideCall);
  const member = { user: 'zed', name: { evil: true }, state: 'asleep', participants: [] };
  byID('people-dialog').open = true;
  const call = callOf({ tiles: [tile('zed')], members: new Map([['zed', member]]) });
  showCall(call, { connection, options: {} });
  assert.deepEqual([drawn(), call.shown], [['zed'], [true]]);
});

test('the notice that nobody let a device in stays until somebody does, also after the device has left', (t_) => {
  openStage();
  t_.after(hideCall);
  const call = callOf({ tiles: [] });
  call.deviceName = () => '';
  showCall(call, { connection: { ...connection, deviceName: () => '' }, options: {} });
  const zed = { user: 'zed', device: 'd', state: 'member', isUninvited: true };
  call.roster = [zed];
  call.dispatchEvent(Object.assign(new Event('warning'), { detail: { problem: 'uninvited', user: 'zed', device: 'd' } }));
  const node = byID('warnings').children.find(({ dataset }) => dataset.key === 'uninvited/zed/d');
  let isThere = true;
  node.remove = () => (isThere = false);
  const draw = (roster) => {
    call.roster = roster;
    call.dispatchEvent(new Event('change'));
    return isThere;
  };
  assert.equal(draw([zed]), true);
  assert.equal(draw([{ ...zed, isUninvited: false }]), true, 'a look-up is pending again');
  assert.equal(draw([]), true, 'the server took it off the list');
  assert.equal(draw([{ ...zed, isUninvited: false, admission: { how: 'member', by: 'bob' } }]), false);
});

test('a page that closes during a call remembers only the people on its key list', (t_) => {
  openStage();
  t_.after(() => (hideCall(), beginNames('', [], () => {})));
  const saved = [];
  beginNames('alice', [['carol', 'Carol']], (names) => saved.push(names));
  const close = () => {
    for (const closing of closings) closing({ persisted: false });
    return saved.splice(0);
  };
  const members = new Map([['bob', { user: 'bob', name: 'Bob', state: 'joined', participants: [] }], ['dave', { user: 'dave', name: 'Dave', state: 'ringing', participants: [] }]]);
  const call = Object.assign(callOf({ tiles: [], members }), { roster: [{ user: 'bob', device: 'd', state: 'member' }, { user: 'dave', device: 'd', state: 'rings' }] });
  showCall(call, { connection, options: {} });
  assert.deepEqual(close(), [[['carol', 'Carol'], ['bob', 'Bob']]]);
  hideCall();
  assert.deepEqual(close(), [], 'without a call nobody is remembered');
});
