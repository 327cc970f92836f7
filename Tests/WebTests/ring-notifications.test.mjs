// Rings as notifications: the page, the service worker between the page and the system, and the buttons that the person presses.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { createContext, runInContext } from 'node:vm';
import { page } from './fake-page.mjs';
import { aside, loadPage } from './web.mjs';

const byID = page();
globalThis.window = globalThis;
const { RingNotifications } = await loadPage('ring-notifications.js');
const { Ringing } = await loadPage('ringing.js');
const { preview } = await loadPage('preview.js');
Object.assign(preview, { show() {}, leave() {} });
byID('ring').close = () => (byID('ring').open = false);

const code = readFileSync(new URL('../../Sources/Web/sw.js', import.meta.url), 'utf8');
const settled = () => aside(5);

/** The service worker at `url`, with pages as its clients, and what the system shows. */
class Worker {
  listeners = {};
  clients = new Map();
  shown = new Map(); // by tag
  opened = [];
  isOffline = false;

  constructor(url) {
    const worker = this;
    const registration = {
      async showNotification(title, options) {
        await settled(); // a browser takes its time
        worker.shown.set(options.tag, { title, ...options, close: () => worker.shown.delete(options.tag) });
      },
      getNotifications: async ({ tag }) => [...worker.shown.values()].filter((one) => one.tag === tag),
    };
    const scope = {
      location: { search: new URL(url).search },
      URLSearchParams,
      Response,
      registration,
      skipWaiting() {},
      clients: { get: async (id) => worker.clients.get(id), claim() {}, openWindow: async (path) => worker.opened.push(path) },
      fetch: async () => (worker.isOffline ? Promise.reject(new TypeError('Failed to fetch')) : 'the page'),
      addEventListener: (name, listener) => (worker.listeners[name] = listener),
    };
    runInContext(code, createContext(scope));
  }

  /** Resolves when the worker has handled an event. */
  async dispatch(name, event) {
    let done;
    this.listeners[name]({ ...event, waitUntil: (promise) => (done = promise), respondWith: (promise) => (done = promise) });
    return done;
  }

  push(notice) {
    return this.dispatch('push', { data: { json: () => notice } });
  }

  message(data, id = 'tab') {
    return this.dispatch('message', { data, source: this.clients.get(id) ?? { id } });
  }

  click(notification, action = '') {
    return this.dispatch('notificationclick', { notification, action });
  }

  client(id) {
    const client = { id, got: [], focused: 0, postMessage: (data) => client.got.push(data), focus: async () => void (client.focused += 1) };
    this.clients.set(id, client);
    return client;
  }
}

const TEXTS = { offline: 'No network.', answer: 'Answer', decline: 'Decline', ring: '{name} is calling', audio: 'Audio call', video: 'Video call', over: 'It is over.', waiting: 'Somebody waits.', message: 'New video message from {name}', alert: '{name} needs you' };
const workerAt = () => new Worker(`https://calls.example/sw.js?${new URLSearchParams({ texts: JSON.stringify(TEXTS) })}`);
const ring = { type: 'ring', call: 'c1', title: 'Bob is calling', text: 'Video call' };

test('a ring is shown with two buttons until it is over, even if it is over at once', async () => {
  const worker = workerAt();
  await worker.message(ring);
  const [shown] = worker.shown.values();
  assert.deepEqual([shown.title, shown.body, shown.requireInteraction], ['Bob is calling', 'Video call', true]);
  assert.deepEqual(JSON.parse(JSON.stringify(shown.actions)), [{ action: 'answer', title: 'Answer' }, { action: 'decline', title: 'Decline' }]);
  await worker.message({ type: 'ring-over', call: 'c1' });
  assert.equal(worker.shown.size, 0);
  worker.message(ring);
  await worker.message({ type: 'ring-over', call: 'c1' });
  assert.equal(worker.shown.size, 0, 'it ended while it was being shown');
});

