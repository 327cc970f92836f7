// A recording for others on the page: from the press to the last segment, the place, the words, what a closed page has left, and the alert at a contact.

import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { page } from './fake-page.mjs';
import { aside, fakeTimers, loadPage, until } from './web.mjs';

const byID = page();
globalThis.navigator ??= /** @type {any} */ ({});
const { AlertView } = await loadPage('alert-view.js');
const { LeftView } = await loadPage('left-view.js');
const { OwnRecording } = await loadPage('own-recording.js');
const { Place, distance, isNews, newestPlace, noteOf, placeIn } = await loadPage('place.js');
const { mapOf, wordsForClock, wordsForContact, wordsForLive, wordsForNetwork, wordsForOwnProblem, wordsForPlace, wordsForProgress } = await loadPage('own-words.js');
const { beginNames } = await loadPage('names.js');
beginNames('alice', [], () => {});

const NOW = 1_790_000_000_000;
const PRAGUE = { lat: 50.08804, lon: 14.42076 };
const refused = (code) => Object.assign(new Error(code), { code });

class Upload extends EventTarget {
  state = 'uploading';
  progress = { sealed: 0, stored: 0 };

  be(state, progress = this.progress) {
    Object.assign(this, { state, progress });
    this.dispatchEvent(new Event('change'));
  }
}

class Telling extends EventTarget {
  contacts = { all: [{ user: 'bob', state: 'waiting' }], alerts: true, isAnswered: false };
  notes = [];

  async note(content) {
    this.notes.push(content);
  }

  answer() {
    this.contacts = { all: [{ user: 'bob', state: 'told' }], alerts: true, isAnswered: true };
    this.dispatchEvent(new Event('change'));
  }
}

/** As much of the library's `Recordings` as a recording for others needs; `log` has what was asked of it. */
class Recordings {
  log = [];
  made;
  fails = {}; // by method
  left = [];
  known = new Set();
  announcements = new Map();

  #do(name, ...details) {
    this.log.push([name, ...details].join(' '));
    const failure = this.fails[name]?.shift?.() ?? (Array.isArray(this.fails[name]) ? undefined : this.fails[name]);
    if (failure) throw failure;
  }

  #make() {
    this.made = { writer: Object.assign(new EventTarget(), { row: { id: 'r1' } }), upload: new Upload(), telling: new Telling() };
    return this.made;
  }

  async beginLive({ readers, hasPicture, alerts, keepsCopy }) {
    this.#do('begin', readers, hasPicture, alerts, keepsCopy);
    return this.#make();
  }

  async resume(id) {
    this.#do('resume', id);
    return this.#make();
  }

  async upload(id) {
    this.#do('upload', id);
    return (this.made ?? this.#make()).upload;
  }

  async finish(id) {
    this.#do('finish', id);
  }

  async delete(ids) {
    this.#do('delete', ids);
  }

  async unfinished() {
    return this.left;
  }

  async isKnown(id) {
    return this.known.has(id);
  }

  async putAside(id) {
    this.known.add(id);
  }

  async announced(id) {
    this.#do('announced', id);
    const told = this.announcements.get(id);
    if (told instanceof Error) throw told;
    return told;
  }
}

class Recorder extends EventTarget {
  static last;
  length = 0;

  constructor({ tracks, writer }) {
    super();
    Object.assign(this, { tracks, writer });
    Recorder.last = this;
  }

  start() {}

  async stop() {
    this.isStopped = true;
  }

  end(reason) {
    this.dispatchEvent(new CustomEvent('ended', { detail: { reason } }));
  }
}

/** A browser's geolocation, whose positions are the test's. */
class Geolocation {
  watching = new Map();
  isDenied = false;

  getCurrentPosition(found, failed) {
    if (this.isDenied) failed({ code: 1 });
    else found(at(PRAGUE));
  }

  watchPosition(found, failed) {
    this.watching.set(this.watching.size + 1, { found, failed });
    return this.watching.size;
  }

  clearWatch(id) {
    this.watching.delete(id);
  }

  be(position) {
    for (const { found } of this.watching.values()) found(position);
  }

  fail(code) {
    for (const { failed } of this.watching.values()) failed({ code });
  }
}

const at = ({ lat, lon }, timestamp = NOW, accuracy = 12.4) => ({ coords: { latitude: lat, longitude: lon, accuracy }, timestamp });

