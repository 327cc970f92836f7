// A video message, from the camera to the callee: the countdown, stopping, what becomes of it, and what goes wrong.

import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { aside, fakeTimers, loadPage } from './web.mjs';

const { Countdown } = await loadPage('countdown.js');
const { Undeliverable, deliver } = await loadPage('delivery.js');
const { VideoMessage } = await loadPage('video-message.js');

const refused = (code) => Object.assign(new Error(code), { code });

class Upload extends EventTarget {
  state = 'uploading';
  progress = { sealed: 0, stored: 0 };
  longest;

  be(state, progress = this.progress) {
    Object.assign(this, { state, progress });
    this.dispatchEvent(new Event('change'));
  }
}

/** As much of the library's `Recordings` as a message needs; `log` has what was asked of it. */
class Recordings {
  log = [];
  devices = { alice: 1, bob: 2 };
  made = [];
  fails = {}; // by method

  #do(name, ...details) {
    this.log.push([name, ...details].join(' '));
    if (this.fails[name]) throw this.fails[name];
  }

  async reachable(users) {
    this.#do('reachable', users);
    return this.devices;
  }

  async begin({ kind, call, readers, hasPicture }) {
    this.#do('begin', kind, call, readers, hasPicture);
    const made = { writer: Object.assign(new EventTarget(), { row: { id: `r${this.made.length + 1}` } }), upload: new Upload() };
    this.made.push(made);
    return made;
  }

  async upload(id) {
    return this.made.find(({ writer }) => writer.row.id === id).upload;
  }

  async send(id, { onlyOwn }) {
    this.#do('send', id, onlyOwn);
    return this.devices;
  }

  async delete(ids) {
    this.#do('delete', ids);
  }

  async openDraft(id) {
    return { source: id };
  }
}

class Recorder extends EventTarget {
  static last;
  static length = 0;
  isStopped = false;

  constructor({ tracks, writer }) {
    super();
    Object.assign(this, { tracks, writer });
    Recorder.last = this;
  }

  get length() {
    return Recorder.length;
  }

  start() {
    this.isStarted = true;
  }

  async stop() {
    this.isStopped = true;
  }

  end(reason) {
    this.dispatchEvent(new CustomEvent('ended', { detail: { reason } }));
  }
}

let recordings, opened, refusals, clock;
beforeEach(() => {
  [recordings, opened, refusals, clock] = [new Recordings(), [], {}, { now: 1_000 }];
  Recorder.length = 0;
});

function messageFor(t, { users = ['bob'], obstacle = undefined } = {}) {
  const tick = fakeTimers(t);
  const open = async (source) => {
    if (refusals[source]) throw refusals[source];
    opened.push({ source, isStopped: false, stop() { this.isStopped = true; } });
    return opened.at(-1);
  };
  const library = { recordingObstacle: (hasPicture) => obstacle?.(hasPicture), streamsFor: () => [], DeviceRecorder: Recorder };
  const message = new VideoMessage({ users, call: 'c1', recordings, capture: { open, choice: { facing: 'user' } }, library, now: () => clock.now });
  const over = [];
  message.addEventListener('over', ({ detail }) => over.push(detail));
  const pass = (ms) => {
    clock.now += ms;
    message.tick();
  };
  return { message, over, pass, tick };
}

async function recorded(t, options) {
  const made = messageFor(t, options);
  await made.message.prepare();
  made.pass(5_000);
  made.upload = recordings.made[0].upload;
  Recorder.length = 4_200;
  made.upload.be('uploading', { sealed: 2, stored: 1 });
  await made.message.stop();
  return made;
}

test('a countdown stands still while it is paused', () => {
  const countdown = new Countdown(5_000, 100);
  assert.equal(countdown.leftAt(1_100), 4_000);
  countdown.pause(1_600);
  countdown.pause(1_700);
  assert.deepEqual([countdown.leftAt(9_000), countdown.isPaused], [3_500, true]);
  countdown.resume(9_000);
  countdown.resume(9_900);
  assert.deepEqual([countdown.leftAt(10_000), countdown.leftAt(20_000), countdown.isPaused], [2_500, 0, false]);
});