test('two tabs ring independently, and a repeated ring is shown once', async () => {
  const worker = workerAt();
  await worker.message(ring, 'one');
  await worker.message(ring, 'one');
  await worker.message(ring, 'two');
  assert.equal(worker.shown.size, 2);
  await worker.message({ type: 'ring-over', call: 'c1' }, 'one');
  assert.deepEqual([...worker.shown.values()].map(({ data }) => data.page), ['two']);
});

test('Answer goes to the page that rings and brings it to the front; Decline does not', async () => {
  const worker = workerAt();
  const [one, two] = [worker.client('one'), worker.client('two')];
  for (const action of ['answer', 'decline', '']) {
    await worker.message(ring, 'two');
    await worker.click([...worker.shown.values()][0], action);
    assert.equal(worker.shown.size, 0, action);
  }
  assert.deepEqual(JSON.parse(JSON.stringify(two.got)), [{ type: 'answer', call: 'c1' }, { type: 'decline', call: 'c1' }]);
  assert.deepEqual([two.focused, one.got.length, one.focused, worker.opened.length], [2, 0, 0, 0]);
});

test('if the browser refuses to focus the page it still answers, and a closed page is opened again', async () => {
  const worker = workerAt();
  const client = worker.client('tab');
  client.focus = () => Promise.reject(new Error('not allowed'));
  await worker.message(ring);
  await worker.click([...worker.shown.values()][0], 'answer');
  assert.equal(client.got.length, 1);
  worker.clients.clear();
  for (const action of ['answer', 'decline']) {
    await worker.message(ring);
    await worker.click([...worker.shown.values()][0], action);
  }
  assert.deepEqual(worker.opened, ['./']);
});

test('a push rings if no page is open; pressing opens a page, which learns the pressed button once, when it asks', async () => {
  const worker = workerAt();
  const push = { type: 'ring', call: 'c1', from: 'bob', name: '$& {name}', media: 'video' };
  const tab = worker.client('tab');
  for (const action of ['answer', 'decline', '']) {
    await worker.push(push);
    const [shown] = worker.shown.values();
    assert.deepEqual([shown.title, shown.body, shown.requireInteraction, shown.actions.length], ['$& {name} is calling', 'Video call', true, 2]);
    await worker.click(shown, action);
    assert.equal(worker.shown.size, 0);
    for (const call of ['c2', 'c1', 'c1']) await worker.message({ type: 'opened', call });
    assert.deepEqual(JSON.parse(JSON.stringify(tab.got.splice(0))), action ? [{ type: action, call: 'c1' }] : []);
  }
  assert.deepEqual(worker.opened, ['./#ring=c1', './#ring=c1', './#ring=c1']);
  await worker.push({ ...push, name: undefined, media: 'audio' });
  const [shown] = worker.shown.values();
  assert.deepEqual([shown.title, shown.body], ['bob is calling', 'Audio call']);
});

test('the end of a pushed ring is a silent notification, with the caller if known', async () => {
  const worker = workerAt();
  await worker.push({ type: 'ring', call: 'c1', from: 'bob', media: 'video' });
  await worker.push({ type: 'ring-over', call: 'c1' });
  await worker.push({ type: 'ring-over', call: 'c2' });
  const shown = [...worker.shown.values()].map(({ title, body, silent, actions }) => ({ title, body, silent, actions }));
  const quiet = { body: 'It is over.', silent: true, actions: undefined };
  assert.deepEqual(shown, [{ title: 'bob is calling', ...quiet }, { title: 'Conclave', ...quiet }]);
  await worker.click([...worker.shown.values()][0]);
  assert.deepEqual(worker.opened, ['./']);
});

test('somebody who waits at a lasting link is one notification, which opens the page and answers nothing', async () => {
  const worker = workerAt();
  for (let each = 0; each < 2; each += 1) await worker.push({ type: 'link-waiting', link: 'YWxpY2UncyBsaW5rICMxIQ' });
  const [notification, ...others] = [...worker.shown.values()];
  assert.deepEqual([others, notification.title, notification.body, notification.actions], [[], 'Conclave', 'Somebody waits.', undefined]);
  await worker.click(notification);
  assert.deepEqual(worker.opened, ['./']);
});