let recordings, opened, refusals, geolocation;
beforeEach(() => {
  [recordings, opened, refusals, geolocation] = [new Recordings(), [], {}, new Geolocation()];
  byID('warnings').children = [];
  byID('notices').children = [];
  document.hidden = false;
});

const CHOICE = { users: ['bob'], hasPicture: true, alerts: true, keepsCopy: true, tellsPlace: false };

function ownFor(t, { obstacle = undefined } = {}) {
  fakeTimers(t);
  const open = async (source) => {
    if (refusals[source]) throw refusals[source];
    opened.push({ source, isStopped: false, stop() { this.isStopped = true; } });
    return opened.at(-1);
  };
  const library = { recordingObstacle: () => obstacle, streamsFor: (hasPicture) => (hasPicture ? ['microphone', 'camera'] : ['microphone']), DeviceRecorder: Recorder };
  const own = new OwnRecording({ recordings, capture: { open, choice: { facing: 'user' } }, library, place: new Place(/** @type {any} */ (geolocation)) });
  const over = [];
  own.addEventListener('over', ({ detail }) => over.push(detail));
  return { own, over };
}

const seal = (end, sealed, stored) => {
  recordings.made.writer.dispatchEvent(new CustomEvent('sealed', { detail: { n: sealed - 1, bytes: 1, end: (performance.timeOrigin + performance.now() + end) * 1_000 } }));
  recordings.made.upload.be('uploading', { sealed, stored });
};

test('one press records and tells; it is over when everything has left and each contact was answered for', async (t) => {
  const { own, over } = ownFor(t);
  await own.start(CHOICE);
  assert.deepEqual([recordings.log, own.state, own.contacts[0].state], [['begin bob true true true'], 'recording', 'waiting']);
  assert.deepEqual(Recorder.last.tracks.map(({ source }) => source), ['microphone', 'camera']);
  Recorder.last.length = 6_000;
  assert.equal(own.progress.left, 0, 'nothing has left yet');
  seal(4_000, 2, 1);
  assert.ok(Math.abs(own.progress.left - 2_000) < 300 && Math.abs(own.progress.waits - 4_000) < 300, JSON.stringify(own.progress));
  await own.stop();
  assert.deepEqual([own.state, opened.every(({ isStopped }) => isStopped), over], ['uploading', true, []]);
  recordings.made.upload.be('stored', { sealed: 3, stored: 3 });
  await aside(5);
  assert.ok(!recordings.log.includes('finish r1'), 'Bob was not told yet');
  recordings.made.telling.answer();
  await until(() => over.length === 1);
  assert.deepEqual([over, own.state, own.progress.isAll], [[{ isComplete: true }], 'over', true]);
});

test('a camera that does not open costs the picture, not the recording; without a microphone there is none', async (t) => {
  refusals.camera = Object.assign(new Error('no'), { name: 'NotAllowedError' });
  const { own } = ownFor(t);
  await own.start(CHOICE);
  assert.deepEqual([own.state, own.hasPicture, own.lacksCamera, recordings.log], ['recording', false, true, ['begin bob false true true']]);
  assert.match(wordsForOwnProblem(own), /only sound is recorded\. Allow it/);
  refusals.microphone = refusals.camera;
  const { own: mute, over } = ownFor(t);
  await mute.start(CHOICE);
  assert.deepEqual([mute.state, mute.problem.source, recordings.log.length], ['failed', 'microphone', 1]);
  assert.match(wordsForOwnProblem(mute), /Allow it in the browser’s settings/);
  await mute.leave();
  assert.deepEqual(over, [{ isComplete: false }]);
});

test('a browser that cannot record, and a device without keys, say so before anything is recorded', async (t) => {
  const { own } = ownFor(t, { obstacle: 'no-recorder' });
  await own.start(CHOICE);
  assert.match(wordsForOwnProblem(own), /cannot record messages/);
  const { own: keyless } = ownFor(t);
  await keyless.start(CHOICE);
  const { upload } = recordings.made;
  await keyless.stop();
  upload.error = refused('reply.refused');
  upload.be('refused');
  await until(() => keyless.problem !== undefined);
  assert.equal(keyless.state, 'uploading');
  assert.notEqual(wordsForOwnProblem(keyless), '');
});

