// The border (`border.js`): each body of the protocol passes with the members that the client reads. Values of another type and unknown members do not.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { load } from './web.mjs';

const { Malformed, eventFrom, failureFrom, known, replyFrom } = await load('connection/border.js');
const { CallState } = await load('call/call-state.js');
const { Inbox } = await load('connection/inbox.js');

console.warn = () => {};

const read = (name) => readFileSync(new URL(`../../${name}`, import.meta.url), 'utf8');
const events = JSON.parse(read('Tests/ContractTests/Golden/events.json'));
const replies = JSON.parse(read('Tests/ContractTests/Golden/replies.json'));
const ID = '6f0c2f6e-4d5e-4b52-9f0c-1f2a3b4c5d6e';

/** The names of the golden replies, by the path of the request. */
const PATHS = {
  'devices/register': 'registered', 'devices/list': 'devices', 'calls/start': 'joined', 'calls/ID/accept': 'joined', 'calls/ID/join': 'joined', 'calls/ID/rejoin': 'joined', 'calls/ID/transfer': 'joined',
  'calls/ID/invite': 'results', 'calls/ID/state': 'state', 'calls/list': 'calls', 'calls/ID/link': 'link', 'calls/ID/media': 'media', 'calls/ID/keys/list': 'keyList',
  'calls/ID/keys/confirmations': 'confirmations', 'calls/ID/record/consent': 'consented', 'presence/watch': 'presence', 'history/list': 'history', 'history/totals': 'totals', 'links/make': 'lastingLink', 'links/list': 'lastingLinks', 'links/open': 'openedLink', 'recordings/start': 'startedRecording', 'recordings/list': 'recordings', 'recordings/get': 'recording', 'recordings/share': 'nothing', 'calls/ID/tracks/1.2': 'nothing', 'calls/ID/leave': 'nothing',
};
const UNREAD = ['speakers', 'push.ring', 'push.cancel', 'push.message', 'push.alert', 'report']; // events for others, or useless to this client
/** Members that this client does not read. */
const DROPPED = { quality: ['participant', 'bitrate'], 'call.state': ['metadata'], state: ['metadata'], joined: ['metadata'], calls: ['metadata'] };
/** Values by id, or read by checks of the key agreement, of recordings or of `ServerPath`, which report what they refuse. */
const OTHERS_CHECK = /\.results$|^keys\.|^keyList$|^startedRecording$|^recordings?$|^\.grant|^confirmations$|envelope|^\.(list|admissions|signers)|\.tracks\.\d+\.track$/;

const bodies = [
  ...Object.entries(events).filter(([name]) => !UNREAD.includes(name)).map(([name, body]) => ({ name, body, enter: (value) => eventFrom(name, value) })),
  ...Object.entries(PATHS).map(([path, name]) => ({ name, body: replies[name], enter: (value) => replyFrom(path.replace('ID', ID), value) })),
];

test('each event and reply of the protocol has a table', () => {
  const declared = read('docs/clients.md');
  const paths = [...declared.matchAll(/^ {2}'\/app\/([^']+)'/gm)].map(([, path]) => path.replace('/{id}', '').replace('/{track}', ''));
  const names = [...declared.slice(declared.indexOf('interface Events'), declared.indexOf('## ConclaveClient')).matchAll(/^ {2}(?:'([a-z.-]+)'|([a-z]+)): /gm)].map(([, quoted, plain]) => quoted ?? plain);
  assert.ok(paths.length > 35 && names.length > 25, `${paths.length} and ${names.length} are declared`);
  assert.deepEqual(paths.filter((path) => !known.replies.includes(path)), []);
  assert.deepEqual(names.filter((name) => !known.events.includes(name) && !UNREAD.includes(name)), []);
  assert.deepEqual(known.events.filter((name) => !names.includes(name)), []);
  assert.deepEqual(known.replies.filter((path) => !paths.includes(path)), []);
});

test('the bodies of the protocol pass with everything that the client reads', () => {
  const without = (value, names) => JSON.parse(JSON.stringify(value, (name, each) => (names.includes(name) ? undefined : each)));
  for (const { name, body, enter } of bodies) assert.deepEqual(enter(body), without(body, DROPPED[name] ?? []), name);
});

