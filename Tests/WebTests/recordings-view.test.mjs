// The list of messages in the lobby, and the module that loads what records and plays.

import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { page } from './fake-page.mjs';
import { aside, fakeTimers, loadPage } from './web.mjs';

const byID = page();
document.querySelectorAll = () => [];
const { RecordingsView } = await loadPage('recordings-view.js');
const { Messages } = await loadPage('messages.js');
const { keptFile } = await loadPage('kept-file.js');
const { shortTime, spokenTime } = await loadPage('recordings-words.js');
const { beginNames } = await loadPage('names.js');
beginNames('me', [], () => {});

const AT = new Date(2025, 2, 3, 9, 10).getTime();
const refused = (code) => Object.assign(new Error(code), { code });
const rows = () => byID('recordings-list').children;
const button = (row, label) => row.querySelectorAll('button').find(({ ariaLabel }) => ariaLabel?.startsWith(`${label}: `));
const labels = (row) => row.querySelectorAll('button').map(({ ariaLabel }) => ariaLabel.split(':')[0]);
const lines = (row) => row.querySelector('.row-text').children.map(({ textContent }) => textContent);
const notices = () => byID('notices').children.map(({ textContent }) => textContent);

const entry = (id, facts = {}) => ({ id, kind: 'message', role: 'reader', by: { user: 'bob', device: 'd' }, startedAt: AT, bytes: 1, state: 'finished', expiresAt: AT, isNew: false, ...facts });

class Upload extends EventTarget {
  state = 'stored';
  progress = { sealed: 1, stored: 1 };
}

/** As much of the library's `Recordings` as the list needs. */
class Recordings {
  entries = [];
  drafts = [];
  described = {}; // by id: facts, or an error
  log = [];

  async list() {
    return this.entries;
  }

  async unfinished() {
    return this.drafts;
  }

  async describe(id) {
    this.log.push(`describe ${id}`);
    const facts = this.described[id] ?? { by: { user: 'bob', device: 'd' }, readers: ['bob', 'me'], length: 65_000 };
    if (facts instanceof Error) throw facts;
    return facts;
  }

  async delete(ids) {
    this.log.push(`delete ${ids}`);
  }

  async upload() {
    return new Upload();
  }

  async send(id) {
    this.log.push(`send ${id}`);
    return { me: 1, bob: 1 };
  }
}

let recordings, done, view, busy;
beforeEach(() => {
  [recordings, done, busy] = [new Recordings(), [], undefined];
  byID('notices').children = [];
  document.hidden = false;
  const noted = (name) => async (value) => void done.push([name, value?.id ?? value]);
  view = new RecordingsView({ play: noted('play'), callBack: noted('call'), share: noted('share'), download: noted('download'), isBusy: (id) => id === busy });
  view.use(recordings, 'me');
});

test('without messages there is no list', async () => {
  await view.refresh();
  assert.equal(byID('recordings').hidden, true);
});

test('a row says from whom or for whom, when, how long, and what is new', async () => {
  recordings.entries = [entry('a', { isNew: true }), entry('b', { role: 'owner', by: { user: 'me', device: 'x' } }), entry('c', { role: 'owner', by: { user: 'me', device: 'x' }, state: 'cut-off' })];
  recordings.described.c = { by: { user: 'me', device: 'x' }, readers: ['me'], length: undefined };
  const { describe } = recordings;
  let go;
  recordings.describe = async () => new Promise((resolve) => (go = resolve));
  const refreshing = view.refresh();
  await aside(1);
  assert.deepEqual(rows().map((row) => lines(row)[0]), ['bob', 'Your message', 'Your message'], 'before that is known');
  recordings.describe = describe;
  go({ by: { user: 'bob', device: 'd' }, name: 'Bob', readers: ['bob', 'me'], length: 65_000 });
  await refreshing;
  await view.refresh();
  const day = 'Mar\u00a03,\u00a02025,\u00a009:10\u00a0AM';
  assert.deepEqual(rows().map((row) => lines(row).map((line) => line.replaceAll(/\s/g, '\u00a0'))), [
    ['Bob', `New · ${day} · 1:05`], ['For\u00a0Bob', `${day} · 1:05`], ['For\u00a0yourself', `${day} · Was not finished`],
  ].map((row) => row.map((line) => line.replaceAll(/\s/g, '\u00a0'))));
  assert.deepEqual(rows().map(({ dataset }) => dataset.new), ['true', 'false', 'false']);
  view.opened('a');
  assert.deepEqual([rows()[0].dataset.new, lines(rows()[0])[1].startsWith('New')], ['false', false]);
});

