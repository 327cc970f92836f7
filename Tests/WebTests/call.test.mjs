import assert from 'node:assert/strict';
import { test } from 'node:test';
import { callID } from './fake-browser.mjs';
import { fakeTimers, load } from './web.mjs';

const { Conclave } = await load('conclave.js');
const { Call } = await load('call/call.js');
const { Capture } = await load('capture.js');
const { encodeFrame } = await load('connection/stomp.js');
const { ServerPath } = await load('media/server-path.js');

const turns = async () => {
  for (let turn = 0; turn < 50; turn += 1) await undefined;
};

class Socket {
  static OPEN = 1;
  static last;

  constructor() {
    Socket.last = this;
  }

  close() {}
}
globalThis.WebSocket = Socket;

test('an event that comes again after `call.state` is handled, but only once', async () => {
  const conclave = new Conclave({ url: 'ws://h/', device: 'd', credentials: async () => ({ token: 't' }) });
  const rung = [];
  conclave.addEventListener('ring', ({ detail }) => rung.push(detail.call));
  conclave.connect();
  const say = async (event, seq, redelivered, body) => {
    const headers = { subscription: 'events', event, seq, ack: seq, redelivered };
    Socket.last.onmessage({ data: encodeFrame('MESSAGE', headers, JSON.stringify(body)) });
    await turns();
  };
  await say('call.state', 9, false, { call: 'other' });
  await say('call.ring', 5, true, { call: callID('c'), from: 'bob', media: 'audio', members: [], at: 0, expiresAt: 0 });
  await say('call.cancelled', 6, true, { call: callID('c') });
  await say('call.ring', 5, true, { call: callID('c'), from: 'bob', media: 'audio', members: [], at: 0, expiresAt: 0 });
  assert.deepEqual(rung, [callID('c')]);
  await say('call.state', 1, false, { call: 'other' });
  await say('call.ring', 5, true, { call: callID('after'), from: 'bob', media: 'audio', members: [], at: 0, expiresAt: 0 });
  await say('call.cancelled', 6, true, { call: callID('after') });
  assert.deepEqual(rung, [callID('c'), callID('after')]);
  conclave.close();
});

test('a recording that somebody grants to this device, and what is new about it, is told', async () => {
  const conclave = new Conclave({ url: 'ws://h/', device: 'd', credentials: async () => ({ token: 't' }) });
  const told = [];
  for (const name of ['recording', 'recording-news']) conclave.addEventListener(name, ({ detail }) => told.push(detail));
  conclave.connect();
  const facts = { recording: callID('r'), kind: 'message', by: { user: 'bob', device: 'phone' } };
  const news = { at: 8, recording: facts.recording };
  const events = [
    ['shared', { at: 7, ...facts, grant: {} }], ['shared', { ...facts, by: 'bob' }], ['shared', { ...facts, kind: 'own', alert: true }],
    ['reached', { ...news, by: facts.by }], ['reached', news], ['removed', news], ['changed', { ...news, state: 'running', reels: [] }],
  ];
  for (const [index, [name, body]] of events.entries()) {
    const seq = index + 1;
    Socket.last.onmessage({ data: encodeFrame('MESSAGE', { subscription: 'events', event: `recording.${name}`, seq, ack: seq, redelivered: false }, JSON.stringify(body)) });
    await turns();
  }
  conclave.close();
  assert.deepEqual(told, [
    { ...facts, isAlert: false, hasGrant: true }, { ...facts, kind: 'own', isAlert: true, hasGrant: false },
    { news: 'reached', ...news, by: facts.by }, { news: 'removed', ...news, by: undefined }, { news: 'changed', ...news, by: undefined },
  ]);
});

function openedTrack() {
  return { kind: 'video', isStopped: false, addEventListener() {}, stop() { this.isStopped = true; } };
}

