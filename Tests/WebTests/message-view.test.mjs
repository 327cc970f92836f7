// The view in which a message is recorded: which buttons there are, what is read out, and what a key does.

import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { page } from './fake-page.mjs';
import { loadPage } from './web.mjs';

const byID = page();
const listeners = {};
document.addEventListener = (name, action) => (listeners[name] ??= []).push(action);
document.dispatchEvent = ({ type }) => (listeners[type] ?? []).forEach((action) => action());
globalThis.MediaStream = /** @type {any} */ (class {
  constructor(tracks) {
    this.tracks = tracks;
  }
  getVideoTracks() {
    return this.tracks;
  }
});
const { MessageView } = await loadPage('message-view.js');
const { beginNames } = await loadPage('names.js');
const { show } = await loadPage('views.js');
beginNames('me', [], () => {});

const NAMES = ['now', 'pause', 'stop', 'play', 'send', 'again', 'save', 'retry', 'how', 'sound', 'cancel'];
for (const name of NAMES) byID(`message-${name}`).hidden = true;
const shown = () => NAMES.filter((name) => !byID(`message-${name}`).hidden).join(' ');
const text = (name) => byID(`message-${name}`).textContent;
const press = (key) => listeners.keydown.forEach((action) => action({ key }));
const notices = () => byID('notices').children.map(({ textContent }) => textContent);

/** As much of a `VideoMessage` as the view needs; `log` has what it was told to do. */
class Message extends EventTarget {
  state = 'preparing';
  users = ['bob'];
  hasPicture = true;
  tracks = {};
  untilStart = 0;
  length = 0;
  left = 180_000;
  log = [];

  constructor() {
    super();
    for (const name of ['prepare', 'start', 'pause', 'resume', 'play', 'send', 'stop', 'stay', 'discard', 'retake', 'leave', 'interrupt']) {
      this[name] = async (options) => void this.log.push(options ? `${name} ${JSON.stringify(options)}` : name);
    }
  }

  be(state, facts = {}) {
    Object.assign(this, { state }, facts);
    this.dispatchEvent(new Event('change'));
  }

  end(detail = {}) {
    this.dispatchEvent(new CustomEvent('over', { detail }));
  }
}

let view, message, done;
beforeEach(() => {
  done = [];
  view = new MessageView({ play: async (played) => void done.push(played), over: (detail) => done.push(detail) });
  message = new Message();
  byID('notices').children = [];
  document.activeElement = undefined;
  view.show(message, { isLasting: true });
});

test('each state has its buttons', () => {
  assert.deepEqual([message.log, view.isShown, text('title'), text('memory')], [['prepare'], true, 'Video message for bob', '']);
  assert.equal(document.activeElement, byID('message-title'));
  const buttons = Object.fromEntries(['preparing', 'counting', 'recording', 'stopping', 'recorded', 'sending'].map((state) => (message.be(state), [state, shown()])));
  assert.deepEqual(buttons, { preparing: 'cancel', counting: 'now pause cancel', recording: 'stop', stopping: '', recorded: 'play send again save cancel', sending: 'cancel' });
  const failures = [
    [{ code: 'unsupported' }, 'cancel'], [{ code: 'no-keys', users: ['bob'] }, 'cancel'], [{ code: 'full' }, 'retry cancel'],
    [{ error: { name: 'NotFoundError' }, source: 'microphone' }, 'retry cancel'], [{ error: { name: 'NotFoundError' }, source: 'camera' }, 'retry sound cancel'],
    [{ error: { name: 'NotAllowedError' }, source: 'camera' }, 'retry how sound cancel'],
  ];
  for (const [problem, wanted] of failures) {
    message.be('preparing');
    message.be('failed', { problem });
    assert.equal(shown(), wanted, JSON.stringify(problem));
  }
});

test('every problem has a text that says what to do', () => {
  const problems = [
    [{ code: 'unsupported' }, /A current Chrome/], [{ code: 'no-keys', users: ['bob'] }, /^bob cannot get video messages yet.*Try again/], [{ code: 'full' }, /Delete some/],
    [{ code: 'no-room' }, /Free some space/], [{ code: 'device' }, /disconnected.*is kept/], [{ code: 'store' }, /reload the page/], [{ code: 'format' }, /reload the page/],
    [{ code: 'lost' }, /Record it again/], [{ code: 'refused' }, /Record it again/], [{ error: { name: 'NotAllowedError' } }, /Allow it in the browser’s settings/],
    [{ error: { name: 'NotReadableError' } }, /Close it and try again/], [{ error: { name: 'QuotaExceededError' } }, /Free some space/],
  ];
  for (const [problem, words] of problems) {
    message.be('failed', { problem });
    assert.match(text('problem'), words);
  }
});

test('the countdown is shown, and its last three seconds are read out; so is that it records, and that the end is near', () => {
  const read = [];
  for (const ms of [5_000, 4_100, 3_100, 3_000, 2_900, 1_900, 900]) {
    message.be('counting', { untilStart: ms });
    read.push([text('count'), text('said')]);
  }
  assert.deepEqual(read, [['5', ''], ['5', ''], ['4', ''], ['3', '3'], ['3', '3'], ['2', '2'], ['1', '1']]);
  message.be('recording', { length: 61_000, left: 119_000 });
  assert.deepEqual([text('count'), text('said'), text('time')], ['', 'Recording', '1:01 · 1:59 left']);
  message.be('recording', { length: 171_000, left: 9_900 });
  assert.equal(text('said'), '10 seconds left');
  message.be('recorded', { length: 179_500, isLongest: true });
  assert.deepEqual([text('said'), text('lead')], ['', 'The message is as long as it may be. Recorded: 2:59. Nobody else can play it before you send it.']);
});

