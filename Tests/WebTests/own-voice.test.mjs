// Speech into a muted microphone, and push to talk.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { page } from './fake-page.mjs';
import { loadPage } from './web.mjs';

const heard = {}; // what the page listens to
const listen = (name, action) => void (heard[name] ??= []).push(action);
const tell = (name, event = {}) => heard[name].forEach((action) => action(event));
const stored = new Map();
Object.defineProperty(globalThis, 'localStorage', {
  value: { getItem: (key) => stored.get(key) ?? null, setItem: (key, value) => void stored.set(key, value), removeItem() {} },
  configurable: true,
});
globalThis.addEventListener = listen;
const byID = page();
document.addEventListener = listen;
const Element = byID('call').constructor;
Element.prototype.matches = () => false;
let isCoarse = false;
globalThis.matchMedia = () => ({ matches: isCoarse, addEventListener() {} });
const { MutedSpeech } = await loadPage('muted-speech.js');
const { PushToTalk, isTalkKey } = await loadPage('push-to-talk.js');
const { OwnVoice } = await loadPage('own-voice.js');

/** The times in ms at which the person is told, for `levels` measured every 100 ms. */
function told(levels, speech = new MutedSpeech(), from = 0) {
  return levels.map((level, index) => [from + index * 100, level]).filter(([at, level]) => speech.hear(level, at)).map(([at]) => at);
}
const [silence, voice] = [0.001, 0.08];
const times = (count, level) => Array(count).fill(level);

test('speech while muted is noticed within a second; a click, a cough and a quiet room are not speech', () => {
  const [first] = told(times(20, voice));
  assert.ok(first > 300 && first <= 1_000, `${first}`);
  assert.deepEqual(told(times(600, silence)), []);
  assert.deepEqual(told([...times(3, voice), ...times(30, silence)]), []);
  const clicks = Array.from({ length: 600 }, (_, index) => (index % 5 === 0 ? voice : silence)); // two in each second
  assert.deepEqual(told(clicks), []);
});

test('words with short pauses count as one utterance, which is reported once; so is the next one', () => {
  const words = Array.from({ length: 400 }, (_, index) => (index % 10 < 6 ? voice : silence));
  const speech = new MutedSpeech();
  const during = told(words, speech);
  assert.ok(during.length > 50 && during.at(-1) - during[0] < 9_000, 'for some seconds, not for as long as somebody speaks');
  assert.equal((during.at(-1) - during[0]) / 100, during.length - 1, 'without a break');
  assert.deepEqual(told(times(40, silence), speech, 40_000), []);
  assert.deepEqual(told(times(20, voice), speech, 44_000), [], 'four seconds of silence do not end it');
  assert.deepEqual(told(times(80, silence), speech, 46_000), []);
  assert.ok(told(times(20, voice), speech, 54_000).length > 0);
});

test('measurements that come only once a second, in a background tab, are ignored', () => {
  const speech = new MutedSpeech();
  assert.ok(!Array.from({ length: 60 }, (_, second) => speech.hear(voice, second * 1_000)).includes(true));
});

test('a held key unmutes a muted microphone until it is released, and does nothing else', () => {
  const talk = new PushToTalk();
  assert.equal(talk.press('key', { isMuted: false, now: 0 }), false, 'an unmuted microphone needs no key');
  assert.equal(talk.release('key', 10), false, 'and stays unmuted');
  assert.equal(talk.press('key', { isMuted: true, now: 20 }), true);
  assert.equal(talk.isTalking, true);
  assert.equal(talk.press('button', { isMuted: false, now: 30 }), false);
  assert.equal(talk.release('button', 40), false, 'the key is still held');
  assert.equal(talk.release('key', 50), true, 'however short');
  assert.equal(talk.isTalking, false);
  assert.equal(talk.release('key', 60), false);
});

test('a held button unmutes until it is released, a tap unmutes for good', () => {
  const talk = new PushToTalk();
  assert.equal(talk.press('button', { isMuted: true, now: 0 }), true);
  assert.equal(talk.release('button', 900), true);
  assert.equal(talk.press('button', { isMuted: true, now: 1_000 }), true);
  assert.equal(talk.release('button', 1_120), false);
  assert.equal(talk.isTalking, false);
});

test('losing the focus while somebody talks mutes, once', () => {
  const talk = new PushToTalk();
  assert.equal(talk.interrupt(), false);
  talk.press('key', { isMuted: true, now: 0 });
  assert.deepEqual([talk.interrupt(), talk.interrupt(), talk.release('key', 5)], [true, false, false]);
});

test('the space bar talks, unless a field or a button has the focus or another key is held with it', () => {
  const inside = (...found) => ({ closest: (selector) => (found.some((tag) => selector.split(', ').includes(tag)) ? {} : null) });
  assert.equal(isTalkKey({ key: ' ', target: inside() }), true);
  for (const tag of ['input', 'textarea', 'select', 'button', 'a', 'summary', '[contenteditable]']) assert.equal(isTalkKey({ key: ' ', target: inside(tag) }), false, tag);
  for (const modifier of ['ctrlKey', 'metaKey', 'altKey', 'shiftKey']) assert.equal(isTalkKey({ key: ' ', target: inside(), [modifier]: true }), false, modifier);
  assert.equal(isTalkKey({ key: 'm', target: inside() }), false);
});

