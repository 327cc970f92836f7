// The choice of camera, microphone and speaker, and how a call follows a change of it or of the devices.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { load, loadPage } from './web.mjs';

const { Capture, canBlur } = await load('capture.js');
const { Sending } = await load('media/sending.js');
globalThis.sessionStorage ??= {};
globalThis.localStorage ??= {};
const { buttonFor } = await loadPage('shortcuts.js');

/** A browser that opens what it is asked for; `wishes` has the requests. After `delay()` each request waits for `answer(index)`. */
function browserWith(t, { refuses = () => false, errorName = 'NotAllowedError', blur = false } = {}) {
  const before = Object.getOwnPropertyDescriptor(globalThis, 'navigator');
  const wishes = [];
  const tracks = [];
  let waiting;
  const getUserMedia = async (wish) => {
    wishes.push(wish);
    if (waiting) await new Promise((resolve) => waiting.push(resolve));
    if (refuses(wish)) throw Object.assign(new Error('Permission denied'), { name: errorName });
    const track = Object.assign(new EventTarget(), {
      kind: wish.video ? 'video' : 'audio',
      enabled: true,
      isStopped: false,
      applied: [],
      stop: () => void (track.isStopped = true),
      getCapabilities: () => (blur ? { backgroundBlur: [false, true] } : {}),
      applyConstraints: async (constraint) => void track.applied.push(constraint),
    });
    tracks.push(track);
    return { getTracks: () => [track] };
  };
  Object.defineProperty(globalThis, 'navigator', { value: { mediaDevices: { getUserMedia } }, configurable: true });
  t.after(() => before && Object.defineProperty(globalThis, 'navigator', before));
  return { wishes, tracks, delay: () => void (waiting = []), answer: (index) => waiting[index]() };
}

/** Waits until nothing is left to do without another answer of the browser. */
const settled = async () => {
  for (let turn = 0; turn < 20; turn += 1) await undefined;
};

const live = (tracks) => tracks.filter(({ isStopped }) => !isStopped);

/** Sends into a path that records what it is given. */
function sendingWith(capture) {
  const notices = [];
  const sent = [];
  const told = [];
  const tellMuted = async (_, isMuted) => void told.push(isMuted);
  const sending = new Sending({ capture, tellMuted });
  sending.addEventListener('notice', ({ detail }) => notices.push(detail));
  sending.path = { send: async (source, track) => sent.push([source, track]), trackID: () => '1.1', pause: async () => {}, negotiate: async () => {} };
  return { sending, notices, sent, told };
}

test('the camera is asked for a picture that the device can encode in layers', async (t) => {
  const { wishes } = browserWith(t);
  for (const processors of [undefined, 2, 7, 8, 16]) {
    navigator.hardwareConcurrency = processors;
    await new Capture().open('camera');
  }
  assert.deepEqual(wishes.map(({ video }) => [video.width.ideal, video.height.ideal]), [[960, 540], [960, 540], [960, 540], [1_280, 720], [1_280, 720]]);
});

test('with video first, a mode with enough frames is requested, the content hint is motion, and a change opens the camera again', async (t) => {
  const { wishes } = browserWith(t);
  const capture = new Capture();
  const changed = [];
  capture.addEventListener('change', ({ detail }) => changed.push(detail.source));
  const before = await capture.open('camera');
  capture.choose({ isVideoFirst: true });
  const [camera, microphone] = [await capture.open('camera'), await capture.open('microphone')];
  assert.deepEqual(changed, ['camera']);
  assert.deepEqual(wishes.map(({ video }) => video?.advanced), [undefined, [{ frameRate: { min: 20 } }], undefined]);
  assert.deepEqual([before, camera, microphone].map(({ contentHint }) => contentHint), [undefined, 'motion', undefined]);
  capture.choose({ isVideoFirst: false });
  assert.equal((await capture.open('camera')).contentHint, undefined);
});

