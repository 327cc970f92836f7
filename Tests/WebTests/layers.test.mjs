// The camera in layers: what is offered and encoded, and what the server may ask for.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeServer, LAYER_IDS, PeerConnection, browser, callID } from './fake-browser.mjs';
import { aside, load, until } from './web.mjs';

browser();
const { Calls } = await load('call/calls.js');
const { Refusal } = await load('wire/checks.js');
const { ServerPath } = await load('media/server-path.js');

const warned = [];
console.warn = (text) => warned.push(text);

const LAYERS = 'a=simulcast:recv q;h;f\r\n';
/** Waits until nothing is left to do without another answer of the server: a change of the sender takes one turn. */
const settled = () => aside(20);
const camera = (height, width = (height * 16) / 9) => ({ kind: 'video', getSettings: () => ({ width, height }) });

/** Sends `track` as the camera to a server that answers with `sdp`, in a browser with the given PeerConnection. */
async function sends(t, track, { sdp = LAYERS, Connection = PeerConnection } = {}) {
  warned.length = 0;
  globalThis.RTCPeerConnection = Connection;
  t.after(() => Object.assign(globalThis, { RTCPeerConnection: PeerConnection }));
  const server = { sdp };
  const request = async ({ tracks }) => ({ sdp: server.sdp, tracks: tracks.map(({ mid }) => ({ mid, track: `1.${Number(mid) + 1}` })), receive: [], rev: 0 });
  const worker = { addEventListener() {}, postMessage() {}, terminate() {} };
  const media = new ServerPath({ worker, participant: 1, request });
  t.after(() => media.close());
  await media.send('camera', track);
  const pc = PeerConnection.all.at(-1);
  const offered = structuredClone(pc.camera.encodings);
  await media.negotiate();
  await settled();
  return { media, server, sender: pc.camera, offered, want: (...layers) => media.wantLayers({ track: '1.1', layers }) };
}

const shapes = (encodings) => encodings.map(({ rid, scaleResolutionDownBy, maxBitrate }) => [rid, scaleResolutionDownBy, maxBitrate]);
const active = ({ encodings }) => encodings.map((encoding) => encoding.active);
const q = (isActive) => ({ rid: 'q', active: isActive });
const h = (isActive) => ({ rid: 'h', active: isActive });

const THREE = [['q', 4, 150_000], ['h', 2, 500_000], ['f', 1, 1_700_000]];
const TWO = [['q', 2, 325_000], ['h', 1, 1_100_000]];

for (const [name, track, expected] of [
  ['540 pixels', camera(540), TWO],
  ['720 pixels', camera(720), THREE],
  ['720 pixels, held upright', camera(1_280, 720), THREE],
  ['a camera that is off', null, TWO],
  ['a track without settings', { kind: 'video' }, TWO],
]) {
  test(`the camera is offered in layers, the lowest first: ${name}`, async (t) => {
    const { offered, sender } = await sends(t, track);
    assert.deepEqual(shapes(offered), expected);
    assert.deepEqual([shapes(sender.encodings), active(sender)], [expected, expected.map(() => true)], 'and does not change');
    assert.deepEqual([sender.changes, warned], [0, []]);
  });
}

test('the layers have their ids, whatever was negotiated for the slots before the camera', async (t) => {
  await sends(t, camera(540));
  const withIDs = PeerConnection.all.at(-1).transceivers.filter(({ extensions }) => LAYER_IDS.every((id) => extensions.some(({ uri, direction }) => uri === id && direction === 'sendrecv')));
  assert.deepEqual(withIDs.map(({ kind, direction }) => [kind, direction]), [['video', 'sendonly']]);
});

test('a camera that is off is offered in the layers of the picture that will be requested', async (t) => {
  navigator.hardwareConcurrency = 8;
  t.after(() => delete navigator.hardwareConcurrency);
  const { offered } = await sends(t, null);
  assert.deepEqual(shapes(offered), THREE);
});

