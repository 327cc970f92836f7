// A path that is too poor for the camera: how it is recognized, and what the call does. Time is an argument.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeServer, PeerConnection, browser, callID } from './fake-browser.mjs';
import { aside, load, until } from './web.mjs';

browser();
const { Calls } = await load('call/calls.js');
const { Uplink } = await load('media/uplink.js');

/** A path whose measurements are judged one by one, 2 s apart; `judge({…})` describes the time since the previous one. */
function path({ hasEstimate = true } = {}) {
  const uplink = new Uplink();
  const sums = { packets: 0, bytes: 0, lost: 0 };
  let now = 0;
  const judge = ({ rate = 1_500_000, loss = 0, roundTrip = 40, packets = 400, isCameraOn = true } = {}) => {
    now += 2_000;
    sums.packets += packets;
    sums.bytes += rate / 4;
    sums.lost += Math.round(packets * loss);
    const reports = [
      { type: 'outbound-rtp', kind: 'audio', packetsSent: Math.floor(sums.packets / 4), bytesSent: 1_000 },
      { type: 'outbound-rtp', kind: 'video', packetsSent: sums.packets - Math.floor(sums.packets / 4), bytesSent: sums.bytes },
      { type: 'remote-inbound-rtp', packetsLost: sums.lost },
      { type: 'candidate-pair', nominated: false, currentRoundTripTime: 3 },
      { type: 'candidate-pair', nominated: true, currentRoundTripTime: roundTrip / 1_000, ...(hasEstimate ? { availableOutgoingBitrate: rate } : {}) },
    ];
    return uplink.judge(now, reports, { isCameraOn });
  };
  /** The number of such measurements after which the judgement changes; undefined if it does not. */
  const changesAfter = (kind, most = 100) => {
    for (let count = 1; count <= most; count += 1) if (judge(kind)) return count;
    return undefined;
  };
  judge();
  return { uplink, judge, changesAfter };
}

test('a narrow path that loses or delays packets is poor after exactly 8 s, and so is one without bandwidth for video', () => {
  for (const kind of [{ rate: 300_000, loss: 0.15 }, { rate: 300_000, roundTrip: 600 }, { rate: 90_000 }]) {
    const { uplink, changesAfter } = path();
    assert.equal(changesAfter(kind), 5, JSON.stringify(kind)); // four times 2 s after the first of them
    assert.equal(uplink.isPoor, true);
  }
});

test('a narrow path that carries all packets, a wide one that loses some, and a long one are not poor', () => {
  for (const kind of [{ rate: 300_000 }, { rate: 1_500_000, loss: 0.15 }, { rate: 300_000, loss: 0.05 }]) assert.equal(path().changesAfter(kind), undefined, JSON.stringify(kind));
  const satellite = new Uplink();
  const report = (packetsSent) => [{ type: 'outbound-rtp', packetsSent }, { type: 'candidate-pair', nominated: true, currentRoundTripTime: 0.7, availableOutgoingBitrate: 300_000 }];
  for (let step = 1; step < 100; step += 1) assert.equal(satellite.judge(step * 2_000, report(step * 100), { isCameraOn: true }), false);
});

test('one better measurement restarts the 8 s', () => {
  const { judge, changesAfter } = path();
  const poor = { rate: 90_000, loss: 0.15 };
  for (let round = 0; round < 20; round += 1) {
    assert.equal(changesAfter(poor, 4), undefined);
    assert.equal(judge(), false);
  }
});

test('without a camera no path is too poor for it', () => {
  const { changesAfter } = path();
  assert.equal(changesAfter({ rate: 90_000, loss: 0.3, isCameraOn: false }), undefined);
});

test('a poor path is good after 20 s of intact sound, and only then can become poor again', () => {
  const { uplink, changesAfter } = path();
  const poor = { rate: 90_000, loss: 0.15 };
  const voice = { rate: 0, packets: 100, isCameraOn: false };
  changesAfter(poor);
  assert.equal(changesAfter(poor), undefined, 'the person turned the camera on again knowingly');
  assert.equal(changesAfter({ ...voice, loss: 0.05 }), undefined);
  assert.equal(changesAfter({ ...voice, roundTrip: 400 }), undefined);
  assert.equal(changesAfter(voice), 11);
  assert.equal(uplink.isPoor, false);
  assert.equal(changesAfter(poor), 5);
});

test('if the browser does not report its available bitrate, the camera’s sent bitrate counts', () => {
  assert.equal(path({ hasEstimate: false }).changesAfter({ rate: 90_000, loss: 0.15 }), 5);
  for (const kind of [{ rate: 600_000, loss: 0.15 }, { rate: 50_000 }]) assert.equal(path({ hasEstimate: false }).changesAfter(kind), undefined, 'perhaps a still picture');
});

test('a measurement with hardly anything sent, or without numbers, is ignored', () => {
  const { changesAfter } = path();
  assert.equal(changesAfter({ rate: 90_000, loss: 1, packets: 8 }), undefined);
  const uplink = new Uplink();
  const odd = [[], [{ type: 'outbound-rtp' }], [{ type: 'remote-inbound-rtp', packetsLost: -5 }], [{ type: 'candidate-pair', nominated: true }]];
  for (const [step, reports] of odd.entries()) assert.equal(uplink.judge(step, reports, { isCameraOn: true }), false);
});

/** A call with a camera on a path that becomes poor, and what the person is told. */
async function callOnPoorPath(t, { isVideoFirst }) {
  const intervals = [];
  const { setInterval } = globalThis;
  globalThis.setInterval = (action, ms) => (ms === 2_000 ? intervals.push(action) : setInterval(action, ms));
  const { now } = performance;
  const clock = { ms: now.call(performance) };
  performance.now = () => clock.ms;
  t.after(() => {
    globalThis.setInterval = setInterval;
    delete performance.now;
  });
  const server = new FakeServer('alice', 'laptop');
  const connection = await server.connection();
  connection.capture.choose({ isVideoFirst });
  const calls = new Calls(connection);
  t.after(() => calls.current?.giveUp());
  server.running(callID('c'));
  const call = await calls.add('accept', { id: callID('c') });
  await until(() => call.local('camera').isOn && server.count('/media') > 0);
  await aside();
  const told = [];
  call.addEventListener('notice', ({ detail }) => told.push(detail.kind));
  let packetsSent = 0;
  PeerConnection.all.at(-1).getStats = async () => {
    packetsSent += 400;
    const reports = [{ type: 'outbound-rtp', kind: 'video', packetsSent }, { type: 'candidate-pair', nominated: true, availableOutgoingBitrate: 90_000 }];
    return new Map(reports.entries());
  };
  for (let step = 0; step < 10; step += 1) {
    clock.ms += 2_000;
    for (const action of intervals) action();
    await aside();
  }
  return { call, told };
}

test('on a poor path the camera is turned off in favour of the sound', async (t) => {
  const { call, told } = await callOnPoorPath(t, { isVideoFirst: false });
  assert.deepEqual([told, call.local('camera').isOn], [['weak-uplink'], false]);
});

test('with video first the camera stays on, and the person is told', async (t) => {
  const { call, told } = await callOnPoorPath(t, { isVideoFirst: true });
  assert.deepEqual([told, call.local('camera').isOn, call.local('camera').track.isStopped], [['weak-picture'], true, false]);
});
