// Warnings of a call that is not shown are kept until it is, and a store that lasts only in memory is reported.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { load } from './web.mjs';

const { Call } = await load('call/call.js');
const { Conclave } = await load('conclave.js');
const { Untold } = await load('keys/key-warnings.js');
const { openStore } = await load('devices/store.js');

const problems = (kept) => kept.map(([name, { problem, kind, user }]) => [name, problem ?? kind, user]);

test('harmless warnings, notices, and many of one kind do not displace others', () => {
  const untold = new Untold();
  untold.add('warning', { problem: 'changed-key', user: 'bob', device: 'd', fingerprint: 'f' });
  for (let i = 0; i < 100; i += 1) {
    untold.add('warning', { problem: 'new-device', user: `u${i}`, device: 'd' });
    untold.add('warning', { problem: 'waiting', user: `u${i}`, device: 'd' });
    untold.add('notice', { kind: 'member', cause: 'joined' });
    untold.add('warning', { problem: 'stranger', user: `u${i}`, device: 'd', fingerprint: 'f' });
  }
  untold.add('warning', { problem: 'disagree', user: 'carol', device: 'd', fingerprint: 'f', by: 'e' });
  const kept = problems(untold.take());
  assert.ok(kept.some(([, problem, user]) => problem === 'changed-key' && user === 'bob'));
  assert.ok(kept.some(([, problem, user]) => problem === 'disagree' && user === 'carol'));
  assert.equal(kept.filter(([, problem]) => problem === 'stranger').length, 16);
  assert.ok(kept.some(([, problem, user]) => problem === 'new-device' && user === 'u0'));
  assert.equal(kept.length, 16 + 16 + 16 + 2, 'it is bounded');
  assert.deepEqual(untold.take(), [], 'each once');
});

test('a repeated warning is kept once, in its latest form', () => {
  const untold = new Untold();
  for (const isSelfRevoked of [false, true]) untold.add('warning', { problem: 'revoked', user: 'bob', device: 'd', fingerprint: 'f', isSelfRevoked });
  assert.deepEqual(untold.take().map(([, { isSelfRevoked }]) => isSelfRevoked), [true]);
});

test('the warnings of a held call wait until it is shown again', (t) => {
  const call = new Call({ id: '', connection: { identity: { user: 'alice', device: 'd' }, status: 'ready', capture: { choice: {} } } });
  t.after(() => call.giveUp());
  const told = [];
  call.addEventListener('warning', ({ detail }) => told.push(detail.problem));
  const stop = (isShown) => call.setShown(isShown); // causes the warning that sending has stopped
  stop(false);
  assert.deepEqual(problems(call.attend()), [['warning', 'stopped', undefined]], 'before anybody can listen');
  stop(true);
  stop(false);
  assert.deepEqual(problems(call.attend()), [], 'while it is shown they are events');
  call.unattend();
  stop(true);
  stop(false);
  call.unattend();
  assert.deepEqual(problems(call.attend()), [['warning', 'stopped', undefined]]);
  assert.equal(told.length, 3);
});

test('a store that does not outlive the page reports it: without IndexedDB, or if a newer page has changed its version', async (t) => {
  t.after(() => delete globalThis.indexedDB);
  assert.equal((await openStore()).isLasting, false);
  const opens = (outcome) => ({ open: () => Object.defineProperty({}, outcome, { set: (heard) => queueMicrotask(heard) }) });
  globalThis.indexedDB = opens('onerror'); // VersionError
  assert.equal((await openStore()).isLasting, false);
  globalThis.indexedDB = opens('onsuccess');
  assert.equal((await openStore()).isLasting, true);
  const conclave = new Conclave({ url: 'ws://h/', device: 'd', credentials: async () => ({ token: 't' }) });
  assert.equal(conclave.keepsKeys, false, 'nothing is opened yet');
});
