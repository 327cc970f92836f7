// All of the page that records and plays, put together, over the real library and a server that answers little.

import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { fakeIndexedDB } from './fake-indexed-db.mjs';
import { page } from './fake-page.mjs';
import { NOW, person } from './recorded.mjs';
import { SOUND } from './reels.mjs';
import { aside, load, loadPage, until } from './web.mjs';

const byID = page();
const listeners = {};
document.addEventListener = (name, action) => (listeners[name] ??= []).push(action);
document.dispatchEvent = ({ type }) => (listeners[type] ?? []).forEach((action) => action());
const chips = byID('chips');
chips.append(byID('chip-list'));
byID('chip-list').className = 'chip-list';
for (const id of ['share-people', 'record-people']) byID(id).closest = () => chips;
globalThis.location = /** @type {any} */ ({ href: 'https://host/' });
const { RecordingsPage, fileNameOf } = await loadPage('recordings-page.js');
const { ShareDialog } = await loadPage('share-dialog.js');
const { beginNames } = await loadPage('names.js');
const { Directory } = await load('trust/directory.js');
const { MemoryStore } = await load('devices/store.js');
const { RecordingWriter } = await load('recordings/recording-writer.js');
const { openRecordings } = await load('recordings/store.js');
const { toBase64 } = await load('wire/bytes.js');
beginNames('alice', [], () => {});

const refused = (code) => Object.assign(new Error(code), { code });
const rows = () => byID('recordings-list').children;
const STREAMS = [{ index: 0, n: 1, source: 'microphone', codec: 'opus', clockRate: 48_000 }];
let asked, conclave, over, answers;

async function connection(device) {
  const identity = await person('alice', device);
  const own = { device, fingerprint: toBase64(identity.fingerprint), keys: identity.keys };
  const directory = new Directory({ store: new MemoryStore(), owner: 'alice', own, fetchDevices: async () => ({ devices: [], revokes: [] }) });
  const request = async (path, body) => {
    asked.push([path, body]);
    if (answers[path] instanceof Error) throw answers[path];
    return structuredClone(answers[path] ?? {});
  };
  return Object.assign(new EventTarget(), { identity, directory, user: 'alice', capture: { choice: { facing: 'user' } }, request });
}

const pageOf = () => new RecordingsPage({ conclave, token: async () => 't', base: 'https://host/recordings', callBack: async () => {}, options: () => ({}), over: (detail) => over.push(detail) });

/** A draft of Alice's device; without `ms` nothing was recorded. */
async function draft(ms) {
  const store = await openRecordings();
  const writer = await RecordingWriter.begin(conclave.identity, store, { kind: 'message', media: ['audio'], readers: ['alice', 'bob'], streams: STREAMS, at: NOW });
  if (ms === 0) return writer.row.id;
  writer.frame({ index: 0, isKey: true, timestamp: 0, time: NOW * 1_000, data: SOUND });
  await writer.end((NOW + ms) * 1_000);
  return writer.row.id;
}

beforeEach(async () => {
  fakeIndexedDB();
  [asked, over, answers] = [[], [], { 'recordings/list': { recordings: [] } }];
  document.hidden = false;
  byID('notices').children = [];
  conclave = await connection('web-1');
});

test('the file of a message is named by its time', () => {
  assert.equal(fileNameOf(new Date(2026, 2, 3, 9, 5).getTime()), 'conclave-2026-03-03-09-05.webm');
});

test('the draft of a closed tab is offered and uploaded; a message in which nothing was recorded is deleted', async () => {
  answers['recordings/start'] = refused('connection-lost');
  const [kept, empty] = [await draft(5_000), await draft(0)];
  const made = pageOf();
  await made.refresh();
  assert.deepEqual(rows().map(({ dataset }) => dataset.recording), [kept]);
  assert.match(rows()[0].querySelector('.row-text').children[1].textContent, /^Not sent yet .* 0:05$/);
  await until(() => asked.some(([path, body]) => path === 'recordings/start' && body.statement.id === kept));
  assert.ok(!asked.some(([path, body]) => path === 'recordings/start' && body.statement.id === empty));
  assert.equal((await (await openRecordings()).all('recordings')).length, 1);
  await made.forgetAll(); // the upload is tried again until then
});

test('another device of the same browser has its own drafts', async () => {
  answers['recordings/start'] = refused('connection-lost');
  await draft(5_000);
  const made = pageOf();
  await made.refresh();
  assert.equal(rows().length, 1);
  Object.assign(conclave, await connection('web-2'));
  await Promise.all([made.refresh(), made.refresh()]);
  assert.equal(rows().length, 0);
  await made.forgetAll();
  assert.equal((await (await openRecordings()).all('recordings')).length, 0, 'both devices are the user’s');
});

test('a message in a browser that cannot record says so in its view; cancelling leads back', async () => {
  const made = pageOf();
  await made.refresh();
  await made.record({ users: ['bob'], call: 'c' });
  assert.match(byID('message-problem').textContent, /A current Chrome/);
  assert.equal(byID('message').hidden, false);
  await byID('message-cancel').click();
  await aside(5);
  assert.deepEqual(over, [{ wasSent: false }]);
  made.interrupt();
});

test('a file whose segments do not come is given up, and said', async () => {
  answers['recordings/start'] = refused('connection-lost');
  await draft(5_000);
  const made = pageOf();
  await made.refresh();
  const log = [];
  const file = { write: () => Promise.reject(new TypeError('Failed to fetch')), close: async () => log.push('close'), abort: async () => log.push('abort') };
  globalThis.showSaveFilePicker = async () => ({ createWritable: async () => file });
  rows()[0].querySelector('.row-text').click();
  await rows()[0].querySelectorAll('button').find(({ ariaLabel }) => ariaLabel.startsWith('Download')).click();
  delete globalThis.showSaveFilePicker;
  assert.deepEqual(log, ['abort']);
  assert.match(byID('notices').children.at(-1).textContent, /^That did not work/);
  await made.forgetAll();
});

test('a message is passed on to people with a device; without one they are named, and a refusal is said in the dialog', async () => {
  let answer = async () => ({ bob: 1 });
  const shared = [];
  const dialog = new ShareDialog({ options: () => ({ isDemo: false, own: 'alice', reachable: async (users) => new Set(users) }), share: async (id, users) => (shared.push([id, ...users]), answer()) });
  const submit = async (names) => {
    dialog.open('r1');
    byID('share-people').value = names;
    byID('share-form').listeners.submit({ preventDefault() {} });
    await aside(5);
  };
  await submit('bob,carol');
  assert.deepEqual(shared, [['r1', 'bob', 'carol']]);
  assert.deepEqual(byID('notices').children.map(({ textContent }) => textContent), ['Sent to bob', 'carol has no device for encrypted calls yet']);
  assert.equal(byID('share-dialog').open, false);
  await submit('alice');
  assert.deepEqual([shared.length, byID('share-error').textContent], [1, 'You cannot call yourself.']);
  answer = () => Promise.reject(Object.assign(new Error('no'), { name: 'RequestError', code: 'reply.refused' }));
  await submit('bob');
  assert.deepEqual([byID('share-dialog').open, byID('share-error').textContent.startsWith('The server’s answer did not fit')], [true, true]);
});