test('sources that the browser opens after the call has ended are closed at once', async () => {
  for (const act of [(call) => call.setCamera(true), (call) => call.shareScreen(), (call) => call.capture({ camera: false })]) {
    const track = openedTrack();
    const stream = { getTracks: () => [track], getVideoTracks: () => [track], getAudioTracks: () => [] };
    let allow;
    const asked = new Promise((resolve) => (allow = () => resolve(stream)));
    const mediaDevices = { getUserMedia: () => asked, getDisplayMedia: () => asked };
    Object.defineProperty(globalThis, 'navigator', { value: { mediaDevices }, configurable: true });
    const call = new Call({ id: 'c', connection: { capture: new Capture() } });
    const done = act(call);
    call.giveUp();
    allow();
    await done;
    assert.equal(track.isStopped, true, String(act));
  }
});

class PeerConnection extends EventTarget {
  static last;
  connectionState = 'new';
  iceConnectionState = 'new';
  signalingState = 'stable';
  offers = [];

  constructor() {
    super();
    PeerConnection.last = this;
  }

  addTransceiver() {
    return { receiver: {}, sender: {}, setCodecPreferences() {} };
  }

  async createOffer(options) {
    this.offers.push(options);
    return { type: 'offer', sdp: '' };
  }

  async setLocalDescription({ type }) {
    this.localDescription = { sdp: '' };
    this.signalingState = type === 'rollback' ? 'stable' : 'have-local-offer';
  }

  async setRemoteDescription() {
    this.signalingState = 'stable';
  }

  ice(state) {
    this.iceConnectionState = state;
    this.dispatchEvent(new Event('iceconnectionstatechange'));
  }

  close() {}
}

function newMedia(t) {
  const tick = fakeTimers(t);
  globalThis.RTCPeerConnection = PeerConnection;
  globalThis.RTCRtpScriptTransform = class {};
  globalThis.RTCRtpReceiver = { getCapabilities: () => ({ codecs: [] }) };
  const server = { isAway: false };
  const request = async () => {
    if (server.isAway) throw new Error('away');
    return { sdp: '', tracks: [] };
  };
  const worker = { addEventListener() {}, postMessage() {}, terminate() {} };
  const media = new ServerPath({ worker, request });
  t.after(() => media.close());
  return { media, server, tick, pc: PeerConnection.last };
}

test('an offer for more slots without an answer is repeated on the next connection, but not after that', async (t) => {
  const { media, server, pc } = newMedia(t);
  await media.negotiate();
  server.isAway = true;
  assert.equal(media.want({ audio: 2, video: 2 }), true);
  await assert.rejects(media.negotiate());
  assert.equal(pc.signalingState, 'stable');
  server.isAway = false;
  media.resume();
  await turns();
  assert.equal(pc.offers.length, 3);
  media.resume();
  await turns();
  assert.equal(pc.offers.length, 3);
});

test('a call that was left while the browser opened the camera sends nothing, without an error', async (t) => {
  const { media, pc } = newMedia(t);
  pc.addTransceiver = () => {
    throw new Error('signalingState is closed');
  };
  media.close();
  await media.send('camera', { kind: 'video' });
  assert.equal(media.trackID('camera'), undefined);
});

test('an ICE restart without an answer is tried again, and then the path is lost', async (t) => {
  const { media, server, tick, pc } = newMedia(t);
  await media.negotiate();
  let losses = 0;
  media.addEventListener('lost', () => (losses += 1));
  server.isAway = true;
  pc.ice('failed');
  for (const restarts of [1, 2, 3]) {
    await turns();
    assert.deepEqual([pc.offers.filter(({ iceRestart }) => iceRestart).length, losses], [restarts, 0]);
    tick(8_000);
  }
  assert.equal(losses, 1);
  server.isAway = false;
  media.resume();
  await turns();
  assert.equal(pc.offers.at(-1).iceRestart, true);
  pc.ice('connected');
  tick(60_000);
  await turns();
  assert.deepEqual([pc.offers.length, losses], [5, 1]);
});

test('each change of the network restarts ICE at once', async (t) => {
  const { media, pc } = newMedia(t);
  let losses = 0;
  media.addEventListener('lost', () => (losses += 1));
  media.networkChanged();
  await turns();
  assert.equal(pc.offers.length, 0, 'there is no path yet');
  await media.negotiate();
  pc.ice('connected');
  for (const restarts of [1, 2, 3, 4, 5]) {
    media.networkChanged();
    await turns();
    assert.deepEqual([pc.offers.filter(({ iceRestart }) => iceRestart).length, losses], [restarts, 0]);
  }
});