test('it is registered while it counts down for five seconds, which may be paused or cut short, and then records both tracks', async (t) => {
  const { message, pass } = messageFor(t);
  assert.equal(message.state, 'preparing');
  await message.prepare();
  assert.deepEqual(recordings.log, ['reachable bob', 'begin message c1 bob true']);
  assert.deepEqual([message.state, message.untilStart, opened.map(({ source }) => source)], ['counting', 5_000, ['microphone', 'camera']]);
  pass(4_900);
  message.pause();
  pass(60_000);
  assert.deepEqual([message.state, message.isPaused, message.untilStart], ['counting', true, 100]);
  message.resume();
  pass(99);
  assert.equal(message.state, 'counting');
  pass(1);
  assert.equal(message.state, 'recording');
  assert.deepEqual([Recorder.last.isStarted, Recorder.last.tracks], [true, opened]);
  const second = messageFor(t).message;
  await second.prepare();
  second.start();
  assert.equal(second.state, 'recording');
});

test('it is stopped by the person, or as long as the server takes; then nothing is captured any longer', async (t) => {
  const { message, pass } = messageFor(t);
  await message.prepare();
  pass(5_000);
  assert.equal(message.left, 178_000, 'until the server has said how long');
  recordings.made[0].upload.longest = 60;
  Recorder.length = 57_900;
  pass(100);
  assert.deepEqual([message.state, message.left], ['recording', 100]);
  Recorder.length = 58_000;
  pass(100);
  assert.equal(message.state, 'stopping');
  await aside(1);
  assert.deepEqual([message.state, message.isLongest, Recorder.last.isStopped, opened.every(({ isStopped }) => isStopped)], ['recorded', true, true, true]);
  const other = await recorded(t);
  assert.deepEqual([other.message.state, other.message.isLongest, other.message.problem], ['recorded', false, undefined]);
  assert.deepEqual(await other.message.play(), { source: other.message.id });
});

test('it is sent once all of it is stored, whatever the network does meanwhile', async (t) => {
  const { message, over, upload, tick } = await recorded(t);
  message.send();
  await aside(1);
  assert.deepEqual([message.state, message.delivery], ['sending', { state: 'uploading', sealed: 2, stored: 1 }]);
  upload.be('waiting');
  assert.equal(message.delivery.state, 'waiting');
  recordings.fails.send = refused('connection-lost');
  upload.be('stored', { sealed: 2, stored: 2 });
  await aside(1);
  assert.deepEqual([message.state, message.delivery.state], ['sending', 'waiting']);
  recordings.fails = {};
  tick(3_000);
  await aside(1);
  assert.deepEqual(recordings.log.slice(2), ['send r1 false', 'send r1 false']);
  assert.deepEqual([message.state, over], ['over', [{ devices: { alice: 1, bob: 2 }, onlyOwn: false }]]);
});

test('it may be kept for oneself, and sending may be stopped before it is done', async (t) => {
  const { message, over, upload } = await recorded(t);
  message.send({ onlyOwn: true });
  await aside(1);
  message.stay();
  await aside(1);
  assert.deepEqual([message.state, message.problem, over], ['recorded', undefined, []]);
  upload.be('stored');
  assert.equal(recordings.log.length, 2, 'nothing was sent');
  await message.send({ onlyOwn: true });
  assert.deepEqual([recordings.log.at(-1), over], ['send r1 true', [{ devices: recordings.devices, onlyOwn: true }]]);
});

test('a refusal of the server is said, and the recording stays for another attempt', async (t) => {
  const { message, over, upload } = await recorded(t);
  upload.be('stored');
  const error = (recordings.fails.send = refused('recording.not-allowed'));
  await message.send();
  assert.deepEqual([message.state, message.problem, over], ['recorded', { error }, []]);
  recordings.fails = {};
  message.send();
  upload.be('lost');
  await aside(1);
  assert.deepEqual([message.state, message.problem], ['recorded', { code: 'lost' }]);
  upload.be('stored');
  await message.send();
  assert.equal(message.state, 'over');
});

test('retake deletes the former one and counts down again; what cannot be deleted now does not hinder it', async (t) => {
  const { message, pass } = await recorded(t);
  recordings.fails.delete = refused('connection-lost');
  await message.retake();
  assert.deepEqual(recordings.log.slice(2), ['delete r1', 'reachable bob', 'begin message c1 bob true']);
  assert.deepEqual([message.state, message.id, message.length, opened.length], ['counting', 'r2', 0, 4]);
  pass(5_000);
  assert.equal(message.state, 'recording');
});

