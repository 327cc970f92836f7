// A call knows its path only by the interface: any object with these members will do.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeServer, browser, callID } from './fake-browser.mjs';
import { load, until } from './web.mjs';

browser();
const { Call } = await load('call/call.js');
const { PATH_EVENTS } = await load('media/media-path.js');
const { RequestError } = await load('connection/stomp.js');

console.warn = () => {};

/** A `MediaPath` without a network: a sent source has a track after a negotiation, and each call of a member is recorded. */
class NotedPath extends EventTarget {
  connection = 'new';
  firstFrameMs = undefined;
  audioTracks = [];
  speaking = new Set();
  noted = [];
  shown = new Map();
  /** The errors with which the next negotiations fail. */
  failures = [];
  isClosed = false;
  #sources = new Map();

  constructor(options) {
    super();
    this.options = options;
  }

  async send(source, track, { replace = false } = {}) {
    this.noted.push(['send', source, Boolean(track), replace]);
    if (!this.#sources.get(source)) this.#sources.set(source, '');
  }

  async pause(source) {
    this.noted.push(['pause', source]);
  }

  async remove(source) {
    this.noted.push(['remove', source]);
    this.#sources.delete(source);
  }

  isSending(source) {
    return this.#sources.has(source);
  }

  trackID(source) {
    return this.#sources.get(source) || undefined;
  }

  wantLayers(told) {
    this.noted.push(['layers', told.track]);
  }

  want(counts) {
    this.noted.push(['want', counts.audio, counts.video]);
    return true;
  }

  wantFor(tracks) {
    this.noted.push(['want for', tracks.length]);
    return true;
  }

  showSlots(map) {
    this.noted.push(['slots', map.rev]);
  }

  videoOf(participant, n) {
    return this.shown.get(`${participant}.${n}`);
  }

  pictureOf(participant, n) {
    return this.shown.has(`${participant}.${n}`) ? 'shown' : 'unsent';
  }

  async negotiate() {
    this.noted.push(['negotiate']);
    const error = this.failures.shift();
    if (error) throw error;
    for (const [at, source] of [...this.#sources.keys()].entries()) this.#sources.set(source, `${this.options.participant}.${at + 1}`);
  }

  resume({ isStale = false } = {}) {
    this.noted.push(['resume', isStale]);
  }

  networkChanged() {
    this.noted.push(['network']);
  }

  async statistics() {
    return [];
  }

  close() {
    this.isClosed = true;
  }

  /** The calls of its members since the last query, in order. */
  take() {
    return this.noted.splice(0).map((row) => row.join(' '));
  }
}

/** Alice's laptop in a call with Bob over a `NotedPath`. */
async function inCall(t, { camera = true } = {}) {
  const server = new FakeServer('alice', 'laptop');
  const id = callID('any path');
  server.running(id);
  const paths = [];
  const openPath = (options) => paths[paths.push(new NotedPath(options)) - 1];
  const hurried = [];
  const connection = Object.assign(await server.connection(), { hurry: () => hurried.push('hurry') });
  const call = new Call({ id, connection, openPath });
  t.after(() => call.giveUp());
  await call.join('accept');
  await call.capture({ camera });
  await call.sendCaptured();
  return { call, paths, path: paths[0], hurried };
}

const refused = (code) => new RequestError({ code, message: code });

test('a call opens its path once it has joined, and sends its captured media with one negotiation', async (t) => {
  const { call, paths, path } = await inCall(t);
  assert.equal(paths.length, 1);
  assert.equal(path.options.participant, call.participant);
  assert.deepEqual(path.take(), ['want for 0', 'send microphone true false', 'send camera true false', 'negotiate']);
  await call.setCamera(false);
  assert.deepEqual(path.take(), ['pause camera']);
  await call.setCamera(true);
  assert.deepEqual(path.take(), ['send camera true false'], 'the track exists already');
});

test('the state, the audio and the video of a call are those of its path', async (t) => {
  const { call, path, hurried } = await inCall(t);
  assert.equal(call.path, 'connecting');
  path.connection = 'connected';
  path.dispatchEvent(new Event('connection'));
  assert.equal(call.path, 'connected');
  path.connection = 'disconnected';
  path.dispatchEvent(new Event('connection'));
  assert.equal(call.path, 'reconnecting');
  assert.equal(hurried.length, 1, 'the connection to the server may be lost, too');
  const sound = {};
  path.audioTracks = [sound];
  path.speaking = new Set([0, 7]);
  assert.equal(call.audioTracks[0], sound);
  assert.deepEqual(call.speaking, new Set([0, 7, call.participant]));
  const bob = call.members.get('bob').participants[0];
  await call.handle('track.added', { rev: 1, track: `${bob.participant}.2`, participant: bob.participant, source: 'camera', kind: 'video', muted: false });
  const picture = {};
  path.shown.set(`${bob.participant}.2`, picture);
  const tile = call.tiles().find(({ participant, source }) => participant === bob.participant && source === 'camera');
  assert.deepEqual([tile.video, tile.picture], [picture, 'shown']);
});

test('the server’s events about slots and layers, and changes of network, reach the path', async (t) => {
  const { call, path } = await inCall(t);
  path.take();
  await call.handle('media.slots', { rev: 3, receive: [] });
  await call.handle('media.wanted', { track: '2.2', layers: [] });
  await call.handle('media.need', { audio: 2, video: 1 });
  call.networkChanged();
  await call.connectionReady({ hasMissed: true });
  assert.deepEqual(path.take(), ['slots 3', 'layers 2.2', 'want 2 1', 'negotiate', 'network', 'resume true']);
});

test('a screen that the server refuses ends and is an error for the person; the call handles any other failure', async (t) => {
  const { call, path } = await inCall(t);
  const notices = [];
  call.addEventListener('notice', ({ detail }) => notices.push(`${detail.kind} ${detail.error}`));
  const made = { contentHint: '', addEventListener() {}, stop() {} };
  const stream = { clone: () => ({ getVideoTracks: () => [made], getAudioTracks: () => [] }) };
  path.take();
  path.failures.push(refused('screen.busy'));
  await assert.rejects(call.shareScreen({ stream }), { code: 'screen.busy' });
  assert.deepEqual(path.take(), ['send screen true false', 'negotiate', 'remove screen', 'remove screen-audio', 'negotiate']);
  assert.deepEqual([call.local('screen').isOn, notices], [false, []]);
  await call.shareScreen({ stream, replace: true });
  assert.deepEqual(path.take(), ['send screen true true', 'negotiate']);

  path.failures.push(refused('media.failed'));
  await call.stopScreen();
  assert.deepEqual(notices, ['media-failed media.failed']);
  path.take();
  path.failures.push(refused('media.unsupported'));
  await call.handle('media.need', { audio: 1, video: 1 });
  await until(() => path.noted.filter(([what]) => what === 'negotiate').length === 2);
  assert.deepEqual(path.take(), ['want 1 1', 'negotiate', 'remove camera', 'remove screen', 'remove screen-audio', 'negotiate'], 'only sound continues');
});

test('a lost path is closed, and the call rejoins over another one', async (t) => {
  const { call, paths, path } = await inCall(t, { camera: false });
  const before = call.participant;
  path.dispatchEvent(new Event('lost'));
  await until(() => paths.length === 2 && paths[1].trackID('microphone'));
  assert.deepEqual([path.isClosed, paths[1].isClosed], [true, false]);
  assert.notEqual(call.participant, before);
  assert.equal(paths[1].options.participant, call.participant);
  call.giveUp();
  assert.ok(paths[1].isClosed);
});

test('each event of a path reaches the call', async (t) => {
  const { call, path } = await inCall(t);
  const heard = [];
  for (const name of ['change', 'speaking', 'path', 'warning']) call.addEventListener(name, () => heard.push(name));
  path.connection = 'connected';
  for (const name of PATH_EVENTS.filter((each) => each !== 'lost')) path.dispatchEvent(new CustomEvent(name, { detail: { count: 1 } }));
  for (const name of ['change', 'speaking', 'path', 'warning']) assert.ok(heard.includes(name), `${name}, of ${heard}`);
});
