// Captions: the message, hostile speakers, recognition only on the device, and what the page shows and reads out.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { page } from './fake-page.mjs';
import { aside, fakeTimers, load, loadPage } from './web.mjs';

const byID = page();
const Element = byID('captions').constructor;
Element.prototype.append = function (...children) {
  this.children.push(...children);
};
const { CaptionOrder, captionIn } = await load('keys/captions.js');
const { MessageSealer, decodeMessage, encodeMessage } = await load('keys/messages.js');
const { CaptionSender } = await loadPage('caption-sender.js');
const { CaptionLines, CaptionReading } = await loadPage('caption-lines.js');
const { Recogniser, canRecognise, install, recognisable } = await loadPage('recogniser.js');
const { Captions } = await loadPage('captions-view.js');
const { t } = await loadPage('texts.js');

const settled = async () => {
  for (let turn = 0; turn < 40; turn += 1) await undefined;
};

/** The page's clock, which the test sets. */
function clock(t_) {
  const { now } = performance;
  let time = 1_000;
  performance.now = () => time;
  t_.after(() => (performance.now = now));
  return (ms) => (time += ms);
}

// The message

const said = { caption: 'Hello', line: 1, revision: 1, final: false, lang: 'en-GB' };

test('a caption is its own kind of message, and arrives unchanged', () => {
  assert.deepEqual(decodeMessage(encodeMessage(said)), said);
  assert.deepEqual(captionIn({ ...said, lang: undefined }), { ...said, lang: '' });
  assert.deepEqual(captionIn({ ...said, from: 'bob', name: 'Bob' }), said, 'nothing in it says who speaks');
});

test('a caption of another form is invalid', () => {
  const bad = [
    { caption: '' }, { caption: ' \n\u202e ' }, { caption: 7 }, { caption: 'x'.repeat(241) }, { line: 0 }, { line: -1 }, { line: 1.5 }, { line: '1' }, { line: 2 ** 32 },
    { line: undefined }, { revision: 0 }, { revision: Infinity }, { revision: null }, { final: 1 }, { final: undefined },
  ];
  for (const change of bad) {
    assert.equal(captionIn({ ...said, ...change }), undefined, JSON.stringify(change));
    assert.equal(decodeMessage(encodeMessage({ ...said, ...change })), undefined, JSON.stringify(change));
  }
  for (const lang of ['', 'e', 'en_GB', 'x'.repeat(40), '"><b>', 7, null, {}]) assert.equal(captionIn({ ...said, lang }).lang, '', String(lang));
});

test('a caption cannot break its line, turn the text around it, or pile marks over it', () => {
  const textOf = (caption) => captionIn({ ...said, caption }).caption;
  assert.equal(textOf('one\ntwo\r\n\u0000three\u2028four\u0085five'), 'one two three four five');
  assert.equal(textOf('\u202eolleH\u202c \u2067x\u2069'), 'olleH x');
  assert.equal(textOf(`a${'\u0301'.repeat(50)}b`), `a${'\u0301'.repeat(3)}b`);
  for (const text of ['سلام، صديقي', 'नमस्ते क्षेत्र', 'สวัสดีที่นี่', 'ជំរាបសួរ', 'Tiếng Việt', '你好', '👩‍👩‍👧 hi']) assert.equal(textOf(text), text);
});

// Order and rate

test('a line gets revisions until one is final; late and repeated revisions are not shown', () => {
  const order = new CaptionOrder();
  const admits = (line, revision, final = false) => order.admits(1, { line, revision, final }, 0);
  assert.deepEqual([admits(1, 1), admits(1, 3), admits(1, 2), admits(1, 3)], [true, true, false, false]);
  assert.deepEqual([admits(1, 4, true), admits(1, 5), admits(1, 6, true)], [true, false, false], 'a final line stays as it is');
  assert.deepEqual([admits(2, 1), admits(1, 9), admits(5, 1), admits(4, 1)], [true, false, true, false]);
  assert.equal(order.admits(2, { line: 1, revision: 1, final: true }, 0), true, 'each speaker has its own order');
});

test('a flood of captions is shown four times a second, and does not affect other speakers', () => {
  const order = new CaptionOrder();
  let line = 0;
  const flood = (participant, now, count) => Array.from({ length: count }, () => order.admits(participant, { line: ++line, revision: 1, final: true }, now)).filter(Boolean).length;
  assert.equal(flood(1, 0, 500), 10);
  assert.equal(flood(1, 1_000, 500), 4);
  assert.equal(flood(1, 500, 500), 0, 'a clock that was set back allows no more');
  assert.equal(flood(2, 1_000, 5), 5);
  for (let participant = 3; participant < 5_000; participant += 1) flood(participant, 1_000, 1);
  assert.equal(flood(4_999, 1_000, 50), 9, 'only the latest speakers are remembered');
});