test('a missing chosen device is replaced by another one, a refused one is not', async (t) => {
  const isChosen = ({ video }) => Boolean(video.deviceId);
  const gone = browserWith(t, { refuses: isChosen, errorName: 'OverconstrainedError' });
  const capture = new Capture();
  capture.choose({ camera: 'c2' });
  assert.equal((await capture.open('camera')).kind, 'video');
  assert.deepEqual(gone.wishes.map(({ video }) => video.deviceId), [{ exact: 'c2' }, undefined]);
  const refused = browserWith(t, { refuses: isChosen });
  await assert.rejects(capture.open('camera'), { name: 'NotAllowedError' });
  assert.equal(refused.wishes.length, 1);
});

test('a chosen device is asked for, and a phone’s other camera', async (t) => {
  const { wishes } = browserWith(t);
  const capture = new Capture();
  await capture.open('camera');
  assert.deepEqual(wishes[0].video.facingMode, { ideal: 'user' });
  capture.choose({ camera: 'c2', microphone: 'm2' });
  await capture.open('camera');
  await capture.open('microphone');
  assert.deepEqual([wishes[1].video.deviceId, wishes[2].audio.deviceId], [{ exact: 'c2' }, { exact: 'm2' }]);
  capture.flip();
  await capture.open('camera');
  assert.deepEqual([wishes[3].video.deviceId, wishes[3].video.facingMode], [undefined, { ideal: 'environment' }]);
});

test('a choice is reported once, for its source', () => {
  const capture = new Capture();
  const told = [];
  capture.addEventListener('change', ({ detail }) => told.push(detail.source));
  capture.choose({ camera: 'c2' });
  capture.choose({ camera: 'c2' });
  capture.choose({ speaker: 's2', microphone: 'm2' });
  assert.deepEqual(told, ['camera', 'microphone', 'speaker']);
});

test('the background is blurred where the browser can and the person wants it', async (t) => {
  browserWith(t, { blur: true });
  const capture = new Capture();
  assert.deepEqual((await capture.open('camera')).applied, []);
  capture.choose({ hasBlur: true });
  const track = await capture.open('camera');
  assert.deepEqual([track.applied, canBlur(track)], [[{ backgroundBlur: true }], true]);
  browserWith(t);
  assert.equal(canBlur(await capture.open('camera')), false);
});

test('a device that is chosen in a call replaces the previous one', async (t) => {
  const { tracks } = browserWith(t);
  const { sending, sent } = sendingWith(new Capture());
  await sending.capture({ camera: true });
  const [microphone] = tracks;
  await sending.reopen('microphone');
  assert.deepEqual([microphone.isStopped, sending.state('microphone').isOn], [true, true]);
  assert.deepEqual(sent.at(-1), ['microphone', tracks.at(-1)]);
});

test('a muted microphone stays muted when another is chosen, which is opened when the person unmutes', async (t) => {
  const { tracks, wishes } = browserWith(t);
  const { sending } = sendingWith(new Capture());
  await sending.capture({ camera: false });
  await sending.setMicrophone(false);
  await sending.reopen('microphone');
  assert.deepEqual([tracks[0].isStopped, sending.state('microphone').isOn, wishes.length], [true, false, 1]);
  await sending.setMicrophone(true);
  assert.deepEqual([sending.state('microphone').isOn, wishes.length], [true, 2]);
});

for (const order of [[0, 1], [1, 0]]) {
  test(`the last of two cameras chosen quickly is sent, and the other is closed; the browser opens them in the order ${order}`, async (t) => {
    const { tracks, wishes, delay, answer } = browserWith(t);
    const capture = new Capture();
    const { sending, sent } = sendingWith(capture);
    await sending.capture({ camera: true });
    delay();
    for (const camera of ['c2', 'c3']) {
      capture.choose({ camera });
      sending.reopen('camera');
      await settled();
    }
    const before = tracks.length;
    for (const index of order) {
      answer(index);
      await settled();
    }
    const last = tracks[before + order.indexOf(1)];
    assert.deepEqual(wishes.at(-1).video.deviceId, { exact: 'c3' });
    assert.deepEqual([sending.state('camera'), sent.at(-1)], [{ isOn: true, track: last }, ['camera', last]]);
    assert.deepEqual(live(tracks).filter(({ kind }) => kind === 'video'), [last]);
  });
}