test('a message or an alert that is pushed names its sender, in one notification that opens the page and answers nothing', async () => {
  for (const [type, title] of [['message', 'New video message from Bob $&'], ['alert', 'Bob $& needs you']]) {
    const worker = workerAt();
    for (let each = 0; each < 2; each += 1) await worker.push({ type, recording: 'r1', from: 'bob', name: 'Bob $&' });
    const [notification, ...others] = [...worker.shown.values()];
    assert.deepEqual([others, notification.title, notification.actions], [[], title, undefined]);
    assert.equal(notification.requireInteraction, type === 'alert', 'an alert stays until somebody sees it');
    await worker.click(notification);
    assert.deepEqual(worker.opened, ['./']);
  }
});

test('a page on which the call rings closes the pushed ring', async () => {
  for (const type of ['ring', 'ring-over']) {
    const worker = workerAt();
    await worker.push({ type: 'ring', call: 'c1', from: 'bob', media: 'video' });
    await worker.message({ ...ring, type });
    assert.equal([...worker.shown.values()].filter(({ data }) => data.page !== 'tab').length, 0, type);
  }
});

test('without a network the page is a plain message, and nothing is ever stored', async () => {
  const worker = workerAt();
  assert.equal(await worker.dispatch('fetch', { request: { mode: 'navigate' } }), 'the page');
  worker.isOffline = true;
  const response = await worker.dispatch('fetch', { request: { mode: 'navigate' } });
  assert.deepEqual([response.status, await response.text()], [503, 'No network.']);
  assert.match(response.headers.get('content-type'), /^text\/plain/);
  assert.equal(await worker.dispatch('fetch', { request: { mode: 'cors' } }), undefined, 'left to the browser');
  assert.doesNotMatch(code, /caches|indexedDB/);
});

// The page

const fromBob = { call: 'c1', from: 'bob', media: 'video', members: [] };

/** The page's side, in a browser that answers `permission` when it is asked. */
async function begin(t, { permission = 'granted', answer = permission, register = async () => {}, pushManager = undefined, key = undefined, hash = '' } = {}) {
  const posted = [];
  const did = [];
  const container = new EventTarget();
  const registered = [];
  Object.assign(container, {
    register: (url) => (registered.push(String(url)), register()),
    ready: Promise.resolve({ pushManager, active: { postMessage: (message) => posted.push(message) } }),
  });
  const before = Object.getOwnPropertyDescriptor(globalThis, 'navigator');
  Object.defineProperty(globalThis, 'navigator', { value: { serviceWorker: container }, configurable: true });
  const told = [];
  globalThis.location = { hash, pathname: '/' };
  globalThis.history = { replaceState: (state, title, path) => (location.hash = path) };
  globalThis.Notification = function Notification() {};
  Notification.permission = permission;
  Notification.requestPermission = async () => (Notification.permission = answer);
  const changed = [];
  document.addEventListener = (name, listener) => name === 'visibilitychange' && changed.push(listener);
  document.hidden = true;
  t.after(() => {
    delete globalThis.Notification;
    delete globalThis.location;
    delete globalThis.history;
    if (before) Object.defineProperty(globalThis, 'navigator', before);
    else delete globalThis.navigator;
  });
  byID('allow-notifications').hidden = true;
  const notifications = new RingNotifications({ answer: (call) => did.push(`answer ${call}`), decline: (call) => did.push(`decline ${call}`), own: () => 'alice', push: { key, subscribe: async (subscription) => told.push(subscription) } });
  await settled();
  const press = (type, call) => container.dispatchEvent(Object.assign(new Event('message'), { data: { type, call } }));
  const hide = (isHidden) => {
    document.hidden = isHidden;
    changed.forEach((listener) => listener());
    return settled();
  };
  return { notifications, posted, did, registered, press, hide, told };
}