test('to cancel while the former one is deleted opens no camera', async (t) => {
  const { message } = await recorded(t);
  let go;
  recordings.delete = () => new Promise((resolve) => (go = resolve));
  message.retake();
  await aside(1);
  message.discard();
  go();
  await aside(1);
  assert.deepEqual([message.state, opened.length], ['over', 2]);
});

test('to cancel deletes it, in each state, also while the camera is opened', async (t) => {
  const { message, over } = await recorded(t);
  await message.discard();
  assert.deepEqual([message.state, over, recordings.log.at(-1)], ['over', [{}], 'delete r1']);
  const early = messageFor(t);
  const preparing = early.message.prepare();
  await early.message.discard();
  await preparing;
  await aside(1);
  assert.deepEqual([early.over, opened.slice(2).every(({ isStopped }) => isStopped), recordings.made.length], [[{}], true, 1]);
  const { begin } = recordings;
  let go;
  recordings.begin = (options) => new Promise((resolve) => (go = () => resolve(begin.call(recordings, options))));
  const late = messageFor(t);
  late.message.prepare();
  await aside(1);
  await late.message.discard();
  go();
  await aside(1);
  assert.equal(recordings.log.at(-1), 'delete r2', 'what was begun too late is deleted as well');
});

test('a browser that cannot record, people without a device, and a camera that is refused are said before anything is recorded', async (t) => {
  const old = messageFor(t, { obstacle: () => 'no-recorder' });
  await old.message.prepare();
  assert.deepEqual([old.message.state, old.message.problem, recordings.log], ['failed', { code: 'unsupported' }, []]);

  recordings.devices = { alice: 1 };
  const nobody = messageFor(t, { users: ['bob', 'carol'] });
  await nobody.message.prepare();
  assert.deepEqual([nobody.message.problem, opened.length], [{ code: 'no-keys', users: ['bob', 'carol'] }, 0]);
  recordings.devices = { alice: 1, carol: 1 };
  await nobody.message.prepare();
  assert.equal(nobody.message.state, 'counting', 'one of them can get it');

  const error = (refusals.camera = Object.assign(new Error('no'), { name: 'NotAllowedError' }));
  const { message, pass } = messageFor(t, { users: ['carol'] });
  await message.prepare();
  assert.deepEqual([message.state, message.problem, opened.at(-1).isStopped], ['failed', { error, source: 'camera' }, true]);
  await message.retake({ hasPicture: false });
  assert.deepEqual([message.state, message.hasPicture, recordings.log.at(-1)], ['counting', false, 'begin message c1 carol false']);
  pass(5_000);
  assert.deepEqual(Recorder.last.tracks.map(({ source }) => source), ['microphone']);
});

test('without a network it is recorded all the same; a store that is full is said', async (t) => {
  recordings.fails.reachable = refused('connection-lost');
  const { message } = messageFor(t);
  await message.prepare();
  recordings.made[0].upload.be('waiting');
  assert.deepEqual([message.state, message.upload], ['counting', 'waiting']);
  const error = (recordings.fails.begin = Object.assign(new Error('full'), { name: 'QuotaExceededError' }));
  const full = messageFor(t).message;
  await full.prepare();
  assert.deepEqual([full.state, full.problem], ['failed', { error, source: undefined }]);
});

test('a server without room says so before anybody speaks; while it records, it goes on', async (t) => {
  const { message, pass } = messageFor(t);
  await message.prepare();
  recordings.made[0].upload.be('full');
  assert.deepEqual([message.state, message.problem, recordings.log.at(-1), opened.every(({ isStopped }) => isStopped)], ['failed', { code: 'full' }, 'delete r1', true]);
  pass(5_000);
  assert.equal(message.state, 'failed', 'it does not record later');
  const { message: keyless } = messageFor(t);
  await keyless.prepare();
  const error = refused('keys.not-allowed');
  recordings.made[1].upload.error = error;
  recordings.made[1].upload.be('refused');
  assert.deepEqual([keyless.state, keyless.problem], ['failed', { error }]);
  const other = messageFor(t);
  await other.message.prepare();
  other.pass(5_000);
  recordings.made[2].upload.be('full');
  assert.deepEqual([other.message.state, other.message.upload], ['recording', 'full']);
});

