// The small window of a call: the faces in it, its buttons, and when it opens and closes.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { page } from './fake-page.mjs';
import { loadPage } from './web.mjs';

const stored = new Map();
Object.defineProperty(globalThis, 'localStorage', {
  value: { getItem: (key) => stored.get(key) ?? null, setItem: (key, value) => void stored.set(key, value) },
  configurable: true,
});
const byID = page();
const Element = byID('toolbar').constructor;

/** Elements with a working class list and children, as far as the window needs them. */
Object.assign(Element.prototype, {
  insertBefore(child, next) {
    const others = this.children.filter((other) => other !== child);
    const index = next ? others.indexOf(next) : others.length;
    this.children = [...others.slice(0, index), child, ...others.slice(index)];
    child.parent = this;
  },
  remove() {
    if (this.parent) this.parent.children = this.parent.children.filter((other) => other !== this);
  },
  getAttribute(name) {
    return this[name];
  },
  play: async () => {},
  clientHeight: 300,
});
globalThis.MediaStream = class {
  constructor(tracks) {
    this.getVideoTracks = () => tracks;
  }
};
const observers = [];
globalThis.MutationObserver = class {
  constructor(action) {
    this.action = action;
    observers.push(this);
  }
  observe() {}
  disconnect() {
    observers.splice(observers.indexOf(this), 1);
  }
};
/** The browser calls this when something in the page's own bar has changed. */
const changed = () => observers.forEach(({ action }) => action());

const opened = []; // windows
let refuses = false;
globalThis.documentPictureInPicture = {
  async requestWindow() {
    if (refuses) throw new DOMException('no activation', 'NotAllowedError');
    const listeners = {};
    const made = {
      isClosed: false,
      devicePixelRatio: 2,
      document: { documentElement: new Element('html'), head: new Element('head'), body: new Element('body'), addEventListener: (name, action) => (listeners[name] = action) },
      ResizeObserver: class { observe() {} },
      addEventListener: (name, action) => (listeners[name] = action),
      close() {
        if (made.isClosed) return;
        made.isClosed = true;
        listeners.pagehide();
      },
      listeners,
    };
    opened.push(made);
    return made;
  },
};
const actions = {};
Object.defineProperty(globalThis, 'navigator', { value: { mediaSession: { setActionHandler: (name, action) => (actions[name] = action) } }, configurable: true });
let focused = 0;
globalThis.window = { focus: () => (focused += 1) };
document.baseURI = 'https://calls.example/under/';
let turned;
document.addEventListener = (name, action) => name === 'visibilitychange' && (turned = action);
document.querySelector = () => undefined;

const pressed = [];
for (const [id, label] of [['toggle-microphone', 'Mute'], ['toggle-camera', 'Stop camera'], ['leave', 'Leave'], ['small-window', 'Small window']]) {
  const use = Object.assign(new Element('use'), { href: `#icon-${id}` });
  const span = Object.assign(new Element('span'), { className: 'tool-label', textContent: label });
  byID(id).children = [use, span];
  byID(id).className = 'tool';
  if (id !== 'small-window') byID(id).listeners.click = () => pressed.push(id);
}

const { facesOf, smallWindow } = await loadPage('small-window.js');
const { t: text } = await loadPage('texts.js');

const camera = (user, participant, more = {}) => ({ key: user, source: 'camera', participant, member: { user }, track: `${participant}.2`, video: { user }, ...more });
const own = camera('me', 1, { isOwn: true });
const people = [own, ...['ann', 'bob', 'cleo', 'dan', 'eve'].map((user, index) => camera(user, index + 2))];
const keys = (tiles) => tiles.map(({ key }) => key);

test('the window has four faces, in the page’s order, and one’s own if there is room', () => {
  assert.deepEqual(keys(facesOf(people)), ['ann', 'bob', 'cleo', 'dan']);
  assert.deepEqual(keys(facesOf(people.slice(0, 3))), ['me', 'ann', 'bob']);
});