test('one’s own picture is shown until it is recorded', () => {
  const camera = {};
  message.be('counting', { tracks: { camera } });
  assert.deepEqual([byID('message-video').hidden, byID('message-picture').hidden, byID('message-off').hidden, byID('message-video').srcObject.tracks[0]], [false, false, true, camera]);
  message.be('recorded', { tracks: {} });
  assert.deepEqual([byID('message-picture').hidden, byID('message-video').srcObject], [true, null]);
  message.be('counting', { hasPicture: false });
  assert.deepEqual([byID('message-video').hidden, byID('message-off').hidden], [true, false]);
});

test('a network that is gone is said while it counts, records and sends, and what is stored meanwhile', () => {
  for (const state of ['counting', 'recording', 'recorded']) {
    message.be(state, { upload: 'waiting' });
    assert.match(text('network'), /goes on by itself/, state);
  }
  message.be('sending', { upload: 'waiting', delivery: { state: 'uploading', stored: 3, sealed: 4 } });
  assert.deepEqual([text('network'), text('time')], ['', '75%']);
  message.be('sending', { delivery: { state: 'full', stored: 3, sealed: 4 } });
  assert.match(text('network'), /no room/);
});

test('a browser that keeps nothing says so', () => {
  view.show(new Message(), { isLasting: false });
  assert.match(text('memory'), /if you close this page/);
});

test('the buttons do what they say', async () => {
  const deeds = [
    ['counting', 'now', 'start'], ['counting', 'pause', 'pause'], ['recording', 'stop', 'stop'], ['recorded', 'send', 'send'], ['recorded', 'save', 'send {"onlyOwn":true}'],
    ['recorded', 'again', 'retake'], ['recorded', 'cancel', 'discard'], ['sending', 'cancel', 'stay'], ['failed', 'retry', 'retake'], ['failed', 'sound', 'retake {"hasPicture":false}'],
  ];
  for (const [state, name, wanted] of deeds) {
    message.be(state, { problem: undefined });
    await byID(`message-${name}`).click();
    assert.equal(message.log.at(-1), wanted);
  }
  assert.equal(text('pause-text'), 'Pause');
  message.be('counting', { isPaused: true });
  assert.equal(text('pause-text'), 'Continue');
  await byID('message-pause').click();
  assert.equal(message.log.at(-1), 'resume');
  message.be('recorded');
  await byID('message-play').click();
  assert.deepEqual(done, [message]);
});

test('a server that does not answer holds no button of the next message', async () => {
  message.discard = () => new Promise(() => {});
  message.be('recorded');
  await byID('message-cancel').click();
  assert.equal(byID('message-cancel').disabled, false);
});

test('Escape stops a recording, cancels what was not recorded, and deletes nothing that was', () => {
  message.be('recording');
  press('Escape');
  assert.equal(message.log.at(-1), 'stop');
  for (const state of ['recorded', 'sending', 'stopping']) {
    message.be(state);
    press('Escape');
  }
  assert.equal(message.log.at(-1), 'stop');
  message.be('counting');
  press('a');
  press('Escape');
  assert.equal(message.log.at(-1), 'discard');
});

test('the keyboard finds the button to stop, and behind it the heading: a second press must not send it', () => {
  message.be('counting');
  byID('message-now').focus();
  message.be('recording');
  assert.equal(document.activeElement, byID('message-stop'));
  message.be('stopping');
  message.be('recorded');
  assert.equal(document.activeElement, byID('message-title'));
});

test('when it is over the page is told, and who got it; those without a device are named', () => {
  message.users = ['bob', 'carol'];
  message.end({ devices: { me: 1, bob: 2 }, onlyOwn: false });
  assert.deepEqual(notices(), ['Sent to bob', 'carol has no device for encrypted calls yet']);
  assert.deepEqual(done, [{ devices: { me: 1, bob: 2 }, onlyOwn: false, wasShown: true }]);
  const kept = new Message();
  view.show(kept, { isLasting: true });
  kept.end({ devices: { me: 1 }, onlyOwn: true });
  assert.equal(notices().at(-1), 'Kept in your messages');
});

test('another view in its place, such as a call, leaves it', () => {
  view.interrupt();
  show('call');
  assert.deepEqual(message.log.slice(1), ['interrupt', 'leave']);
  message.end();
  assert.deepEqual([done.at(-1).wasShown, view.isShown], [false, false]);
  press('Escape');
});

test('one message may be sent while the next one is recorded: it is told, and the view stays', () => {
  message.id = 'r1';
  const next = new Message();
  next.id = 'r2';
  view.show(next, { isLasting: true });
  assert.deepEqual(['r1', 'r2', 'r3'].map((id) => view.has(id)), [true, true, false]);
  message.end({ devices: { bob: 1 }, onlyOwn: false });
  assert.deepEqual([notices(), done.at(-1).wasShown, view.has('r1'), view.isShown], [['Sent to bob'], false, false, true]);
  message.end({ problem: { code: 'lost' } });
  assert.match(notices().at(-1), /Record it again/);
  next.be('recording');
  press('Escape');
  assert.equal(next.log.at(-1), 'stop');
});
