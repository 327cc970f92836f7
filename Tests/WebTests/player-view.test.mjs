// The player's dialog: what it shows, its keys, and what it says where nothing is to be seen.

import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { page } from './fake-page.mjs';
import { aside, fakeTimers, loadPage } from './web.mjs';

const byID = page();
const listeners = {};
document.addEventListener = (name, action) => (listeners[name] ??= []).push(action);
document.dispatchEvent = ({ type }) => (listeners[type] ?? []).forEach((action) => action());
const drawn = [];
byID('player-picture').getContext = () => ({ drawImage: ({ name }, ...place) => drawn.push([name, ...place]) });
const icons = {};
for (const id of ['player-play', 'player-mute']) byID(id).querySelector = () => ({ getAttribute: () => icons[id], setAttribute: (_, href) => (icons[id] = href) });
byID('player-dialog').close = () => {
  byID('player-dialog').open = false;
  byID('player-dialog').listeners.close();
};
const { PlayerView, bandsOf, captionsIn, deedOf } = await loadPage('player-view.js');
const { beginNames } = await loadPage('names.js');
const { show } = await loadPage('views.js');
beginNames('me', [], () => {});

const START = 1_790_000_000_000_000; // µs
const text = (id) => byID(`player-${id}`).textContent;
let made;

class Player extends EventTarget {
  state = 'paused';
  length = 65_000;
  position = START;
  speed = 1;
  gap;
  gaps = [];
  start = START;

  constructor(sources, output) {
    super();
    made.players.push(this);
    Object.assign(this, { sources, output });
  }

  be(state, facts = {}) {
    Object.assign(this, { state }, facts);
    this.dispatchEvent(new Event('change'));
  }

  play() {
    this.be('playing');
  }

  pause() {
    this.be('paused');
  }

  seek(time) {
    this.position = time;
  }

  close() {
    this.isClosed = true;
  }
}

class WebOutput {
  volume = 1;

  constructor(options) {
    Object.assign(this, options);
    made.outputs.push(this);
  }

  unlock() {
    this.isUnlocked = true;
  }
}

const library = { Player, WebOutput, SPEEDS: [1, 1.5, 2], playingObstacle: () => made.obstacle };
const opened = ({ reel = { state: 'complete' }, ...facts } = {}) => ({ reels: [{ number: 1, reel, source: {} }], reader: { statement: { kind: 'message', by: { user: 'bob' } } }, notes: new Map(), ...facts });
let view;
beforeEach(() => {
  made = { players: [], outputs: [], obstacle: undefined };
  drawn.length = 0;
  document.hidden = false;
  byID('player-speed').children = [];
  view = new PlayerView(library);
});

async function open(t, facts, options = {}) {
  fakeTimers(t);
  const isOpen = await view.open({ name: 'bob', load: async () => opened(facts), download: () => {}, ...options });
  return { isOpen, player: made.players.at(-1), output: made.outputs.at(-1) };
}

const press = (key, target = undefined) => {
  let isTaken = false;
  byID('player-dialog').listeners.keydown({ key, target, preventDefault: () => (isTaken = true) });
  return isTaken;
};

test('a recording is opened in a dialog and plays at once, with the name of the person who has signed it', async (t) => {
  const { isOpen, player, output } = await open(t, {}, { name: 'what the server says' });
  assert.deepEqual([isOpen, byID('player-dialog').open, text('title'), player.state, output.isUnlocked], [true, true, 'Message from bob', 'playing', true]);
  assert.deepEqual([byID('player-controls').hidden, byID('player-download').hidden, document.activeElement === byID('player-play')], [false, true, true]);
  player.be('playing', { position: START + 4_200_000 });
  assert.deepEqual([text('clock'), byID('player-time').max, byID('player-time').value, byID('player-time')['aria-valuetext']], ['0:04 / 1:05', 65_000, 4_200, '4 seconds of 1 minute 5 seconds']);
  assert.deepEqual([byID('player-play').ariaLabel, icons['player-play']], ['Pause', '#icon-pause']);
  byID('player-play').click();
  assert.deepEqual([player.state, byID('player-play').ariaLabel, icons['player-play']], ['paused', 'Play', '#icon-play']);
  byID('player-dialog').close();
  assert.equal(player.isClosed, true);
});