test('muting while another microphone is being opened keeps it closed, and the others are told', async (t) => {
  const { tracks, delay, answer } = browserWith(t);
  const { sending, sent, told } = sendingWith(new Capture());
  await sending.capture({ camera: false });
  delay();
  sending.reopen('microphone');
  await settled();
  await sending.setMicrophone(false);
  answer(0);
  await settled();
  assert.deepEqual([tracks.length, live(tracks), sent], [2, [], []]);
  assert.deepEqual([sending.state('microphone').isOn, told], [false, [true]]);
});

test('a microphone that is muted while it is being added to the path stays muted for the others', async (t) => {
  const { tracks } = browserWith(t);
  const { sending, told } = sendingWith(new Capture());
  sending.path.send = async () => sending.setMicrophone(false);
  await sending.setMicrophone(true);
  assert.deepEqual([sending.state('microphone').isOn, tracks[0].enabled, told.at(-1)], [false, false, true]);
});

test('switching on while another device is being opened leaves one open, and none open after the call', async (t) => {
  const { tracks, delay, answer } = browserWith(t);
  const { sending } = sendingWith(new Capture());
  await sending.capture({ camera: false });
  delay();
  sending.reopen('microphone');
  sending.setMicrophone(true);
  await settled();
  for (const index of [0, 1]) {
    answer(index);
    await settled();
  }
  assert.deepEqual(live(tracks), [sending.state('microphone').track]);
  tracks.at(-1).dispatchEvent(new Event('ended'));
  await settled();
  sending.close();
  answer(2);
  await settled();
  assert.deepEqual([tracks.length, live(tracks)], [4, []]);
});

test('a device that is being opened when the call is held is opened when the call resumes', async (t) => {
  const { tracks, delay, answer } = browserWith(t);
  const { sending } = sendingWith(new Capture());
  await sending.capture({ camera: false });
  delay();
  sending.reopen('microphone');
  await sending.suspend();
  answer(0);
  await settled();
  assert.deepEqual([tracks.length, live(tracks)], [2, []]);
  sending.resume();
  await settled();
  answer(1);
  await settled();
  assert.deepEqual([sending.state('microphone').isOn, live(tracks)], [true, [tracks[2]]]);
});

test('an unplugged device is reported, and another is opened', async (t) => {
  const { tracks } = browserWith(t);
  const { sending, notices, sent } = sendingWith(new Capture());
  await sending.capture({ camera: false });
  tracks[0].dispatchEvent(new Event('ended'));
  await settled();
  assert.deepEqual(notices, [{ kind: 'lost-device', source: 'microphone' }]);
  assert.deepEqual([sending.state('microphone').track, sent.at(-1)[1]], [tracks[1], tracks[1]]);
  tracks[0].dispatchEvent(new Event('ended'));
  assert.equal(notices.length, 1, 'the end of the previous one is not reported');
});

test('a refused camera does not affect the microphone', async (t) => {
  browserWith(t, { refuses: ({ video }) => Boolean(video) });
  const { sending, notices } = sendingWith(new Capture());
  await sending.capture({ camera: true });
  assert.deepEqual([sending.state('microphone').isOn, sending.state('camera').isOn], [true, false]);
  assert.deepEqual(notices, [{ kind: 'no-device', source: 'camera', error: 'NotAllowedError' }]);
});