test('strangers, screens, the pinned person, raised hands and the speaker get places, and shown faces keep theirs', () => {
  const leads = { pinned: 'eve', speaker: 6, isRaised: () => false };
  assert.deepEqual(keys(facesOf(people, { ...leads, pinned: 'dan' })), ['ann', 'bob', 'dan', 'eve']);
  assert.deepEqual(keys(facesOf(people, { isRaised: (participant) => participant === 6 })), ['ann', 'bob', 'cleo', 'eve']);
  const shown = new Set(['bob', 'cleo', 'dan', 'eve']);
  assert.deepEqual(keys(facesOf(people, {}, shown)), ['bob', 'cleo', 'dan', 'eve']);
  const zed = { key: 'zed', source: 'listener', member: { user: 'zed' }, doubt: 'stranger' };
  const screen = { ...camera('ann', 2), key: 'ann/screen', source: 'screen', track: '2.3' };
  assert.deepEqual(keys(facesOf([...people, screen, zed], leads, shown)), ['bob', 'eve', 'ann/screen', 'zed']);
});

const settled = async () => {
  for (let turn = 0; turn < 10; turn += 1) await undefined;
};

/** A call with `tiles`, whose window was opened by a press. */
async function open(tiles = people) {
  smallWindow.begin();
  byID('small-window').listeners.click();
  await settled();
  smallWindow.show(tiles, {});
  const window = opened.at(-1);
  const { body, head, documentElement, title } = window.document;
  const [, notice, list, bar] = body.children.slice(-4);
  return { window, body, head, documentElement, title, notice, list, bar, buttons: bar.children };
}

smallWindow.prepare();

test('a browser without such windows shows no button and no setting for them', () => {
  const before = globalThis.documentPictureInPicture;
  delete globalThis.documentPictureInPicture;
  smallWindow.prepare();
  assert.deepEqual([byID('small-window').hidden, byID('auto-window-field').hidden], [true, true]);
  globalThis.documentPictureInPicture = before;
  smallWindow.prepare();
  assert.deepEqual([byID('small-window').hidden, byID('auto-window-field').hidden, byID('auto-window').checked], [false, false, false]);
});

test('its buttons press the page’s buttons, look like them, and have names', async (t) => {
  t.after(() => smallWindow.end());
  Object.assign(document.documentElement, { lang: 'ar', dir: 'rtl' });
  byID('call-title').textContent = 'Bob';
  byID('call-notice').hidden = true;
  const { window, body, head, documentElement, notice, list, bar, buttons } = await open();
  assert.deepEqual([documentElement.lang, documentElement.dir, window.document.title], ['ar', 'rtl', 'Bob']);
  assert.deepEqual(head.children.map(({ href }) => href), ['https://calls.example/under/page/style.css', 'https://calls.example/under/page/small-window.css']);
  assert.deepEqual([bar.role, bar.ariaLabel, list.ariaLabel], ['group', text('call.controls'), text('call.grid')]);
  const labels = () => buttons.map((button) => button.querySelector('.tool-label').textContent);
  assert.deepEqual(labels(), ['Mute', 'Stop camera', 'Leave', text('window.back')]);
  assert.equal(document.activeElement, buttons[0], 'it has the keyboard focus at first');
  for (const button of buttons.slice(0, 3)) button.click();
  assert.deepEqual(pressed.splice(0), ['toggle-microphone', 'toggle-camera', 'leave']);
  byID('toggle-microphone').querySelector('.tool-label').textContent = 'Unmute';
  byID('toggle-microphone').querySelector('use').href = '#icon-microphone-off';
  Object.assign(byID('toggle-microphone'), { className: 'tool off', disabled: true });
  byID('call-notice').hidden = false;
  byID('call-notice-text').textContent = 'Nothing is sent';
  changed();
  assert.deepEqual([labels()[0], buttons[0].title, buttons[0].className, buttons[0].ariaDisabled], ['Unmute', 'Unmute', 'tool off', 'true']);
  assert.equal(buttons[0].querySelector('use').href, '#icon-microphone-off');
  assert.deepEqual([notice.hidden, notice.role, notice.textContent], [false, 'alert', 'Nothing is sent']);
  assert.equal(body.className, 'in-call small-window');
  byID('toggle-microphone').disabled = false;
});

test('it reports its tracks and their heights, and again when they change', async (t) => {
  t.after(() => smallWindow.end());
  let told = 0;
  const count = () => (told += 1);
  smallWindow.addEventListener('change', count);
  t.after(() => smallWindow.removeEventListener('change', count));
  const { list } = await open(people.slice(0, 3));
  assert.deepEqual([...smallWindow.heights], [['2.2', 600], ['3.2', 600]], 'one’s own need not be sent');
  assert.equal(list.children.length, 3);
  const before = told;
  smallWindow.show(people.slice(0, 3), {});
  assert.equal(told, before);
  smallWindow.show(people.slice(1, 2), {});
  assert.deepEqual([told, [...smallWindow.heights.keys()], list.children.length], [before + 1, ['2.2'], 1]);
});