test('a recording that ends by itself keeps what there is, and one with nothing has failed', async (t) => {
  const { message, pass } = messageFor(t);
  await message.prepare();
  pass(5_000);
  recordings.made[0].upload.progress = { sealed: 3, stored: 0 };
  Recorder.last.end('no-room');
  assert.deepEqual([message.state, message.problem, message.id], ['recorded', { code: 'no-room' }, 'r1']);
  const other = messageFor(t);
  await other.message.prepare();
  other.pass(5_000);
  Recorder.last.end('device');
  assert.deepEqual([other.message.state, other.message.problem, recordings.log.at(-1)], ['failed', { code: 'device' }, 'delete r2']);
});

test('a store that fails with the last segment is said, although the person has stopped it', async (t) => {
  const { message, pass } = messageFor(t);
  await message.prepare();
  pass(5_000);
  const [{ writer, upload }] = recordings.made;
  upload.progress = { sealed: 1, stored: 0 };
  Recorder.last.stop = async () => writer.dispatchEvent(new CustomEvent('trouble', { detail: { reason: 'store' } }));
  await message.stop();
  assert.deepEqual([message.state, message.problem], ['recorded', { code: 'store' }]);
});

test('a ring stops the countdown, or the recording; whoever goes on to a call keeps what was recorded, and nothing else', async (t) => {
  const { message, pass, over } = messageFor(t);
  await message.prepare();
  message.interrupt();
  pass(60_000);
  assert.deepEqual([message.state, message.isPaused], ['counting', true]);
  await message.leave();
  assert.deepEqual([over, recordings.log.at(-1)], [[{}], 'delete r1']);
  const early = messageFor(t);
  const preparing = early.message.prepare();
  early.message.interrupt();
  await preparing;
  early.pass(60_000);
  assert.deepEqual([early.message.state, early.message.isPaused], ['counting', true], 'the camera was still opening');
  await early.message.discard();
  const second = messageFor(t);
  await second.message.prepare();
  second.pass(5_000);
  await second.message.interrupt();
  assert.equal(second.message.state, 'recorded');
  await second.message.leave();
  await second.message.leave();
  assert.deepEqual([second.over, second.message.id, recordings.log.at(-1)], [[{}], undefined, 'begin message c1 bob true'], 'it is a draft now');
  const third = messageFor(t);
  await third.message.prepare();
  third.pass(5_000);
  await third.message.leave();
  assert.deepEqual([third.over, opened.every(({ isStopped }) => isStopped), recordings.log.at(-1)], [[{}], true, 'begin message c1 bob true']);
});

test('a message that is being sent is sent, although the person has gone on to a call; a failure leaves a draft and is told', async (t) => {
  const { message, over, upload } = await recorded(t);
  message.send();
  await message.leave();
  assert.deepEqual([message.state, over], ['sending', []]);
  upload.be('stored');
  await aside(1);
  assert.deepEqual(over, [{ devices: recordings.devices, onlyOwn: false }]);
  recordings = new Recordings();
  const other = await recorded(t);
  other.message.send();
  await other.message.leave();
  other.upload.be('lost');
  await aside(1);
  assert.deepEqual([other.over, other.message.id], [[{ problem: { code: 'lost' } }], undefined]);
});

test('a delivery ends with a server that has other segments, and with the person who stops it', async (t) => {
  fakeTimers(t);
  const { upload } = await recordings.begin({});
  const states = [];
  const gone = deliver(recordings, 'r1', { told: (state) => states.push(state) });
  await aside(1);
  upload.be('full');
  upload.be('ended');
  await assert.rejects(gone, (error) => error instanceof Undeliverable && error.problem.code === 'ended');
  assert.deepEqual(states, ['uploading', 'full', 'ended']);
  upload.be('stored');
  assert.equal(states.length, 3, 'it listens no longer');
  recordings.fails.send = refused('timeout');
  const stop = new AbortController();
  const stopped = deliver(recordings, 'r1', { signal: stop.signal });
  await aside(1);
  stop.abort();
  await assert.rejects(stopped, { name: 'AbortError' });
});