test('each key has its deed, except where it means something else', () => {
  const deeds = { ' ': { button: 'player-play' }, ArrowLeft: { seek: -5_000 }, ArrowRight: { seek: 5_000 }, ArrowUp: { volume: 1 }, ArrowDown: { volume: -1 }, ',': { speed: -1 }, '.': { speed: 1 }, m: { button: 'player-mute' }, F: { button: 'player-full' } };
  for (const [key, deed] of Object.entries(deeds)) assert.deepEqual(deedOf({ key }), deed, key);
  assert.deepEqual(deedOf({ key: 'ArrowLeft' }, true), { seek: 5_000 }, 'a time line from right to left');
  for (const event of [{ key: 'x' }, { key: 'Escape' }, { key: 'Tab' }, { key: 'm', ctrlKey: true }, { key: ' ', target: { tagName: 'BUTTON' } }, { key: 'ArrowUp', target: { tagName: 'SELECT' } }]) {
    assert.equal(deedOf(event), undefined, JSON.stringify(event));
  }
});

test('the keyboard does all of it: seek, speed, volume, silence', async (t) => {
  const { player, output } = await open(t);
  assert.equal(press('ArrowRight'), true);
  assert.equal(player.position, START + 5_000_000);
  for (const key of ['.', '.', '.']) press(key);
  assert.deepEqual([player.speed, byID('player-speed').value], [2, '2']);
  press(',');
  assert.equal(player.speed, 1.5);
  press('ArrowDown');
  press('ArrowDown');
  assert.equal(Math.round(output.volume * 10), 8);
  press('m');
  assert.deepEqual([output.volume, byID('player-mute').ariaLabel, icons['player-mute']], [0, 'Sound on', '#icon-sound-off']);
  press('m');
  assert.deepEqual([Math.round(output.volume * 10), byID('player-mute').ariaLabel], [8, 'Sound off']);
  assert.equal(press('Escape'), false, 'the browser closes the dialog');
  byID('player-time').value = '30000';
  byID('player-time').listeners.input();
  assert.equal(player.position, START + 30_000_000);
});

test('the volume stays for the next one', async (t) => {
  const { player } = await open(t);
  byID('player-volume').value = '0.25';
  byID('player-volume').listeners.input();
  const next = await open(t);
  assert.deepEqual([next.output.volume, player.isClosed, made.players.length], [0.25, true, 2]);
});

test('gaps stand on the time line, and one that is played says what it is', async (t) => {
  const gaps = [{ from: START + 13_000_000, to: START + 26_000_000, why: 'away' }, { from: START + 60_000_000, to: START + 99_000_000, why: 'missing' }];
  assert.deepEqual(bandsOf(gaps, START, 65_000).map(({ from, width }) => [Math.round(from), Math.round(width)]), [[20, 20], [92, 8]]);
  assert.deepEqual(bandsOf(gaps, START, 0), []);
  const { player } = await open(t);
  player.be('playing', { gaps, gap: gaps[0] });
  assert.deepEqual(byID('player-gaps').children.map(({ title, style }) => [title, Math.round(parseFloat(style.width))]), [
    ['Nothing was recorded here: the recording was interrupted.', 20], ['The server does not have this part.', 8],
  ]);
  assert.equal(text('gap'), 'Nothing was recorded here: the recording was interrupted.');
  player.be('playing', { gap: undefined });
  assert.equal(text('gap'), '');
  player.be('playing', { gap: { why: 9 } });
  assert.equal(text('gap'), 'Nothing was recorded here.');
});

test('a network that is gone is said after a moment', async (t) => {
  let now = 0;
  t.mock.method(performance, 'now', () => now);
  const { player } = await open(t);
  player.be('waiting');
  assert.equal(text('gap'), '');
  now = 3_100;
  view.draw();
  assert.match(text('gap'), /Check the network/);
  player.be('playing');
  assert.equal(text('gap'), '');
});