test('late and excess captions are dropped before anybody sees them, and counted like other messages', async () => {
  const ask = async ({ data, from }) => ({ participant: from, kind: 0, epoch: 1, data });
  const sealer = new MessageSealer(ask, {});
  const open = (message, from = 3) => sealer.open({ from, body: Buffer.from(encodeMessage(message)).toString('base64') });
  assert.deepEqual(await open(said), { participant: 3, isPrivate: false, ...said });
  assert.equal(await open(said), undefined);
  assert.equal(sealer.dropped, 1);
  assert.deepEqual(await open({ text: 'still heard' }), { participant: 3, isPrivate: false, text: 'still heard' });
  const opened = [];
  for (let line = 2; line < 40; line += 1) opened.push(await open({ ...said, line }));
  assert.ok(opened.filter(Boolean).length < 15 && sealer.dropped > 20);
  assert.deepEqual((await open(said, 4)).participant, 4, 'the speaker is who sealed it');
});

// Sending

/** A sender whose messages are collected; `answer()` confirms those in flight. */
function sending() {
  const sent = [];
  const waiting = [];
  const sender = new CaptionSender((caption) => (sent.push(caption), new Promise((resolve) => waiting.push(resolve))));
  const answer = async () => {
    for (const resolve of waiting.splice(0)) resolve();
    await settled();
  };
  return { sender, sent, answer };
}

test('the newest interim result is sent every 0.7 s, a final one at once, and each line is numbered', async (t_) => {
  const pass = clock(t_);
  const tick = fakeTimers(t_);
  const { sender, sent, answer } = sending();
  const after = async (ms) => {
    pass(ms);
    tick(ms);
    await settled();
    await answer();
  };
  sender.say('I', false, 'en');
  await after(100);
  for (const text of ['I think', 'I think that', 'I think that we']) sender.say(text, false, 'en');
  await after(100);
  assert.deepEqual(sent.map(({ caption }) => caption), ['I']);
  await after(500);
  assert.deepEqual(sent.map(({ caption }) => caption), ['I', 'I think that we']);
  sender.say('I think that we should', false, 'en');
  sender.say('I think that we should go.', true, 'en');
  await after(2_000);
  sender.say('Now', false, 'de');
  await after(0);
  assert.deepEqual(sent.slice(2), [
    { caption: 'I think that we should go.', line: 1, revision: 3, final: true, lang: 'en' },
    { caption: 'Now', line: 2, revision: 1, final: false, lang: 'de' },
  ]);
});

test('a long line is split at spaces, or anywhere, into captions of the allowed length', async () => {
  for (const text of ['word '.repeat(120).trim(), '字'.repeat(500), '👍'.repeat(230)]) {
    const { sender, sent, answer } = sending();
    sender.say(text, true, 'en');
    for (let round = 0; round < 6; round += 1) await answer();
    assert.deepEqual(sent.map(({ line, revision, final }) => [line, revision, final]), sent.map((_, index) => [index + 1, 1, true]));
    assert.equal(sent.map(({ caption }) => caption).join(text.includes(' ') ? ' ' : ''), text);
    assert.ok(sent.length > 1 && sent.every(({ caption }) => [...caption].length <= 200));
  }
});

test('a sent line is always a valid caption for the others, even if every character is an emoji', async () => {
  const { sender, sent } = sending();
  sender.say('👍'.repeat(200), true, 'en');
  await settled();
  assert.ok(captionIn(sent[0]), 'sent as it is shown');
});

test('muting makes the last interim result final, and turning off sends nothing more', async (t_) => {
  const pass = clock(t_);
  fakeTimers(t_);
  const { sender, sent, answer } = sending();
  sender.say('Wait', false, 'en');
  await settled();
  await answer();
  pass(10);
  sender.say('Wait a moment', false, 'en');
  sender.end();
  await settled();
  await answer();
  sender.end();
  assert.deepEqual(sent.slice(1), [{ caption: 'Wait a moment', line: 1, revision: 2, final: true, lang: 'en' }]);
  sender.say('private', false, 'en');
  sender.drop();
  sender.end();
  await settled();
  assert.equal(sent.length, 2);
});