test('a full disk or a camera that is unplugged ends the recording with its reason, and what was recorded leaves', async (t) => {
  for (const [reason, words] of [['no-room', /no room left/], ['device', /disconnected/], ['store', /could not go on/]]) {
    const { own, over } = ownFor(t);
    await own.start(CHOICE);
    const { upload, telling } = recordings.made;
    Recorder.last.end(reason);
    assert.deepEqual([own.state, own.isRecording], ['uploading', false]);
    assert.match(wordsForOwnProblem(own), words);
    telling.answer();
    upload.be('stored', { sealed: 1, stored: 1 });
    await until(() => over.length === 1);
  }
});

test('a person who leaves before it is begun records nothing, whatever the devices do then', async (t) => {
  const { own, over } = ownFor(t);
  const starting = own.start(CHOICE);
  await own.leave();
  await starting;
  assert.deepEqual([own.state, over.length, recordings.log, opened.every(({ isStopped }) => isStopped)], ['over', 1, [], true]);
});

test('a person who leaves while it is uploaded ends nothing: it is offered later', async (t) => {
  const { own, over } = ownFor(t);
  await own.start(CHOICE);
  recordings.made.upload.be('waiting');
  assert.match(wordsForNetwork(own.upload), /Record on/);
  await own.stop();
  await own.leave();
  await aside(5);
  assert.deepEqual([over, recordings.log], [[{ isComplete: false }], ['begin bob true true true']]);
});

test('the place is a note, told again when it has moved, and not more often', async (t) => {
  const { own } = ownFor(t);
  await own.start({ ...CHOICE, tellsPlace: true });
  const { telling } = recordings.made;
  assert.equal(own.place.state, 'searching');
  geolocation.be(at(PRAGUE));
  assert.deepEqual([telling.notes, own.place.state], [[{ kind: 'place', ...PRAGUE, accuracy: 12, at: NOW }], 'told']);
  geolocation.be(at({ ...PRAGUE, lat: 50.2 }, NOW + 5_000));
  geolocation.be(at(PRAGUE, NOW + 40_000));
  assert.equal(telling.notes.length, 1, 'too early, and where it was');
  geolocation.be(at({ ...PRAGUE, lat: 50.2 }, NOW + 40_000));
  assert.equal(telling.notes.length, 2);
  geolocation.fail(2);
  assert.equal(own.place.state, 'told', 'the last one was told');
  geolocation.fail(1);
  assert.equal(own.place.state, 'denied');
  await own.stop();
  assert.equal(geolocation.watching.size, 0);
});

test('without geolocation, or where the person refuses it, the recording goes on', async (t) => {
  geolocation.isDenied = true;
  assert.equal(await new Place(/** @type {any} */ (geolocation)).ask(), false);
  assert.equal(await new Place(undefined).ask(), false);
  const nowhere = new Place(undefined);
  nowhere.start(() => assert.fail());
  assert.deepEqual([nowhere.state, nowhere.isPossible], ['failed', false]);
  assert.ok(t);
});

test('distances are metres, and a place is news when it is far and late enough', () => {
  assert.ok(Math.abs(distance(PRAGUE, { lat: 50.08804, lon: 14.43 }) - 656) < 5);
  assert.equal(distance(PRAGUE, PRAGUE), 0);
  const told = { ...PRAGUE, at: 0 };
  assert.deepEqual([isNews(told, undefined), isNews({ ...PRAGUE, at: 60_000 }, told), isNews({ lat: 51, lon: 14, at: 29_999 }, told), isNews({ lat: 51, lon: 14, at: 30_000 }, told)], [true, false, false, true]);
});

test('a place of somebody else is numbers within the earth, or none', () => {
  const good = { kind: 'place', ...PRAGUE, accuracy: 12, at: NOW };
  assert.deepEqual(placeIn(good), { ...PRAGUE, accuracy: 12, at: NOW });
  const odd = [{ kind: 'text' }, { lat: 91 }, { lon: -181 }, { lat: '50' }, { lat: NaN }, { lon: undefined }, { at: -1 }, { at: 'now' }, { at: 1.5 }];
  for (const change of odd) assert.equal(placeIn({ ...good, ...change }), undefined, JSON.stringify(change));
  for (const accuracy of [-1, '12', NaN, 1e9]) assert.deepEqual(placeIn({ ...good, accuracy }).accuracy, undefined);
  assert.deepEqual(newestPlace([good, { ...good, lat: 1, at: NOW + 5 }, { kind: 'place' }, { ...good, lat: 2, at: NOW + 1 }]).lat, 1);
  assert.equal(newestPlace([]), undefined);
  assert.match(wordsForPlace(placeIn(good)), /50\.08804, 14\.42076, within 12/);
  assert.match(wordsForPlace({ ...PRAGUE, at: NOW }), /: 50\.08804, 14\.42076$/);
  assert.equal(mapOf(placeIn({ ...good, lat: 50.123456789 })), 'https://www.openstreetmap.org/?mlat=50.12346&mlon=14.42076#map=17/50.12346/14.42076');
  assert.deepEqual(noteOf(at({ lat: 50.088041234, lon: 14.42 })), { kind: 'place', lat: 50.08804, lon: 14.42, accuracy: 12, at: NOW });
});