test('it is played, called back, shared, downloaded and deleted by buttons of its row', async () => {
  recordings.entries = [entry('a'), entry('b', { role: 'owner', by: { user: 'me', device: 'x' } })];
  await view.refresh();
  assert.deepEqual(labels(rows()[0]), ['Details', 'Play', 'Delete']);
  await button(rows()[0], 'Play').click();
  rows()[0].querySelector('.row-text').click();
  assert.deepEqual([rows()[0].querySelector('.row-text')['aria-expanded'], labels(rows()[0]).slice(3)], ['true', ['Call back', 'Share', 'Download']]);
  for (const label of ['Call back', 'Share', 'Download']) await button(rows()[0], label).click();
  assert.deepEqual(done, [['play', 'a'], ['call', 'bob'], ['share', 'a'], ['download', 'a']]);
  rows()[1].querySelector('.row-text').click();
  assert.deepEqual(labels(rows()[1]).slice(3), ['Share', 'Download'], 'one does not call oneself');
  await button(rows()[1], 'Delete').click();
  assert.deepEqual([byID('delete-recording-dialog').open, byID('delete-recording-text').textContent], [true, 'It is deleted for everybody who got it, too.']);
  assert.deepEqual(recordings.log.filter((line) => line.startsWith('delete')), [], 'not before the person has confirmed it');
  await byID('delete-recording-confirm').click();
  assert.deepEqual([recordings.log.at(-1), rows().length, byID('delete-recording-dialog').open], ['delete b', 1, false]);
  await button(rows()[0], 'Delete').click();
  assert.match(byID('delete-recording-text').textContent, /on all your devices/);
});

test('a recording that does not open says why, and offers nothing that would not work', async () => {
  recordings.entries = [entry('a'), entry('b'), entry('c')];
  recordings.described = { a: refused('not-signed'), b: refused('no-key'), c: refused('connection-lost') };
  await view.refresh();
  assert.deepEqual([lines(rows()[0])[1], labels(rows()[0])], ['This is not from Bob, so it is not opened.', ['Details', 'Delete']]);
  assert.match(lines(rows()[1])[1], /^This device has no key for it.*ask Bob/);
  assert.deepEqual(labels(rows()[2]), ['Details', 'Play', 'Delete'], 'the network may be back by then');
  await view.refresh();
  assert.deepEqual(recordings.log.slice(3), ['describe c'], 'only that one is asked for again');
});

test('a draft is offered, but not while it is being recorded', async () => {
  recordings.drafts = [{ id: 'd', kind: 'message', readers: ['me', 'bob'], startedAt: AT, length: 12_000 }, { id: 'e', kind: 'message', readers: ['me', 'bob'], startedAt: AT, length: 0 }];
  recordings.entries = [entry('d', { role: 'owner', state: 'running' })];
  busy = 'e';
  await view.refresh();
  assert.deepEqual(rows().map(({ dataset }) => [dataset.recording, dataset.draft]), [['d', 'true']]);
  assert.match(lines(rows()[0])[1], /^Not sent yet · .* · 0:12$/);
  assert.deepEqual(labels(rows()[0]), ['Details', 'Play', 'Send', 'Delete']);
  const sent = button(rows()[0], 'Send').click();
  recordings.drafts = [];
  recordings.entries = [];
  await sent;
  assert.deepEqual([recordings.log.filter((line) => line.startsWith('send')), notices(), byID('recordings').hidden], [['send d'], ['Sent to Bob'], true]);
});

test('a draft that the server does not take says so, and stays', async (t) => {
  fakeTimers(t);
  recordings.drafts = [{ id: 'd', kind: 'message', readers: ['me', 'bob'], startedAt: AT, length: 12_000 }];
  const upload = new Upload();
  upload.state = 'waiting';
  recordings.upload = async () => upload;
  await view.refresh();
  const sent = button(rows()[0], 'Send').click();
  await aside(1);
  assert.match(notices()[0], /goes on by itself/);
  upload.state = 'lost';
  upload.dispatchEvent(new Event('change'));
  await sent;
  assert.deepEqual([notices().at(-1), rows().length], ['The server does not take this message. Record it again.', 1]);
});

test('ten are shown, and ten more with each press', async () => {
  recordings.entries = Array.from({ length: 23 }, (_, index) => entry(`m${index}`));
  await view.refresh();
  assert.deepEqual([rows().length, byID('recordings-more').hidden, recordings.log.length], [10, false, 10]);
  byID('recordings-more').click();
  byID('recordings-more').click();
  await aside(2);
  assert.deepEqual([rows().length, byID('recordings-more').hidden, recordings.log.length], [23, true, 23]);
});