test('a server that does not answer gets at most eight lines', async (t_) => {
  const pass = clock(t_);
  const sent = [];
  const sender = new CaptionSender((caption) => (sent.push(caption), Promise.reject(new Error('rate.limited'))));
  for (let line = 0; line < 50; line += 1) sender.say(`line ${line}`, true, 'en');
  await aside(2);
  assert.equal(sent.length, 8);
  pass(1_000);
  sender.say('later', true, 'en');
  await settled();
  assert.equal(sent.at(-1).caption, 'later', 'and continues after a failure');
});

// The lines

test('the last three lines are shown, each for eight seconds after its last word', () => {
  const lines = new CaptionLines();
  const add = (participant, line, caption, now) => lines.add({ participant, name: `${participant}`, caption, line, lang: '' }, now);
  const shown = (now) => lines.at(now).map(({ caption }) => caption);
  add(1, 1, 'a', 0);
  add(2, 1, 'b', 100);
  add(1, 1, 'a a', 200);
  assert.deepEqual(shown(200), ['a a', 'b'], 'a line keeps its place');
  add(1, 2, 'c', 300);
  add(2, 2, 'd', 400);
  assert.deepEqual(shown(400), ['b', 'c', 'd']);
  assert.deepEqual(shown(8_200), ['c', 'd']);
  assert.deepEqual(shown(8_400), []);
});

test('final lines are read out together every 1.5 s, at most the newest four', () => {
  const reading = new CaptionReading();
  assert.equal(reading.take(0), undefined);
  for (const text of ['a', 'b']) reading.add(text);
  assert.equal(reading.take(0), 'a\nb');
  reading.add('c');
  assert.equal(reading.take(1_000), undefined);
  assert.equal(reading.take(1_500), 'c');
  for (let index = 0; index < 100; index += 1) reading.add(`${index}`);
  assert.equal(reading.take(9_000), '96\n97\n98\n99');
  assert.equal(reading.take(20_000), undefined);
});

// The recogniser

/** A browser that recognises languages on the device as `states` says, by tag; `made` has the recognisers that it started. */
function browserWith(t_, states = { 'en-US': 'available' }, { isPrefixed = false } = {}) {
  const made = [];
  const asked = [];
  class Recognition extends EventTarget {
    processes = false;
    calls = [];
    static async available(options) {
      asked.push(options);
      return states[options.langs[0]] ?? 'unavailable';
    }
    static async install(options) {
      asked.push(options);
      return states[options.langs[0]] === 'downloadable' && (states[options.langs[0]] = 'available') !== undefined;
    }
    constructor() {
      super();
      made.push(this);
    }
    get processLocally() {
      return this.processes;
    }
    set processLocally(value) {
      this.processes = value;
    }
    start(track) {
      if (!this.processes) throw new Error('sound left the device');
      this.calls.push(['start', track]);
    }
    abort() {
      this.calls.push(['abort']);
    }
    tell(name, values = {}) {
      this.dispatchEvent(Object.assign(new Event(name), values));
    }
    hear(...results) {
      this.tell('result', { resultIndex: 0, results: results.map(([transcript, isFinal]) => Object.assign([{ transcript }], { isFinal })) });
    }
  }
  const name = isPrefixed ? 'webkitSpeechRecognition' : 'SpeechRecognition';
  globalThis[name] = Recognition;
  t_.after(() => delete globalThis[name]);
  return { made, asked, Recognition };
}

test('a browser that may send the sound to a network is not asked to recognise anything', (t_) => {
  assert.equal(canRecognise(), false);
  let started = 0;
  class Remote extends EventTarget {
    start() {
      started += 1;
    }
  }
  for (const name of ['SpeechRecognition', 'webkitSpeechRecognition']) {
    globalThis[name] = Remote;
    t_.after(() => delete globalThis[name]);
  }
  let failures = 0;
  const recogniser = new Recogniser({ said() {}, failed: () => (failures += 1) });
  recogniser.start('track', 'en-US');
  assert.deepEqual([canRecognise(), started, failures], [false, 0, 1]);
  // A browser that accepts the option and ignores it.
  Object.assign(Remote, { available: async () => 'available' });
  Object.defineProperty(Remote.prototype, 'processLocally', { get: () => false, set() {}, configurable: true });
  recogniser.start('track', 'en-US');
  assert.deepEqual([canRecognise(), started, failures], [true, 0, 2]);
});