/** Each place in a value: its path, and a function that returns the value with another one in that place. */
function* places(value, path = '', put = (each) => each) {
  if (path) yield [path, put];
  if (value === null || typeof value !== 'object') return;
  for (const name of Object.keys(value)) {
    const change = (each) => put(Array.isArray(value) ? value.with(Number(name), each) : { ...value, [name]: each });
    yield* places(value[name], `${path}.${name}`, change);
  }
}

test('no value of another type passes, at any place of any body', () => {
  let [tried, refused] = [0, 0];
  for (const { name, body, enter } of bodies) {
    for (const [path, put] of places(body)) {
      if (OTHERS_CHECK.test(name) || OTHERS_CHECK.test(path)) continue;
      for (const evil of [{ evil: 'evil' }, [{ evil: 'evil' }], { toString: 'evil' }]) {
        tried += 1;
        try {
          assert.doesNotMatch(JSON.stringify(enter(put(evil))), /evil/, `${name}${path}`);
        } catch (error) {
          if (!(error instanceof Malformed)) throw error;
          refused += 1;
        }
      }
    }
  }
  assert.ok(tried > 500 && refused > tried * 0.9, `${refused} of ${tried} are refused`);
});

test('fields that no table names do not pass, not even under the names of Object’s own members', () => {
  for (const { name, body, enter } of bodies) {
    const more = JSON.parse(JSON.stringify(body).replace('{', '{"evil":"evil","__proto__":{"evil":"evil"},"constructor":"evil",').replace(',}', '}'));
    const entered = enter(more);
    assert.doesNotMatch(JSON.stringify(entered), /evil/, name);
    assert.equal(entered.evil, undefined, name);
  }
  assert.equal(eventFrom('call.other', { call: ID }), undefined);
  for (const name of ['toString', 'constructor', '__proto__']) assert.equal(eventFrom(name, {}), undefined);
  assert.throws(() => replyFrom('calls/ID/other', {}), Malformed);
});

test('strings and lists are bounded', () => {
  const state = replies.state;
  const enter = (value) => replyFrom(`calls/${ID}/state`, value);
  const [member] = state.members;
  assert.throws(() => enter({ ...state, members: Array(5_000).fill(member) }), Malformed);
  assert.throws(() => enter({ ...state, media: 'x'.repeat(100) }), Malformed);
  assert.equal(enter({ ...state, members: [{ ...member, name: 'x'.repeat(10_000) }] }).members[0].name.length, 256, 'a name is cut');
  assert.equal(enter({ ...state, members: [{ ...member, state: 'asleep' }] }).members[0].state, 'unknown');
  assert.throws(() => enter({ ...state, members: [{ ...member, state: 7 }] }), Malformed);
});

test('a refusal becomes a code, whatever its form', () => {
  assert.deepEqual(failureFrom({ error: { code: 'call.full', message: 'full', evil: 1 } }), { code: 'call.full', message: 'full' });
  for (const results of [['x'], 5, 'x', { bob: 7 }, { 'no id': 'ringing' }]) assert.throws(() => replyFrom(`calls/${ID}/invite`, { results }), Malformed, JSON.stringify(results));
  for (const body of [{}, null, 7, { error: 5 }, { error: { code: {} } }, []]) assert.equal(failureFrom(body).code, 'reply.refused');
});

test('a malformed event changes nothing, is acknowledged, and counts as lost; a malformed envelope is not acknowledged', async () => {
  const state = new CallState({ id: ID, user: 'alice', device: 'd' });
  let missed = 0;
  const handle = async ({ name, body }) => {
    const entered = eventFrom(name, body);
    if (name === 'call.state') state.take(entered);
    return true;
  };
  const inbox = new Inbox({ handle, missed: async () => void (missed += 1) });
  assert.equal(await inbox.take({ name: 'call.state', seq: 1, redelivered: false, body: events['call.state'] }), true);
  const { members } = state;
  const [first, ...others] = events['call.state'].members;
  for (const name of [5, true, {}, [], ['Zed'], null]) {
    const body = { ...events['call.state'], rev: 99, members: [{ ...first, name }, ...others] };
    const before = missed;
    assert.equal(await inbox.take({ name: 'call.state', seq: 2 + missed, redelivered: false, body }), true);
    assert.deepEqual([missed, state.members, state.rev], [before + 1, members, 12], JSON.stringify(name));
  }
  assert.equal(await inbox.take({ name: 'keys.envelope', seq: 20, redelivered: true, body: 5 }), false);
});