test('a motion picture keeps its frame rate, has at most 720 lines, and the next one is balanced by the browser', async (t) => {
  const signing = { ...camera(1_080), contentHint: 'motion' };
  const { media, sender, offered, want } = await sends(t, signing);
  const shrunk = [['q', 6, 150_000], ['h', 3, 500_000], ['f', 1.5, 1_700_000]];
  assert.deepEqual([shapes(offered), shapes(sender.encodings), sender.preference], [shrunk, shrunk, 'maintain-framerate']);
  const { changes } = sender;
  await media.negotiate();
  await settled();
  assert.equal(sender.changes, changes, 'once: a browser may not report it');
  want(q(true), h(true), { rid: 'f', active: false });
  await settled();
  assert.deepEqual([active(sender), sender.preference], [[true, true, false], 'maintain-framerate']);
  await media.send('camera', camera(720));
  await settled();
  assert.deepEqual([shapes(sender.encodings), sender.preference, warned], [THREE, 'balanced', []]);
  const small = await sends(t, { ...camera(540), contentHint: 'motion' });
  assert.deepEqual([shapes(small.sender.encodings), small.sender.preference], [TWO, 'maintain-framerate']);
});

test('a motion camera that is switched on later keeps its frame rate, too', async (t) => {
  const { media, sender } = await sends(t, null);
  assert.equal(sender.preference, undefined);
  await media.send('camera', { ...camera(540), contentHint: 'motion' });
  await settled();
  assert.equal(sender.preference, 'maintain-framerate');
});

test('a screen and a microphone are sent in one encoding', async (t) => {
  const { media } = await sends(t, camera(540));
  await media.send('screen', { kind: 'video' });
  await media.send('microphone', { kind: 'audio' });
  const [, screen, microphone] = PeerConnection.all.at(-1).transceivers.filter(({ direction }) => direction === 'sendonly');
  assert.deepEqual([screen, microphone].map(({ sender }) => sender.encodings.map(({ rid }) => rid)), [[undefined], [undefined]]);
});

test('an answer without layers leaves the whole picture in one encoding, even if it is a later answer', async (t) => {
  const whole = [['q', 1, 1_100_000]];
  const { sender } = await sends(t, camera(540), { sdp: '' });
  assert.deepEqual([shapes(sender.encodings), active(sender)], [whole, [true]]);
  const later = await sends(t, camera(540));
  later.want(q(false), h(true));
  later.server.sdp = '';
  await later.media.negotiate();
  await settled();
  assert.deepEqual([shapes(later.sender.encodings), active(later.sender)], [whole, [true]], 'the layer that is left is on');
});

test('a browser that refuses or ignores layers sends the whole picture in one encoding', async (t) => {
  class Refusing extends PeerConnection {
    addTransceiver(track, options) {
      if (options.sendEncodings?.length > 1) throw new TypeError('sendEncodings');
      return super.addTransceiver(track, options);
    }
  }
  class Ignoring extends PeerConnection {
    addTransceiver(track, { direction }) {
      return super.addTransceiver(track, { direction });
    }
  }
  for (const Connection of [Refusing, Ignoring]) {
    const { sender, want } = await sends(t, camera(540), { Connection });
    assert.deepEqual([shapes(sender.encodings), active(sender)], [[[undefined, 1, 1_100_000]], [true]], Connection.name);
    for (const layers of [[q(true), h(false)], [q(false)], []]) assert.throws(() => want(...layers), Refusal, Connection.name);
  }
});

test('another camera in the same sender has layers for its own height, and the demand stays', async (t) => {
  const { media, sender, want } = await sends(t, camera(540));
  want(q(true), h(false));
  await media.pause('camera');
  await media.send('camera', camera(720));
  await settled();
  assert.deepEqual(shapes(sender.encodings), [['q', 2, 500_000], ['h', 1, 1_700_000]]);
  assert.deepEqual([active(sender), sender.track.getSettings().height], [[true, false], 720]);
});

test('layers that nobody receives are not encoded, even after a new offer, and resume when they are wanted', async (t) => {
  const { media, sender, want } = await sends(t, camera(540));
  want(q(true), h(false));
  await settled();
  assert.deepEqual(active(sender), [true, false]);
  await media.negotiate();
  await settled();
  assert.deepEqual(active(sender), [true, false]);
  want(q(false), h(false));
  await settled();
  assert.deepEqual(active(sender), [false, false], 'of a camera that has no slot');
  want(q(true), h(true));
  await settled();
  assert.deepEqual([active(sender), warned], [[true, true], []]);
});