test('the language is the first tag that is recognised here, and every query is about this device', async (t_) => {
  const { asked } = browserWith(t_, { 'de-DE': 'available', 'fr-FR': 'downloadable', 'ja-JP': 'downloading' }, { isPrefixed: true });
  assert.deepEqual(await recognisable(['de-AT', 'de-DE', 'de']), { tag: 'de-DE', isHere: true });
  assert.deepEqual(await recognisable(['fr-FR']), { tag: 'fr-FR', isHere: false });
  assert.deepEqual(await recognisable(['ja-JP']), { tag: 'ja-JP', isHere: false });
  assert.equal(await recognisable(['km-KH', 'km']), undefined);
  assert.equal(await install('fr-FR'), true);
  assert.equal(await install('km-KH'), false);
  assert.ok(asked.length >= 8 && asked.every(({ processLocally, langs }) => processLocally === true && langs.length === 1));
});

test('the recogniser reports final results, and the rest as one line, and is restarted when it ends by itself', (t_) => {
  const pass = clock(t_);
  const tick = fakeTimers(t_);
  const { made } = browserWith(t_);
  const heard = [];
  let failures = 0;
  const recogniser = new Recogniser({ said: (...words) => heard.push(words), failed: () => (failures += 1) });
  recogniser.start('track', 'en-US');
  assert.deepEqual([made[0].calls, made[0].lang, made[0].continuous, made[0].interimResults], [[['start', 'track']], 'en-US', true, true]);
  made[0].hear(['Hello.', true], [' How', false], [' are', false]);
  assert.deepEqual(heard.splice(0), [['Hello.', true], [' How are', false]]);
  made[0].hear(['', false]);
  assert.deepEqual(heard, []);
  pass(60_000);
  made[0].tell('error', { error: 'no-speech' });
  made[0].tell('end');
  assert.equal(made.length, 1);
  tick(1_000);
  assert.deepEqual([made.length, made[1].calls], [2, [['start', 'track']]]);
  made[0].hear(['late', true]);
  recogniser.stop();
  made[1].hear(['later', true]);
  made[1].tell('end');
  tick(5_000);
  assert.deepEqual([heard, made.length, made[1].calls.at(-1), failures], [[], 2, ['abort'], 0]);
});

test('a recogniser that keeps ending, or would send sound to the network, is abandoned, with one notice', (t_) => {
  clock(t_);
  const tick = fakeTimers(t_);
  const { made } = browserWith(t_);
  let failures = 0;
  const recogniser = new Recogniser({ said() {}, failed: () => (failures += 1) });
  recogniser.start('track', 'en-US');
  for (let round = 0; round < 20; round += 1) {
    made.at(-1).tell('end');
    tick(1_000);
  }
  assert.deepEqual([made.length, failures], [5, 1]);
  for (const error of ['network', 'not-allowed', 'service-not-allowed', 'language-not-supported', 'something-new']) {
    failures = 0;
    recogniser.start('track', 'en-US');
    made.at(-1).tell('error', { error });
    made.at(-1).tell('end');
    assert.deepEqual([failures, made.at(-1).calls.at(-1)], [1, ['abort']], error);
  }
});

// The page

/** A call with Bob as participant 2; `sent` are its messages. */
function callWith({ isOn = true } = {}) {
  const sent = [];
  const microphone = { isOn, track: 'microphone' };
  return { participant: 1, isHeld: false, sent, microphone, local: () => microphone, ownerOf: (participant) => (participant === 2 ? { user: 'bob' } : undefined), send: async (message) => void sent.push(message) };
}
const lines = () => byID('captions').children.map(({ children }) => children.map((child) => child.textContent ?? child).join(''));
const choose = async (id, value) => {
  byID(id)[typeof value === 'boolean' ? 'checked' : 'value'] = value;
  byID(id).listeners.change();
  await settled();
};
const notices = () => byID('notices').children;

