// Videos that nobody looks at: how the server is told, and how the page knows why a picture is missing.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DESCRIPTOR, PeerConnection, browser } from './fake-browser.mjs';
import { load } from './web.mjs';

const { VideoWishes } = await load('media/video-wishes.js');
const { CallRequests } = await load('call/call-requests.js');
const { CallState } = await load('call/call-state.js');
const { ServerPath } = await load('media/server-path.js');
const { kidOf } = await load('wire/transcript.js');

const names = (count) => Array.from({ length: count }, (_, index) => `${index + 2}.2`);

const at = (height, ...tracks) => new Map(tracks.map((track) => [track, height]));

test('each change of the shown videos and their heights is sent once', () => {
  const wishes = new VideoWishes();
  const tell = (...wanted) => wishes.toTell(1, names(3), at(400, ...wanted));
  assert.deepEqual(tell(...names(3)), names(3).map((track) => ({ track, maxHeight: 540 })));
  assert.deepEqual(tell('2.2'), [{ track: '3.2', paused: true }, { track: '4.2', paused: true }]);
  assert.deepEqual(tell('2.2'), []);
  assert.deepEqual(tell('3.2'), [{ track: '2.2', paused: true }, { track: '3.2', paused: false }]);
  assert.deepEqual(wishes.toTell(1, names(3), at(150, '4.2')), [{ track: '3.2', paused: true }, { track: '4.2', paused: false, maxHeight: 180 }]);
});

test('a priority and its end are sent once, and again if the server was not reached', async () => {
  const asked = [];
  let isReached = true;
  const request = async (path, { videos }) => {
    if (!isReached) throw new Error('connection-lost');
    asked.push(videos);
  };
  const call = new CallRequests({ id: 'c', tracksOfOthers: names(2).map((track) => ({ track, kind: 'video' })) }, { request });
  call.participant = 1;
  const watch = (...priorities) => call.watch(at(90, ...names(2)), new Map(priorities));
  await watch(['3.2', 2]);
  await watch(['3.2', 2]);
  assert.deepEqual(asked, [[{ track: '2.2', maxHeight: 90 }, { track: '3.2', maxHeight: 90, priority: 2 }]]);
  isReached = false;
  await assert.rejects(watch(['2.2', 1]), /connection-lost/);
  isReached = true;
  await watch(['2.2', 1]);
  const whole = { paused: false, maxHeight: 90 };
  assert.deepEqual(asked.slice(1), [[{ track: '2.2', ...whole, priority: 1 }, { track: '3.2', ...whole, priority: 0 }]]);
  await call.watch(at(90, ...names(2)));
  assert.deepEqual(asked.slice(2), [[{ track: '2.2', priority: 0 }]]);
});

test('a tile’s size is sent in steps, never below the shown height, and within the limits of the protocol', () => {
  const wishes = new VideoWishes();
  const told = [];
  for (let height = 0; height <= 10_000; height += 1) {
    for (const { maxHeight } of wishes.toTell(1, ['2.2'], at(height, '2.2'))) {
      told.push(maxHeight);
      assert.ok(maxHeight >= Math.min(height, 4_320) && maxHeight >= 1 && maxHeight <= 65_535, `${maxHeight} for ${height}`);
    }
  }
  assert.deepEqual(told, [90, 180, 270, 360, 540, 720, 1_080, 1_440, 2_160, 4_320]);
});

test('after a join as another participant all wishes are sent again', () => {
  const wishes = new VideoWishes();
  wishes.toTell(1, names(2), at(90, '2.2'));
  assert.deepEqual(wishes.toTell(7, names(2), at(90, '2.2')), [{ track: '2.2', maxHeight: 90 }, { track: '3.2', paused: true }]);
});

test('one request names at most 64 videos, and the next one the rest', () => {
  const wishes = new VideoWishes();
  const told = [1, 2, 3].map(() => wishes.toTell(1, names(100), new Map()).length);
  assert.deepEqual(told, [64, 36, 0]);
});