test('the words about progress, contacts, a clock, and a recording that is live', () => {
  assert.match(wordsForProgress({ left: 0, waits: 42_000, isAll: false }), /^Nothing has left this device yet\. 0:42/);
  assert.match(wordsForProgress({ left: 40_000, waits: 2_000, isAll: false }), /^0:40 has left this device, 0:02 waits/);
  assert.match(wordsForProgress({ left: 40_000, waits: 0, isAll: true }), /^Everything/);
  const states = ['waiting', 'unavailable', 'no-keys', 'told', 'reached', 'seen'].map((state) => wordsForContact({ user: 'bob', state, at: NOW }, true));
  assert.equal(new Set(states).size, 6);
  assert.ok(states.every(Boolean));
  assert.match(wordsForContact({ user: 'bob', state: 'told' }, false), /Can play it/);
  assert.equal(wordsForClock(-60_000), '');
  assert.match(wordsForClock(-7_200_000), /wrong by 120 minutes\. Set it right/);
  assert.match(wordsForLive({ state: 'running', length: 3, behind: 6_000, end: NOW }), /^Live, 0:06 behind/);
  assert.match(wordsForLive({ state: 'running', length: 0, behind: 0, end: 0 }), /begins by itself/);
  assert.match(wordsForLive({ state: 'silent', length: 3, behind: 0, end: NOW }), /for a minute/);
  assert.match(wordsForLive({ state: 'gone', length: 3, behind: 0, end: NOW }), /deleted/);
  for (const state of ['finished', 'cut-off', 'something new']) assert.match(wordsForLive({ state, length: 3, behind: 0, end: NOW }), /over/, state);
});

test('an interrupted recording is gone on with, and leaving it before it has begun deletes nothing of it', async (t) => {
  const { own } = ownFor(t);
  await own.resume({ id: 'r1', hasPicture: false, length: 10_000 }, { tellsPlace: false });
  assert.deepEqual([own.state, own.length, opened.map(({ source }) => source), recordings.log], ['recording', 10_000, ['microphone'], ['resume r1']]);
  seal(2_000, 6, 6);
  assert.ok(Math.abs(own.progress.left - 12_000) < 300, JSON.stringify(own.progress));
  const { own: left } = ownFor(t);
  const resuming = left.resume({ id: 'r1', hasPicture: false, length: 10_000 }, { tellsPlace: false });
  await left.leave();
  await resuming;
  refusals.camera = new Error('no camera');
  const { own: lacking } = ownFor(t);
  await lacking.resume({ id: 'r1', hasPicture: true, length: 10_000 }, { tellsPlace: false });
  assert.deepEqual([lacking.state, lacking.lacksCamera], ['recording', true], 'sound alone is better than nothing');
  assert.ok(!recordings.log.some((line) => line.startsWith('delete')), String(recordings.log));
});

// Recordings that a closed page has left

const LEFT = { id: 'r1', isLive: true, kind: 'own', hasPicture: true, readers: ['alice', 'bob'], startedAt: NOW, length: 10_000 };

function leftFor(t) {
  fakeTimers(t);
  recordings.left = [LEFT, { ...LEFT, id: 'm1', isLive: false }];
  const log = [];
  const view = new LeftView({ resume: ({ id }) => log.push(`resume ${id}`), ask: ({ id }) => log.push(`ask ${id}`), isBusy: (id) => id === 'busy', changed: () => view.refresh() });
  view.use(recordings);
  return { view, log };
}

const leftRows = () => byID('record-left-list').children;
const pressLeft = (label) => leftRows()[0].querySelectorAll('button').find(({ textContent }) => textContent === label).click();