test('the last of several demands in a row is carried out, with one change of the sender at a time', async (t) => {
  const { media, sender, want } = await sends(t, camera(540));
  for (const isWanted of [false, true, false, true, false]) want(q(true), h(isWanted));
  const negotiated = media.negotiate();
  await settled();
  await negotiated;
  assert.deepEqual([active(sender), warned], [[true, false], []]);
  assert.ok(sender.changes <= 2, String(sender.changes));
});

test('a change that the browser refuses is reported, and the next one is made', async (t) => {
  const { sender, want } = await sends(t, camera(540));
  const { setParameters } = sender;
  sender.setParameters = async () => {
    throw Object.assign(new Error('x'), { name: 'OperationError' });
  };
  want(q(true), h(false));
  await settled();
  assert.deepEqual([active(sender), warned.length], [[true, true], 1]);
  sender.setParameters = setParameters;
  want(q(true), h(false));
  await settled();
  assert.deepEqual(active(sender), [true, false]);
});

test('when events were lost all layers are sent, until the server says otherwise', async (t) => {
  const { media, sender, want } = await sends(t, camera(540));
  want(q(true), h(false));
  await settled();
  media.resume();
  await settled();
  assert.deepEqual(active(sender), [true, false], 'nothing was lost');
  media.resume({ isStale: true });
  await settled();
  assert.deepEqual(active(sender), [true, true]);
});

test('demands for unsent layers, in another order or number, or for another track change nothing', async (t) => {
  const { media, sender, want } = await sends(t, camera(540));
  await media.send('screen', { kind: 'video' });
  await media.negotiate();
  const off = [q(false), h(false)];
  for (const layers of [
    [],
    [q(false)],
    [h(false), q(false)],
    [q(false), q(false)],
    [q(false), h(false), { rid: 'f', active: false }],
    Array.from({ length: 100_000 }, () => q(false)),
    [q(false), { rid: 'x', active: false }],
    [q(false), { rid: 'h' }],
    [q(false), h(0)],
    [q(false), h('false')],
    [q(false), null],
    [null, null],
  ]) {
    assert.throws(() => want(...layers), Refusal, JSON.stringify(layers).slice(0, 80));
  }
  for (const layers of [undefined, null, 'q;h', { 0: q(false), 1: h(false), length: 2 }]) assert.throws(() => media.wantLayers({ track: '1.1', layers }), Refusal);
  for (const track of [undefined, null, '', '1.2', '2.1', '1.01', 1.1, media.trackID('screen')]) assert.throws(() => media.wantLayers({ track, layers: off }), Refusal, String(track));
  await settled();
  assert.deepEqual([active(sender), sender.changes], [[true, true], 0]);
  await media.remove('camera');
  await media.negotiate();
  assert.throws(() => want(...off), Refusal, 'of a camera that is gone');
});

test('the event reaches its call’s camera, an invalid one is refused, and a rejoin begins with all layers', async (t) => {
  const server = new FakeServer('alice', 'laptop');
  server.answer = LAYERS;
  const calls = new Calls(await server.connection());
  t.after(() => calls.current?.giveUp());
  server.running(callID('c'));
  const call = await calls.add('accept', { id: callID('c') });
  const cameraTrack = () => {
    const { transceivers, camera: own } = PeerConnection.all.at(-1);
    const index = transceivers.findIndex((transceiver) => transceiver.sender === own);
    return `${call.participant}.${index + 1}`;
  };
  await until(() => server.count('/media') > 0);
  await settled();
  const { camera: sender } = PeerConnection.all.at(-1);
  await call.handle('media.wanted', { track: cameraTrack(), layers: [q(true), h(false)] });
  await settled();
  assert.deepEqual(active(sender), [true, false]);
  await assert.rejects(call.handle('media.wanted', { track: cameraTrack(), layers: [q(true), h(1)] }), Refusal);
  await settled();
  assert.deepEqual(active(sender), [true, false]);
  await call.rejoin();
  await settled();
  const { camera: next } = PeerConnection.all.at(-1);
  assert.notEqual(next, sender);
  assert.deepEqual(active(next), [true, true]);
});
