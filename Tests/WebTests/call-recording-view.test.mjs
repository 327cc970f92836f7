// The page while a call is recorded: the question, the line, and what its buttons do.

import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { page } from './fake-page.mjs';
import { fakeTimers, loadPage } from './web.mjs';

const byID = page();
const { CallRecordingView, lineOf, wordsOfRequest } = await loadPage('call-recording-view.js');

const recordingOf = (facts = {}) => ({ id: 'r1', by: { user: 'alice', device: 'd' }, readers: ['alice', 'bob'], media: ['audio', 'video', 'screen'], isOwn: false, answer: undefined, lack: undefined, ...facts });
let call, asked, view;
beforeEach(() => {
  asked = [];
  call = {
    user: 'bob',
    isInitiator: false,
    exported: [],
    facts: { policy: {}, others: [{ user: 'alice', participants: [{}] }, { user: 'zed', participants: [] }] },
    recording: undefined,
    answerRecording: async (...answer) => asked.push(['answer', ...answer]),
    record: async (options) => asked.push(['record', options]),
    stopRecording: async () => asked.push(['stop']),
  };
  for (const id of ['consent-dialog', 'call-record-dialog', 'withdraw-dialog']) byID(id).open = false;
  document.body.classList.contains = (name) => name === 'keeps-recordings';
  view = new CallRecordingView();
});

const isOpen = (id) => Boolean(byID(id).open);
const press = (id) => byID(id).listeners.click();

test('the question names the starter, the readers, and what would be recorded', () => {
  assert.deepEqual(wordsOfRequest(call, recordingOf()), {
    title: 'alice wants to record this call', readers: 'These people can play it: alice and You.', media: 'Your voice, your camera and what you share would be recorded.',
  });
  const words = wordsOfRequest(call, recordingOf({ readers: ['alice'], media: ['audio'] }));
  assert.deepEqual([words.readers, words.media], ['Only alice can play it.', 'Your voice would be recorded.']);
});

test('the line follows what this device hands out, and stays after the end for as long as that opens something', () => {
  const words = (recording, exported = []) => lineOf({ recording, exported })?.words;
  assert.equal(words(undefined), undefined);
  assert.equal(words(undefined, ['audio']), 'You are recorded.');
  assert.match(words(recordingOf({ answer: [] }), ['audio']), /You are recorded/, 'whatever was answered');
  assert.match(words(recordingOf()), /alice records this call\. You are not recorded\./);
  assert.match(words(recordingOf({ answer: ['audio'] })), /as soon as there is a new key/);
  assert.match(words(recordingOf({ answer: ['audio'], lack: 'no-word' })), /alice’s device does not answer/);
  assert.match(words(recordingOf({ answer: ['audio'], lack: 'no-epoch' })), /brings no new key/);
  assert.match(words(recordingOf({ isOwn: true, answer: ['audio'] }), ['audio']), /^You record this call\. You are recorded\.$/);
  assert.deepEqual([recordingOf(), recordingOf({ answer: ['audio'] }), recordingOf({ isOwn: true })].map((recording) => lineOf({ recording, exported: [] }).deed), ['ask', 'withdraw', 'stop']);
});

test('a person is asked once for each recording; neither Escape nor a press that was meant for something else is an answer', async (t) => {
  const tick = fakeTimers(t);
  call.recording = recordingOf();
  view.show(call);
  assert.ok(isOpen('consent-dialog'));
  assert.ok(['decline', 'voice', 'agree'].every((name) => byID(`consent-${name}`).disabled), 'the buttons wait');
  let isPrevented = false;
  byID('consent-dialog').listeners.cancel({ preventDefault: () => (isPrevented = true) });
  assert.ok(isPrevented);
  byID('consent-dialog').close();
  byID('consent-dialog').listeners.close();
  assert.ok(isOpen('consent-dialog'), 'it opens again');
  tick(2_000);
  await press('consent-voice');
  call.recording = recordingOf({ answer: ['audio'] });
  view.show(call);
  assert.deepEqual(asked, [['answer', 'r1', ['audio']]]);
  assert.ok(!isOpen('consent-dialog'));
  call.recording = recordingOf({ id: 'r2', readers: ['alice', 'server'] });
  view.show(call);
  assert.ok(isOpen('consent-dialog'), 'another recording is another question');
  call.recording = undefined;
  view.show(call);
  assert.ok(!isOpen('consent-dialog'));
});

test('the starter is not asked, and ends it; others withdraw, with or without their part, or agree after all', async (t) => {
  const tick = fakeTimers(t);
  call.recording = recordingOf({ isOwn: true, by: { user: 'bob', device: 'd' }, answer: ['audio'] });
  view.show(call);
  assert.ok(!isOpen('consent-dialog'));
  await press('recorded-action');
  call.recording = recordingOf({ answer: ['audio'] });
  view.show(call);
  await press('recorded-action');
  assert.ok(isOpen('withdraw-dialog'));
  await press('withdraw-erase');
  await press('withdraw-stop');
  call.recording = recordingOf({ answer: [] });
  view.show(call);
  await press('recorded-action');
  assert.ok(isOpen('consent-dialog'));
  tick(2_000);
  await press('consent-agree');
  assert.deepEqual(asked, [['stop'], ['answer', 'r1', [], { isErased: true }], ['answer', 'r1', [], { isErased: false }], ['answer', 'r1', ['audio', 'video', 'screen']]]);
});

test('a recording is begun for everybody who is in the call, or for oneself', async () => {
  view.show(call);
  assert.equal(byID('call-record').hidden, false);
  await press('call-record');
  assert.ok(isOpen('call-record-dialog'));
  Object.assign(byID('call-record-what'), { value: 'all' });
  Object.assign(byID('call-record-who'), { value: 'all' });
  await press('call-record-ask');
  Object.assign(byID('call-record-what'), { value: 'voices' });
  Object.assign(byID('call-record-who'), { value: 'own' });
  await press('call-record-ask');
  assert.deepEqual(asked, [['record', { media: ['audio', 'video', 'screen'], readers: ['alice'] }], ['record', { media: ['audio'], readers: [] }]]);
});

test('only people who may record see the button', () => {
  const seen = (facts) => {
    Object.assign(call, facts);
    view.show(call);
    return !byID('call-record').hidden;
  };
  assert.equal(seen({ user: 'guest~1' }), false);
  assert.equal(seen({ user: 'bob', facts: { policy: { record: 'initiator' }, others: [] } }), false);
  assert.equal(seen({ isInitiator: true }), true);
  assert.equal(seen({ facts: { policy: { record: 'nobody' }, others: [] } }), false);
  assert.equal(seen({ facts: { policy: {}, others: [] }, recording: recordingOf({ answer: [] }), isInitiator: false }), false, 'it is not theirs to stop');
  assert.equal(seen({ isInitiator: true }), true);
});