test('muted participants are sent once, in one request with the videos, and again after a failure or under a new number', async () => {
  const asked = [];
  let isReached = true;
  const request = async (path, body) => {
    if (!isReached) throw new Error('connection-lost');
    asked.push(body);
  };
  const call = new CallRequests({ id: 'c', tracksOfOthers: [{ track: '2.2', kind: 'video' }] }, { request });
  call.participant = 1;
  await call.watch(at(90, '2.2'));
  await call.silence(3);
  await call.silence(3);
  assert.deepEqual(asked, [{ videos: [{ track: '2.2', maxHeight: 90 }] }, { muted: [3] }]);
  assert.deepEqual([call.isSilenced(3), call.isSilenced(2)], [true, false]);
  isReached = false;
  await assert.rejects(call.silence(2), /connection-lost/);
  isReached = true;
  await call.watch(at(90, '2.2'));
  assert.deepEqual(asked.slice(2), [{ muted: [2, 3] }]);
  call.participant = 7;
  await call.watch(at(90, '2.2'));
  assert.deepEqual(asked.slice(3), [{ videos: [{ track: '2.2', maxHeight: 90 }], muted: [2, 3] }]);
  await call.silence(2, false);
  await call.silence(3, false);
  assert.deepEqual(asked.slice(4), [{ muted: [3] }, { muted: [] }]);
});

test('one request names at most 64 muted participants', () => {
  const muted = new VideoWishes().mutedToTell(new Set(Array.from({ length: 100 }, (_, index) => index + 1)));
  assert.equal(muted.length, 64);
});

test('the server is told which videos are looked at, and again if it was not reached', async () => {
  const asked = [];
  let isReached = false;
  const request = async (path, body) => {
    asked.push([path, body]);
    if (!isReached) throw new Error('connection-lost');
  };
  const tracksOfOthers = [...names(2).map((track) => ({ track, kind: 'video' })), { track: '2.1', kind: 'audio' }];
  const call = new CallRequests({ id: 'c', tracksOfOthers }, { request });
  const told = [{ track: '2.2', maxHeight: 360 }, { track: '3.2', paused: true }];
  await assert.rejects(call.watch(at(300, '2.2')), /connection-lost/);
  isReached = true;
  await call.watch(at(300, '2.2'));
  await call.watch(at(300, '2.2'));
  const again = [{ track: '2.2', paused: false, maxHeight: 360 }, { track: '3.2', paused: true }];
  assert.deepEqual(asked, [told, again].map((videos) => ['calls/c/receive', { videos }]));
});

test('one request is pending at a time, and changes meanwhile go into the next one', async () => {
  const asked = [];
  const answers = [];
  const request = (path, { videos }) => {
    asked.push(videos);
    return new Promise((resolve) => answers.push(resolve));
  };
  const call = new CallRequests({ id: 'c', tracksOfOthers: [{ track: '2.2', kind: 'video' }] }, { request });
  const done = [100, 300, 200, 500].map((height) => call.watch(at(height, '2.2')));
  assert.deepEqual(asked, [[{ track: '2.2', maxHeight: 180 }]]);
  answers[0]();
  while (answers.length < 2) await undefined;
  assert.deepEqual(asked[1], [{ track: '2.2', maxHeight: 540 }]);
  answers[1]();
  await Promise.all(done);
  assert.equal(asked.length, 2);
});

test('a notice says that somebody has stopped sharing a screen, but not that this device has', () => {
  const facts = new CallState({ user: 'alice', device: 'd' });
  const id = '00000000-0000-4000-8000-000000000000';
  const screen = (participant) => ({ track: `${participant}.3`, source: 'screen', kind: 'video', muted: false });
  const joined = (user, participant) => ({ user, state: 'joined', participants: [{ participant, device: 'd', tracks: [screen(participant)] }] });
  facts.take({ id, state: 'active', media: 'video', initiator: 'alice', startedAt: 0, epoch: 1, members: [joined('alice', 1), joined('bob', 2)] });
  assert.equal(facts.trackRemoved({ track: '1.3', participant: 1 }), undefined);
  assert.deepEqual(facts.trackRemoved({ track: '2.3', participant: 2 }).kind, 'screen-stopped');
  assert.equal(facts.trackRemoved({ track: '2.3', participant: 2 }), undefined, 'once');
});

test('a picture is awaited while frames in its slot do not open, unsent while none arrive, and unsupported if the server says so', async (t) => {
  browser();
  const worker = Object.assign(new EventTarget(), { postMessage() {}, terminate() {} });
  const receive = [{ mid: '1', track: '2.2' }];
  const media = new ServerPath({ worker, participant: 1, request: async () => ({ sdp: '', tracks: [], receive, unsupported: ['4.2'], rev: 1 }) });
  t.after(() => media.close());
  await media.negotiate();
  const states = () => [2, 3, 4].map((participant) => media.pictureOf(participant, 2));
  assert.deepEqual(states(), ['unsent', 'unsent', 'unsupported']);
  worker.dispatchEvent(Object.assign(new Event('message'), { data: { type: 'report', slots: [{ name: 'slot-1', opened: 0, failed: 3, foreign: 0 }] } }));
  assert.deepEqual(states(), ['awaited', 'unsent', 'unsupported']);
});