test('a key presses a button, but not in a text field or with a modifier', () => {
  const button = {};
  const field = { closest: (selector) => (selector.includes('input') ? field : null) };
  assert.equal(buttonFor({ key: 'm', target: button }), 'toggle-microphone');
  assert.equal(buttonFor({ key: 'M', target: button }), 'toggle-microphone');
  assert.equal(buttonFor({ key: 'm', target: field }), undefined);
  for (const modifier of ['ctrlKey', 'metaKey', 'altKey']) assert.equal(buttonFor({ key: 'm', target: button, [modifier]: true }), undefined);
  assert.equal(buttonFor({ key: 'x', target: button }), undefined);
});

/** A track of the app; its copies are in `copies`. */
function ownTrack() {
  const copies = [];
  const clone = () => {
    const copy = Object.assign(new EventTarget(), { kind: 'video', enabled: true, isStopped: false, stop: () => void (copy.isStopped = true) });
    copies.push(copy);
    return copy;
  };
  return { readyState: 'live', clone, copies };
}

test('a call without microphone and camera opens neither, and the microphone when it is switched on', async (t) => {
  const { wishes } = browserWith(t);
  const { sending, sent } = sendingWith(new Capture());
  await sending.capture({ camera: false, microphone: false });
  await sending.sendAll();
  assert.deepEqual([wishes, sent], [[], []]);
  await sending.setMicrophone(true);
  assert.deepEqual(sent.map(([source]) => source), ['microphone']);
});

test('an app’s track is sent as a copy instead of the camera, through off, on and hold, and another camera does not replace it', async (t) => {
  const { wishes } = browserWith(t);
  const { sending, sent } = sendingWith(new Capture());
  const own = ownTrack();
  await sending.capture({ camera: own, microphone: false });
  await sending.sendAll();
  assert.deepEqual(sent, [['camera', own.copies[0]]]);
  await sending.setCamera(false);
  assert.ok(own.copies[0].isStopped);
  await sending.setCamera(true);
  await sending.reopen('camera');
  await sending.suspend();
  assert.deepEqual(live(own.copies), []);
  await sending.resume();
  assert.deepEqual(live(own.copies), [sending.state('camera').track]);
  assert.deepEqual(wishes, []);
  sending.close();
  assert.deepEqual(live(own.copies), []);
});

test('a published track replaces the open camera, and the camera replaces it again', async (t) => {
  const { tracks } = browserWith(t);
  const { sending, sent } = sendingWith(new Capture());
  await sending.capture({ microphone: false });
  const own = ownTrack();
  await sending.publish('camera', own);
  assert.deepEqual([live(tracks), sent.at(-1)], [[], ['camera', own.copies[0]]]);
  await sending.publish('camera', undefined);
  assert.deepEqual([live(own.copies), sent.at(-1)], [[], ['camera', tracks[1]]]);
});

test('when the app’s track ends, no camera is opened unasked, and the others are told', async (t) => {
  const { wishes } = browserWith(t);
  const { sending, notices, told } = sendingWith(new Capture());
  const own = ownTrack();
  await sending.capture({ camera: own, microphone: false });
  own.copies[0].dispatchEvent(new Event('ended'));
  await settled();
  assert.deepEqual([wishes, notices, told], [[], [{ kind: 'lost-device', source: 'camera' }], [true]]);
  assert.equal(sending.state('camera').isOn, false);
  own.readyState = 'ended';
  await sending.publish('camera', own);
  assert.equal(notices.at(-1).error, 'InvalidStateError');
});

test('a refused offer is handled by its cause: the stay is over, the person is told, or it is silently repeated', async (t) => {
  browserWith(t);
  for (const [code, expected] of [['call.not-joined', ['gone']], ['media.bad-offer', ['media.bad-offer']], ['connection-lost', []]]) {
    const { sending, notices } = sendingWith(new Capture());
    const told = [];
    sending.addEventListener('gone', () => told.push('gone'));
    Object.assign(sending.path, { isSending: () => false, negotiate: async () => Promise.reject(Object.assign(new Error(code), { code })) });
    await sending.negotiate();
    assert.deepEqual([...told, ...notices.map(({ error }) => error)], expected, code);
  }
});