test('after a crash it is uploaded at once, and the person finishes it, records on, or deletes it', async (t) => {
  const { view, log } = leftFor(t);
  await view.refresh();
  assert.deepEqual([leftRows().length, byID('record-left').hidden, recordings.log], [1, false, ['upload r1']]);
  recordings.made.upload.be('waiting', { sealed: 5, stored: 2 });
  const words = () => leftRows()[0].querySelector('.row-text').children[1].textContent;
  assert.match(words(), /0:04 has left this device, 0:06 waits\. There is no connection/);
  await pressLeft('Record on');
  await pressLeft('Delete');
  assert.deepEqual(log, ['resume r1', 'ask r1']);
  const finishing = pressLeft('Finish');
  recordings.left = [];
  recordings.made.upload.be('stored', { sealed: 5, stored: 5 });
  await finishing;
  assert.deepEqual([recordings.log.at(-1), byID('record-left').hidden], ['finish r1', true]);
  assert.match(byID('notices').children.at(-1).textContent, /complete/);
});

test('a recording that the server does not take says so, and can only be deleted', async (t) => {
  const { view } = leftFor(t);
  await view.refresh();
  recordings.made.upload.be('lost', { sealed: 5, stored: 2 });
  assert.deepEqual(leftRows()[0].querySelectorAll('button').map(({ textContent }) => textContent), ['Delete']);
  assert.match(leftRows()[0].querySelector('.row-text').children[1].textContent, /does not take/);
});

// The alert at a contact

const ALERT = { recording: 'r1', kind: 'own', by: { user: 'bob', device: 'phone' }, isAlert: true };

function alertsFor(t) {
  fakeTimers(t);
  const log = [];
  const view = new AlertView({ watch: (id, name) => log.push(`watch ${id} ${name}`), call: (user) => log.push(`call ${user}`), now: () => NOW });
  view.use(recordings);
  const warnings = () => byID('warnings').children.map((node) => node.querySelector('.warning-text').children.map(({ textContent }) => textContent).join(' '));
  const press = (label) => byID('warnings').children.at(-1).querySelectorAll('button').find(({ textContent }) => textContent === label).click();
  return { view, log, warnings, press };
}

const signed = (change = {}) => ({ by: ALERT.by, name: 'Bob', at: NOW - 5_000, level: 'known', isAlert: true, state: 'running', ...change });
const notices = () => byID('notices').children.map(({ textContent }) => textContent);

test('somebody who needs this user is a warning that stays, once, however often the server says it', async (t) => {
  const { view, log, warnings, press } = alertsFor(t);
  recordings.announcements.set('r1', signed());
  await Promise.all([view.arrived(ALERT), view.arrived(ALERT)]);
  await view.arrived(ALERT);
  assert.equal(warnings().length, 1);
  assert.match(warnings()[0], /^Bob needs you, and has been recording since/);
  press('Watch');
  assert.deepEqual(log, ['watch r1 Bob']);
});

test('an alert that was put aside, or opened, does not come again', async (t) => {
  const { view, warnings, press } = alertsFor(t);
  recordings.announcements.set('r1', signed());
  await view.arrived(ALERT);
  press('Not now');
  await view.arrived(ALERT);
  assert.equal(warnings().length, 1, 'none besides the one that the fake page does not remove');
  assert.ok(recordings.known.has('r1'));
});

test('an alert that nobody has signed, or of another day, alarms nobody', async (t) => {
  const { view, warnings } = alertsFor(t);
  recordings.announcements.set('r1', signed({ isAlert: false }));
  recordings.announcements.set('r2', signed({ at: NOW - 25 * 3_600_000 }));
  recordings.announcements.set('r3', refused('not-signed'));
  for (const recording of ['r1', 'r2', 'r3']) await view.arrived({ ...ALERT, recording });
  assert.deepEqual(warnings(), []);
  assert.match(notices().join('|'), /Bob shares a recording with you.*\|.*not from (Bob|bob)/);
});

test('a device that cannot check an alert says that, and offers a call', async (t) => {
  const { view, log, warnings, press } = alertsFor(t);
  recordings.announcements.set('r1', refused('no-key'));
  await view.arrived(ALERT);
  assert.match(warnings()[0], /^The server says that .* needs you\. This device cannot open the recording/);
  press(byID('warnings').children[0].querySelectorAll('button')[0].textContent);
  assert.deepEqual(log, ['call bob']);
  recordings.announcements.set('r2', refused('too-early'));
  await view.arrived({ ...ALERT, recording: 'r2' });
  assert.match(warnings().at(-1), /Set the clock of this device right/);
});