test('a ring in the background is posted with its text, and closed when the page is in front or the ring is over', async (t) => {
  const { notifications, posted, registered, hide } = await begin(t);
  notifications.add(fromBob);
  await settled();
  assert.deepEqual(posted.splice(0), [{ type: 'ring', call: 'c1', title: 'bob is calling', text: 'Video call' }]);
  await hide(false);
  assert.deepEqual(posted.splice(0), [{ type: 'ring-over', call: 'c1' }]);
  await hide(true);
  assert.deepEqual(posted.splice(0).map(({ type }) => type), ['ring'], 'it still rings');
  notifications.remove(fromBob);
  notifications.remove(fromBob);
  await settled();
  assert.deepEqual(posted.splice(0), [{ type: 'ring-over', call: 'c1' }]);
  await hide(false);
  assert.deepEqual(posted, []);
  const { searchParams, pathname } = new URL(registered[0]);
  assert.match(pathname, /\/sw\.js$/);
  assert.deepEqual(Object.keys(JSON.parse(searchParams.get('texts'))), ['offline', 'answer', 'decline', 'ring', 'audio', 'video', 'over', 'waiting', 'message', 'alert']);
  assert.equal(JSON.parse(searchParams.get('texts')).ring, '{name} is calling');
});

test('a ring in front, or without permission, is not shown', async (t) => {
  for (const permission of ['granted', 'denied', 'default']) {
    const { notifications, posted, hide } = await begin(t, { permission });
    await hide(permission !== 'granted');
    notifications.add(fromBob);
    await settled();
    assert.deepEqual(posted, [], permission);
  }
});

test('a pressed button counts only for a call that rings here', async (t) => {
  const { notifications, did, press } = await begin(t);
  notifications.add(fromBob);
  press('answer', 'c2');
  press('constructor', 'c1');
  assert.deepEqual(did, []);
  press('answer', 'c1');
  press('decline', 'c1');
  notifications.remove(fromBob);
  press('answer', 'c1');
  assert.deepEqual(did, ['answer c1', 'decline c1']);
});

/** A browser's push service, for one subscription. */
function pushManagerWith(existing = null) {
  const manager = {
    current: existing,
    getSubscription: async () => manager.current,
    subscribe: async ({ applicationServerKey }) => (manager.current = subscriptionFor(applicationServerKey, manager)),
  };
  return manager;
}

const subscriptionFor = (key, manager) => ({ options: { applicationServerKey: key.buffer }, unsubscribe: async () => void (manager.current = null) });

test('a browser with permission is subscribed with the server’s current key', async (t) => {
  const key = Uint8Array.of(4, 1, 2);
  const manager = pushManagerWith();
  const { notifications, told } = await begin(t, { pushManager: manager, key });
  assert.equal(await notifications.subscribe(), true);
  const first = manager.current;
  await notifications.subscribe();
  assert.deepEqual(told.splice(0), [first, first], 'one subscription, told each time');
  manager.current = subscriptionFor(Uint8Array.of(4, 9, 9), manager);
  await notifications.subscribe();
  assert.deepEqual([...new Uint8Array(told[0].options.applicationServerKey)], [4, 1, 2]);
  await notifications.unsubscribe();
  assert.deepEqual([manager.current, told.at(-1)], [null, null]);
});

test('without permission, a server key or a push service there is no subscription', async (t) => {
  const key = Uint8Array.of(4, 1, 2);
  const refusing = { getSubscription: async () => null, subscribe: () => Promise.reject(new Error('AbortError')) };
  for (const options of [{ permission: 'denied', pushManager: pushManagerWith(), key }, { pushManager: pushManagerWith() }, { key }, { pushManager: refusing, key }]) {
    const { notifications, told } = await begin(t, options);
    assert.equal(await notifications.subscribe(), false);
    await notifications.unsubscribe();
    assert.deepEqual(told, []);
  }
});