const settled = async () => {
  for (let turn = 0; turn < 10; turn += 1) await undefined;
};

/** A call whose microphone has a track; `said` collects the commands that it got. */
function callOf({ isOn = true } = {}) {
  const said = [];
  const copies = [];
  const track = { clone: () => (copies.push({ enabled: false, isStopped: false, stop() { this.isStopped = true; } }), copies.at(-1)) };
  const call = {
    isHeld: false, said, copies,
    local: () => ({ isOn, track }),
    async setMicrophone(isWanted) {
      said.push(isWanted);
      isOn = isWanted;
    },
  };
  return call;
}
const shown = new OwnVoice();
const choose = (isOn) => {
  byID('push-to-talk').checked = isOn;
  byID('push-to-talk').listeners.change();
};
const space = (more = {}) => ({ key: ' ', target: { closest: () => null }, preventDefault() {}, timeStamp: 0, ...more });

test('with push to talk a call begins muted, the space bar unmutes, and its release, another window or another tab mutes', async (t_) => {
  t_.after(() => (shown.clear(), choose(false)));
  const call = callOf();
  shown.show(call);
  tell('keydown', space());
  tell('keyup', space());
  await settled();
  assert.deepEqual(call.said, [], 'without the setting the space bar does nothing');
  choose(true);
  await settled();
  assert.deepEqual(call.said.splice(0), [false]);
  tell('keydown', space());
  assert.deepEqual([call.said.splice(0), byID('talk-sign').hidden], [[true], false]);
  tell('keydown', space({ repeat: true }));
  tell('keyup', space({ timeStamp: 20 }));
  assert.deepEqual([call.said.splice(0), byID('talk-sign').hidden], [[false], true]);
  for (const leave of [() => tell('blur'), () => ((document.hidden = true), tell('visibilitychange'))]) {
    tell('keydown', space());
    leave();
    assert.deepEqual(call.said.splice(0), [true, false]);
    tell('keyup', space());
    assert.deepEqual(call.said, []);
  }
  document.hidden = false;
  tell('keydown', space());
  assert.deepEqual(call.said.splice(0), [true]);
  const next = callOf({ isOn: false });
  shown.show(next);
  assert.deepEqual([call.said, next.said], [[false], []], 'talking before the hold does not unmute after it');
  shown.show(call);
  await settled();
  assert.deepEqual(call.said, [false], 'it is muted only at its beginning');
});

test('touching and holding the button unmutes meanwhile, a tap unmutes for good, and its click does nothing more', async (t_) => {
  t_.after(() => (shown.clear(), choose(false)));
  const call = callOf({ isOn: false });
  choose(true);
  shown.show(call);
  const { listeners } = byID('toggle-microphone');
  const click = (detail) => {
    let isStopped = false;
    byID('toolbar').listeners.click({ detail, target: byID('toggle-microphone'), stopPropagation: () => (isStopped = true) });
    return isStopped;
  };
  listeners.pointerdown({ pointerType: 'touch', timeStamp: 0 });
  listeners.pointerup({ timeStamp: 1_000 });
  assert.deepEqual([call.said.splice(0), click(1)], [[true, false], true]);
  listeners.pointerdown({ pointerType: 'touch', timeStamp: 2_000 });
  listeners.pointerup({ timeStamp: 2_100 });
  assert.deepEqual([call.said.splice(0), click(1)], [[true], true]);
  listeners.pointerdown({ pointerType: 'touch', timeStamp: 3_000 });
  listeners.pointerup({ timeStamp: 3_100 });
  assert.deepEqual([call.said, click(1)], [[], false], 'it is on: the click mutes it');
  await call.setMicrophone(false);
  call.said.length = 0;
  listeners.pointerdown({ pointerType: 'touch', timeStamp: 4_000 });
  listeners.pointercancel({});
  assert.deepEqual([call.said.splice(0), click(0)], [[true, false], false], 'a screen reader’s click counts');
  listeners.pointerdown({ pointerType: 'mouse', timeStamp: 5_000 });
  assert.deepEqual([call.said, click(1)], [[], false]);
});

test('a muted microphone is measured on a copy of its track, which is kept while it is muted', (t_) => {
  t_.after(() => shown.clear());
  const call = callOf({ isOn: false });
  shown.show(call);
  shown.show(call);
  assert.deepEqual(call.copies.map(({ enabled, isStopped }) => [enabled, isStopped]), [[true, false]]);
  call.isHeld = true;
  shown.show(call);
  assert.equal(call.copies[0].isStopped, true, 'a call on hold does not listen');
  call.isHeld = false;
  shown.show(call);
  call.setMicrophone(true);
  shown.show(call);
  assert.deepEqual(call.copies.map(({ isStopped }) => isStopped), [true, true]);
  call.setMicrophone(false);
  shown.show(call);
  shown.clear();
  assert.deepEqual(call.copies.map(({ isStopped }) => isStopped), [true, true, true]);
});