test('a picture that the server limits is lower while it is shown, and paused while none of it arrives', async (t) => {
  browser();
  const worker = Object.assign(new EventTarget(), { postMessage() {}, terminate() {} });
  const receive = ['2.2', '3.2', '4.2'].map((track, index) => ({ mid: `${index + 1}`, track, ...(index < 2 ? { picture: 'lower' } : { picture: 'paused' }) }));
  const media = new ServerPath({ worker, participant: 1, request: async () => ({ sdp: '', tracks: [], receive, unsupported: [], rev: 1 }) });
  t.after(() => media.close());
  await media.negotiate();
  const states = () => [2, 3, 4].map((participant) => media.pictureOf(participant, 2));
  assert.deepEqual(states(), ['unsent', 'unsent', 'paused'], 'a lower picture of which nothing has opened is not shown');
  worker.dispatchEvent(Object.assign(new Event('message'), { data: { type: 'opened', name: 'slot-1', kid: kidOf(2, 2, 1) } }));
  assert.deepEqual(states(), ['lower', 'unsent', 'paused']);
  media.showSlots({ rev: 2, receive: [{ mid: '1', track: '2.2' }], unsupported: [] });
  assert.deepEqual(states(), ['shown', 'unsent', 'unsent']);
});

test('video slots offer dependency descriptors, and nothing else in the offer changes', async (t) => {
  browser();
  const worker = Object.assign(new EventTarget(), { postMessage() {}, terminate() {} });
  const media = new ServerPath({ worker, participant: 1, request: async () => ({ sdp: '', tracks: [], receive: [], unsupported: [], rev: 1 }) });
  t.after(() => media.close());
  await media.negotiate();
  const { transceivers } = PeerConnection.all.at(-1);
  assert.deepEqual(new Set(transceivers.map(({ kind }) => kind)), new Set(['audio', 'video']));
  for (const { kind, extensions } of transceivers) {
    const taken = extensions.filter(({ direction }) => direction !== 'stopped').map(({ uri }) => uri);
    assert.deepEqual(taken, ['urn:ietf:params:rtp-hdrext:sdes:mid', ...(kind === 'video' ? [DESCRIPTOR] : [])]);
  }
});

test('frames that do not open are reported if that lasts, but not for a key that comes a little late', async (t) => {
  browser();
  const worker = Object.assign(new EventTarget(), { postMessage() {}, terminate() {} });
  const media = new ServerPath({ worker, participant: 1, request: async () => ({ sdp: '', tracks: [], receive: [], unsupported: [], rev: 1 }) });
  t.after(() => media.close());
  await media.negotiate();
  const told = [];
  media.addEventListener('failures', ({ detail }) => told.push(detail.count));
  const report = (failed, opened) => worker.dispatchEvent(Object.assign(new Event('message'), { data: { type: 'report', slots: [{ name: 'slot-0', opened, failed, foreign: 0 }], tracks: [] } }));
  for (const [failed, opened] of [[18, 20], [40, 25], [40, 75], [41, 120]]) report(failed, opened);
  assert.deepEqual(told, [], 'after two seconds all opens');
  for (const failed of [60, 80, 100]) report(failed, 120);
  assert.deepEqual(told, [20, 20], 'from the third second on');
});

test('an offer has one spare audio slot, up to eight slots', async (t) => {
  browser();
  const worker = Object.assign(new EventTarget(), { postMessage() {}, terminate() {} });
  const media = new ServerPath({ worker, participant: 1, request: async () => ({ sdp: '', tracks: [], receive: [], unsupported: [], rev: 1 }) });
  t.after(() => media.close());
  const slots = () => PeerConnection.all.at(-1).transceivers.filter(({ kind }) => kind === 'audio').length;
  const microphones = (count) => Array.from({ length: count }, (_, index) => ({ track: `${index + 2}.1`, kind: 'audio' }));
  media.wantFor([]);
  await media.negotiate();
  assert.equal(slots(), 1, 'for the first words of the first participant to join');
  for (const [count, expected] of [[1, 2], [6, 7], [7, 8], [9, 8]]) {
    media.wantFor(microphones(count));
    await media.negotiate();
    assert.equal(slots(), expected);
  }
});