test('a message that arrives is told with the name of the person who has signed it, and one’s own is not told', async () => {
  recordings.entries = [entry('a', { isNew: true, by: { user: 'mallory', device: 'd' } }), entry('b', { role: 'owner' }), entry('c')];
  recordings.described.c = refused('not-signed');
  for (const id of ['a', 'b', 'c', 'gone']) await view.arrived(id);
  assert.deepEqual(notices(), ['New video message from Bob']);
  assert.equal(rows().length, 3);
});

test('nothing of the list is to be seen while the page is in the background', async () => {
  recordings.entries = [entry('a')];
  await view.refresh();
  document.hidden = true;
  view.show();
  assert.equal(byID('recordings-list').hidden, true);
  document.hidden = false;
  view.show();
  assert.equal(byID('recordings-list').hidden, false);
});

test('times are short for the eye and whole for the ear', () => {
  assert.deepEqual([0, 999, 65_000, 600_000, 3_723_000, -5].map(shortTime), ['0:00', '0:00', '1:05', '10:00', '62:03', '0:00']);
  assert.deepEqual([0, 1_000, 60_000, 184_000].map(spokenTime), ['0 seconds', '1 second', '1 minute', '3 minutes 4 seconds']);
});

/** A connection whose server answers the list by `answer`. */
function connection(answer) {
  const asked = [];
  return Object.assign(new EventTarget(), { asked, request: async (path, body) => (asked.push([path, body]), answer()) });
}

test('a server without recordings is asked once for each connection, and nothing is loaded', async () => {
  const conclave = connection(() => Promise.reject(refused('recording.unavailable')));
  const messages = new Messages({ conclave, found: () => {} });
  await messages.refresh();
  await messages.refresh();
  assert.deepEqual([conclave.asked, messages.isHere], [[['recordings/list', { limit: 1 }]], false]);
  await messages.record(['bob'], 'c');
  await messages.interrupt();
  await messages.forgetAll();
  conclave.dispatchEvent(new Event('ready'));
  await messages.refresh();
  assert.equal(conclave.asked.length, 2);
  const busyServer = connection(() => Promise.reject(refused('server.busy')));
  const later = new Messages({ conclave: busyServer, found: () => {} });
  await later.refresh();
  await later.refresh();
  assert.equal(busyServer.asked.length, 2, 'that passes');
});

test('a file is written where the person has chosen, in its pieces; who wants none gets none', async () => {
  const log = [];
  const file = { write: async ({ position, data }) => void log.push([position, ...data]), close: async () => void log.push('close'), abort: async () => void log.push('abort') };
  const showSaveFilePicker = async ({ suggestedName }) => (log.push(suggestedName), { createWritable: async () => file });
  const kept = await keptFile('a.webm', 'video/webm', { showSaveFilePicker });
  await kept.write(Uint8Array.of(1, 2), 0);
  await kept.write(Uint8Array.of(3), 2);
  await kept.close();
  await kept.abort();
  assert.deepEqual(log, ['a.webm', [0, 1, 2], [2, 3], 'close', 'abort']);
  const refuses = (name) => async () => Promise.reject(Object.assign(new Error(name), { name }));
  assert.equal(await keptFile('a.webm', 'video/webm', { showSaveFilePicker: refuses('AbortError') }), undefined);
  await assert.rejects(keptFile('a.webm', 'video/webm', { showSaveFilePicker: refuses('SecurityError') }), { name: 'SecurityError' });
});

test('without that the file is put together in memory, the piece that was written twice once', async (t) => {
  const tick = fakeTimers(t);
  const [made, urls, links] = [[], [], []];
  const browser = {
    Blob: class { constructor(pieces, { type }) { made.push([type, ...pieces.flatMap((piece) => [...piece])]); } },
    URL: { createObjectURL: () => (urls.push('blob:1'), 'blob:1'), revokeObjectURL: (url) => urls.push(`freed ${url}`) },
    document: { createElement: () => ({ click() { links.push([this.href, this.download]); } }) },
  };
  const kept = await keptFile('a.webm', 'video/webm', browser);
  await kept.write(Uint8Array.of(9, 9), 0);
  await kept.write(Uint8Array.of(3), 2);
  await kept.write(Uint8Array.of(1, 2), 0);
  await kept.close();
  assert.deepEqual([made, links, urls], [[['video/webm', 1, 2, 3]], [['blob:1', 'a.webm']], ['blob:1']]);
  tick(60_000);
  assert.deepEqual(urls, ['blob:1', 'freed blob:1']);
});