test('captions are off at first, announced once, shown when chosen, and read out when final', async (t_) => {
  const pass = clock(t_);
  fakeTimers(t_);
  byID('notices').children.length = 0;
  const view = new Captions();
  const call = callWith();
  view.show(call);
  const hear = (caption, line, final, participant = 2) => view.take(call, { participant, isPrivate: false, caption, line, revision: 1, final, lang: 'en' });
  hear('Hi', 1, false);
  hear('Hi.', 1, true);
  assert.equal(byID('captions').hidden, true);
  assert.equal(notices().length, 1, 'that there are captions');
  await choose('captions-on', true);
  assert.deepEqual([byID('captions').hidden, lines()], [false, ['bob Hi.']]);
  assert.equal(byID('captions-read').textContent, undefined, 'earlier words are not read');
  hear('How are', 2, false);
  assert.deepEqual(lines(), ['bob Hi.', 'bob How are']);
  assert.equal(byID('captions-read').textContent, undefined, 'no interim word is read');
  hear('How are you?', 2, true);
  assert.equal(byID('captions-read').textContent, 'bob: How are you?');
  pass(2_000);
  hear('Fine.', 1, true, 1);
  assert.ok(lines().includes(`${t('tile.you')} Fine.`));
  assert.equal(byID('captions-read').textContent, 'bob: How are you?', 'one’s own words are not read out');
  view.take(callWith(), { participant: 2, caption: 'elsewhere', line: 1, revision: 1, final: true, lang: '' });
  view.take(call, { participant: 2, text: 'chat' });
  assert.ok(!lines().some((line) => /elsewhere|chat/.test(line)));
  await choose('captions-on', false);
  assert.equal(byID('captions').hidden, true);
  view.clear();
});

test('a browser that cannot recognise on the device says so, and the control stays off', () => {
  new Captions();
  assert.deepEqual([byID('captions-share').disabled, byID('captions-state').textContent], [true, t('captions.no-browser')]);
});

test('this person’s speech is recognised only while it is shared and the microphone is on', async (t_) => {
  const pass = clock(t_);
  fakeTimers(t_);
  const { made } = browserWith(t_);
  const view = new Captions();
  const call = callWith();
  view.show(call);
  assert.deepEqual([byID('captions-share').disabled, made.length], [false, 0]);
  await choose('captions-language', 'en');
  assert.equal(made.length, 0, 'choosing a language shares nothing');
  await choose('captions-share', true);
  assert.deepEqual([made.length, byID('captions-state').textContent], [1, t('captions.sharing')]);
  made[0].hear(['Hello', true]);
  await settled();
  assert.deepEqual(call.sent.splice(0), [{ caption: 'Hello', line: 1, revision: 1, final: true, lang: 'en-US' }]);
  call.microphone.isOn = false;
  view.show(call);
  assert.deepEqual(made[0].calls.at(-1), ['abort'], 'muted');
  call.microphone.isOn = true;
  view.show(call);
  view.show(call);
  assert.equal(made.length, 2);
  call.isHeld = true;
  view.show(call);
  assert.deepEqual(made[1].calls.at(-1), ['abort'], 'on hold');
  call.isHeld = false;
  view.show(call);
  pass(5_000);
  await choose('captions-share', false);
  assert.deepEqual([made[2].calls.at(-1), byID('captions-state').textContent], [['abort'], '']);
  await choose('captions-share', true);
  view.show(callWith());
  assert.deepEqual([made.at(-1).calls.at(-1), byID('captions-share').checked], [['abort'], false], 'the choice is made for each call');
  view.clear();
});

test('a missing language is loaded, or the control says that it cannot be and stays off', async (t_) => {
  fakeTimers(t_);
  const { made } = browserWith(t_, { 'fr-FR': 'downloadable' });
  const view = new Captions();
  view.show(callWith());
  await choose('captions-language', 'km');
  await choose('captions-share', true);
  assert.deepEqual([byID('captions-share').checked, byID('captions-state').textContent, made.length], [false, t('captions.no-language'), 0]);
  await choose('captions-language', 'fr');
  await choose('captions-share', true);
  assert.deepEqual([byID('captions-share').checked, byID('captions-state').textContent, made[0].lang], [true, t('captions.sharing'), 'fr-FR']);
  made[0].tell('error', { error: 'network' });
  assert.deepEqual([byID('captions-share').checked, byID('captions-state').textContent], [false, t('captions.failed')]);
  view.clear();
});

test('turning off while a language loads shares nothing once it is loaded', async (t_) => {
  fakeTimers(t_);
  const { made, Recognition } = browserWith(t_, { 'fr-FR': 'downloadable' });
  let loaded;
  Recognition.install = () => new Promise((resolve) => (loaded = resolve));
  const view = new Captions();
  view.show(callWith());
  byID('captions-language').value = 'fr';
  await choose('captions-share', true);
  assert.equal(byID('captions-state').textContent, t('captions.loading'));
  await choose('captions-share', false);
  loaded(true);
  await settled();
  assert.deepEqual([made.length, byID('captions-state').textContent], [0, '']);
  view.clear();
});