test('a reader is told what is wrong with the whole; one’s own draft has nothing to compare with', async (t) => {
  const words = { complete: '', changed: /changed or removed/, 'cut-off': /end is missing/, 'not-finished': /was interrupted/ };
  for (const [state, wanted] of Object.entries(words)) {
    await open(t, { reel: { state } });
    view.draw();
    assert.match(text('worth'), wanted || /^$/);
  }
  await open(t, { reel: { state: 'not-finished' }, reader: undefined, notes: undefined }, { title: 'Your message' });
  view.draw();
  assert.deepEqual([text('worth'), text('title')], ['', 'Your message']);
});

test('captions of the notes are shown in their time, on one line and without marks that turn the text', async (t) => {
  const notes = [{ kind: 'caption', from: 2_000, to: 3_000, text: 'two\n\u202ewords' }, { kind: 'caption', from: 0, to: 1_000, text: 'x'.repeat(500) }, { kind: 'place', text: 'no' }, { kind: 'caption', from: 5, to: 4, text: 'no' }, { kind: 'caption', from: 'a', to: 4, text: 'no' }, { kind: 'caption', from: 1, to: 4, text: 7 }];
  assert.deepEqual(captionsIn(notes), [{ from: 0, to: 1_000, text: 'x'.repeat(240) }, { from: 2_000, to: 3_000, text: 'two words' }]);
  const { player } = await open(t, { notes: new Map(notes.entries()) });
  player.be('playing', { position: START + 2_500_000 });
  assert.equal(text('caption'), 'two words');
  player.be('playing', { position: START + 3_000_000 });
  assert.equal(text('caption'), '');
});

test('pictures are drawn in their own size; without one there is a sign of sound', async (t) => {
  const { output } = await open(t);
  assert.deepEqual([byID('player-picture').hidden, byID('player-off').hidden], [true, false]);
  output.draw({ name: 'p', displayWidth: 640, displayHeight: 360 });
  assert.deepEqual([drawn, byID('player-picture').width, byID('player-picture').hidden, byID('player-off').hidden], [[['p', 0, 0, 640, 360]], 640, false, true]);
  output.draw(undefined);
  assert.deepEqual([byID('player-picture').hidden, byID('player-off').hidden], [true, false]);
});

test('a browser that cannot play offers the file, also when a decoder fails later', async (t) => {
  made.obstacle = 'no-decoder';
  let downloads = 0;
  const { isOpen, player } = await open(t, {}, { download: () => (downloads += 1) });
  assert.deepEqual([isOpen, player, byID('player-controls').hidden, byID('player-download').hidden], [true, undefined, true, false]);
  assert.match(text('problem'), /Download it/);
  byID('player-download').onclick();
  assert.equal(downloads, 1);
  press(' ');
  made.obstacle = undefined;
  const later = await open(t);
  assert.deepEqual([text('problem'), byID('player-download').hidden], ['', true]);
  later.output.failed('decoder');
  assert.deepEqual([later.player.state, byID('player-download').hidden], ['paused', false]);
});

test('a recording with another signer than the server says, or without a key here, is not played', async (t) => {
  for (const [code, words] of [['not-signed', /not from bob/], ['no-key', /no key/], ['other', /did not work/]]) {
    const { isOpen } = await open(t, {}, { load: async () => Promise.reject(Object.assign(new Error(code), { code })) });
    assert.deepEqual([isOpen, made.players.length], [false, 0]);
    assert.match(text('problem'), words);
  }
});

test('a recording that is closed while it is loaded does not play afterwards', async (t) => {
  fakeTimers(t);
  let go;
  const opening = view.open({ name: 'bob', load: () => new Promise((resolve) => (go = () => resolve(opened()))), download: () => {} });
  await aside(1);
  view.close();
  go();
  assert.deepEqual([await opening, made.players.length], [false, 0]);
});

test('nothing is to be seen while the page is in the background, and a call ends it', async (t) => {
  const { player } = await open(t);
  document.hidden = true;
  document.dispatchEvent(new Event('visibilitychange'));
  assert.equal(byID('player-body').hidden, true);
  document.hidden = false;
  document.dispatchEvent(new Event('visibilitychange'));
  assert.equal(byID('player-body').hidden, false);
  view.pause();
  assert.equal(player.state, 'paused', 'somebody rings');
  byID('call').hidden = true;
  show('lobby');
  assert.equal(player.isClosed, undefined);
  show('call');
  assert.deepEqual([player.isClosed, byID('player-dialog').open], [true, false]);
});