test('a press or Escape returns to the call, and the page’s button closes the window, too', async (t) => {
  t.after(() => smallWindow.end());
  for (const goBack of [({ buttons }) => buttons[3].click(), ({ window }) => window.listeners.keydown({ key: 'Escape' })]) {
    const before = focused;
    const shown = await open();
    assert.equal(byID('small-window').querySelector('span').textContent, text('window.close'));
    goBack(shown);
    assert.deepEqual([shown.window.isClosed, smallWindow.isOpen, focused - before], [true, false, 1]);
    assert.equal(byID('small-window').querySelector('span').textContent, text('window.open'));
  }
  const { window } = await open();
  byID('small-window').listeners.click();
  assert.deepEqual([window.isClosed, smallWindow.isOpen, smallWindow.heights.size], [true, false, 0]);
});

test('it closes with the call, and a person may close it', async () => {
  const { window } = await open();
  smallWindow.end();
  assert.deepEqual([window.isClosed, observers.length], [true, 0]);
  byID('small-window').listeners.click();
  await settled();
  assert.equal(smallWindow.isOpen, false, 'there is no call');
  const next = await open();
  next.window.close();
  assert.equal(smallWindow.isOpen, false);
  smallWindow.end();
});

test('a call continues if the window is refused or cannot be drawn', async (t) => {
  t.after(() => smallWindow.end());
  const { warn } = console;
  const warned = [];
  console.warn = (text) => warned.push(text);
  t.after(() => Object.assign(console, { warn }));
  smallWindow.begin();
  refuses = true;
  byID('small-window').listeners.click();
  await settled();
  refuses = false;
  assert.equal(smallWindow.isOpen, false);
  const { window } = await open();
  smallWindow.show([{ ...people[1], member: undefined }], {});
  assert.deepEqual([window.isClosed, smallWindow.isOpen, warned.length], [true, false, 2]);
});

test('it opens by itself only during a call and with the person’s consent, and closes when the person is back', async (t) => {
  t.after(() => smallWindow.end());
  const action = () => actions.enterpictureinpicture;
  smallWindow.begin();
  assert.equal(action(), null, 'off at first');
  byID('auto-window').checked = true;
  byID('auto-window').listeners.change();
  assert.equal(stored.get('setting/auto-window'), 'true');
  const count = opened.length;
  document.hidden = true;
  turned();
  await settled();
  assert.equal(opened.length, count, 'the browser calls the action');
  action()();
  await settled();
  assert.deepEqual([opened.length, smallWindow.isOpen], [count + 1, true]);
  document.hidden = false;
  turned();
  assert.deepEqual([opened.at(-1).isClosed, smallWindow.isOpen], [true, false]);
  const { window } = await open();
  turned();
  assert.equal(window.isClosed, false, 'the person has opened it');
  smallWindow.end();
  assert.equal(action(), null);
});

test('in a browser without the action, leaving the page asks for it', async (t) => {
  const { setActionHandler } = navigator.mediaSession;
  navigator.mediaSession.setActionHandler = () => {
    throw new TypeError('enterpictureinpicture');
  };
  t.after(() => {
    smallWindow.end();
    navigator.mediaSession.setActionHandler = setActionHandler;
    document.hidden = false;
  });
  smallWindow.begin();
  assert.equal(byID('auto-window').checked, true, 'as chosen before');
  const count = opened.length;
  document.hidden = true;
  turned();
  await settled();
  assert.equal(opened.length, count + 1);
});

test('with video first, the speaker takes nobody’s place', async (t) => {
  t.after(() => smallWindow.end());
  const { list } = await open();
  const names = () => list.children.map((face) => face.querySelector('.face-name').textContent);
  const before = names();
  stored.set('setting/video-first', 'true');
  smallWindow.show(people, { speaker: 6 });
  assert.deepEqual(names(), before);
  stored.delete('setting/video-first');
  smallWindow.show(people, { speaker: 6 });
  assert.notDeepEqual(names(), before);
});