test('a page opened by a notification asks once, when the call rings, what was pressed; the address alone does not answer', async (t) => {
  for (const [hash, asks] of [['#ring=c1', 1], ['#ring=c2', 0], ['#answer=c1', 0], ['#decline=c1', 0]]) {
    const { notifications, did, posted, press } = await begin(t, { hash });
    for (let time = 0; time < 2; time += 1) {
      notifications.add(fromBob);
      notifications.remove(fromBob);
    }
    await settled();
    assert.equal(posted.filter(({ type, call }) => type === 'opened' && call === 'c1').length, asks, hash);
    assert.deepEqual(did, [], 'a link of another site leads here, too');
    assert.equal(location.hash, hash.startsWith('#ring=') ? '/' : hash);
    notifications.add(fromBob);
    press('answer', 'c1');
    assert.deepEqual(did, ['answer c1']);
  }
});

test('only the button asks for permission, and it is shown only while it helps', async (t) => {
  const button = byID('allow-notifications');
  await begin(t, { permission: 'default', answer: 'granted' });
  assert.deepEqual([button.hidden, Notification.permission], [false, 'default']);
  await button.click();
  assert.deepEqual([button.hidden, Notification.permission], [true, 'granted']);
  await begin(t, { permission: 'denied' });
  assert.equal(button.hidden, true);
  await begin(t, { permission: 'default', register: () => Promise.reject(new Error('SecurityError')) });
  assert.equal(button.hidden, true, 'the browser accepts no service worker');
});

test('a ring is answered with the media that it asks for, also if it waits behind another, and never twice', (t) => {
  const did = [];
  globalThis.MutationObserver = class {
    observe() {}
    disconnect() {}
  };
  t.after(() => delete globalThis.MutationObserver);
  const action = (name) => (ring, wants) => did.push([name, ring.call, ...(name === 'accept' ? [wants.camera, wants.microphone] : [])].join(' '));
  const rings = new Ringing({ accept: action('accept'), end: action('end'), decline: action('decline'), isInCall: () => false, own: () => 'alice' });
  rings.add(fromBob);
  rings.add({ ...fromBob, call: 'c2', media: 'audio' });
  rings.answer('c2');
  rings.answer('c2');
  rings.decline('c1');
  rings.decline('c3');
  assert.deepEqual(did.splice(0), ['accept c2 false true', 'decline c1']);
  assert.equal(rings.current, undefined);
  // The microphone that was switched off in the dialog stays off only in the call that is answered there.
  rings.add(fromBob);
  rings.add({ ...fromBob, call: 'c2' });
  preview.wants = { camera: true, microphone: false };
  rings.answer('c2');
  byID('ring-accept-audio').click();
  assert.deepEqual(did, ['accept c2 true true', 'accept c1 false false']);
});

test('everybody who rings is seen, and a press puts one in front', (t) => {
  globalThis.MutationObserver = class {
    observe() {}
    disconnect() {}
  };
  t.after(() => delete globalThis.MutationObserver);
  const did = [];
  const rings = new Ringing({ accept: (ring) => did.push(ring.call), end() {}, decline() {}, isInCall: () => false, own: () => 'alice' });
  const others = () => byID('ring-others').children.map(({ children: [button] }) => button);
  rings.add(fromBob);
  assert.deepEqual([others().length, byID('ring-others').hidden], [0, true]);
  for (const [call, from] of [['c2', 'carol'], ['c3', 'dave'], ['c4', 'erin'], ['c5', 'frank']]) rings.add({ ...fromBob, call, from });
  assert.deepEqual([others().length, byID('ring-others').hidden, rings.current.call], [3, false, 'c1']);
  others()[1].click();
  assert.equal(rings.current.call, 'c3');
  byID('ring-accept-video').click();
  assert.deepEqual([did, rings.current.call, others().length], [['c3'], 'c1', 3]);
  for (const call of ['c1', 'c2', 'c4', 'c5']) rings.remove({ call });
  assert.deepEqual([rings.current, others().length, byID('ring-others').hidden], [undefined, 0, true]);
});
