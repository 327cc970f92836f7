// Removing a guest: who may be removed, who did it, and a server that lies about it.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeServer, browser, callID } from './fake-browser.mjs';
import { page } from './fake-page.mjs';
import { aside, load, loadPage, until } from './web.mjs';

browser();
const byID = page();
const { Call } = await load('call/call.js');
const { Calls } = await load('call/calls.js');
const { decodeMessage, encodeMessage } = await load('keys/messages.js');
const { Removals, askRemoval, mayRemove } = await loadPage('guest-removal.js');
const { wordsFor } = await loadPage('notices.js');
const { t } = await loadPage('texts.js');

console.warn = () => {};

test('the message of a removal must name a guest', () => {
  assert.deepEqual(decodeMessage(encodeMessage({ removed: 'guest~ana', by: 'alice' })), { removed: 'guest~ana' });
  for (const removed of ['bob', '', 7, null, ['guest~ana'], { user: 'guest~ana' }]) assert.equal(decodeMessage(encodeMessage({ removed })), undefined, String(removed));
});

test('members may remove guests who are present; guests may remove nobody, and nobody may remove a member', () => {
  const guest = { user: 'guest~ana', state: 'joined' };
  assert.equal(mayRemove({ user: 'alice' }, guest), true);
  assert.equal(mayRemove({ user: 'alice' }, { ...guest, state: 'disconnected' }), true);
  assert.equal(mayRemove({ user: 'alice' }, { ...guest, state: 'left' }), false);
  assert.equal(mayRemove({ user: 'alice' }, { user: 'bob', state: 'joined', link: true }), false);
  for (const user of ['guest~ben', 'guest~ana']) assert.equal(mayRemove({ user }, guest), false);
});

/** A call of Alice (1), Bob (2) and the guest Ana (3), as seen by Alice. */
const call = {
  participant: 1, user: 'alice',
  members: new Map(['alice', 'bob', 'guest~ana'].map((user) => [user, {}])),
  ownerOf: (participant) => ({ 1: { user: 'alice' }, 2: { user: 'bob' }, 3: { user: 'guest~ana' } })[participant],
};

test('a removal is attributed only to the member whose sealed message says so', () => {
  const removals = new Removals();
  const take = (participant, removed) => removals.take(call, { participant, removed });
  assert.equal(removals.by('guest~ana'), undefined, 'the server’s word is not enough');
  take(2, undefined);
  take(3, 'guest~ana');
  take(9, 'guest~ana');
  assert.equal(removals.by('guest~ana'), undefined, 'guests and strangers cannot remove anybody');
  for (let number = 0; number < 1_000; number += 1) take(2, `guest~${number}`);
  assert.equal(removals.by('guest~7'), undefined, 'guests of other calls are not remembered');
  take(2, 'guest~ana');
  assert.equal(removals.by('guest~ana'), 'bob');
  removals.forget('guest~ana');
  assert.equal(removals.by('guest~ana'), undefined);
  take(1, 'guest~ana');
  assert.equal(removals.by('guest~ana'), 'alice');
});

test('the notice names who did it, or says that the guest left; it never says that a member was removed', () => {
  const guest = { user: 'guest~ana', name: 'Ana', state: 'left', participants: [] };
  const words = (member, by) => wordsFor({ kind: 'member', cause: 'removed', member, by });
  assert.match(words(guest, 'bob'), /^bob removed Ana/);
  assert.match(words(guest), /^Ana.* left$/);
  assert.equal(words({ user: 'carol', name: 'Carol', state: 'left', participants: [] }), 'Carol left');
});

test('the others are told before the guest is removed, and it is removed even if no message can be sealed', async () => {
  const order = [];
  const remove = (send) => Call.prototype.removeGuest.call({ send, request: async (...request) => void order.push(request) }, 'guest~ana');
  await remove(async (message) => void order.push(message));
  assert.deepEqual(order.splice(0), [{ removed: 'guest~ana' }, ['remove-guest', { guest: 'guest~ana' }]]);
  await remove(async () => {
    throw new Error('message.not-sealed');
  });
  assert.deepEqual(order, [['remove-guest', { guest: 'guest~ana' }]]);
});

test('the page asks first, and then removes the guest that it asked about', async () => {
  const removed = [];
  await askRemoval({ removeGuest: async (user) => void removed.push(user) }, 'guest~ana');
  assert.equal(byID('remove-guest-dialog').open, true);
  assert.match(byID('remove-guest-title').textContent, /Ana/);
  assert.deepEqual(removed, []);
  await byID('remove-guest-confirm').click();
  assert.deepEqual([removed, byID('remove-guest-dialog').open], [['guest~ana'], false]);
  const before = byID('notices').children.length;
  await askRemoval({ removeGuest: async () => Promise.reject(Object.assign(new Error(), { name: 'x' })) }, 'guest~ana');
  await byID('remove-guest-confirm').click();
  assert.equal(byID('notices').children.length, before + 1, t('error.other'));
});

/** This device in a call of `user`. */
async function joined(t_, user) {
  const server = new FakeServer(user, 'laptop');
  const calls = new Calls(await server.connection());
  t_.after(() => calls.current?.giveUp());
  server.running(callID('c'), { state: 'ringing' });
  const entered = await calls.add('accept', { id: callID('c'), camera: false });
  let reason;
  entered.addEventListener('ended', ({ detail }) => (reason = detail.reason));
  const told = () => calls.handle('call.member', { call: callID('c'), at: 0, cause: 'removed', user, state: 'left', participants: [] });
  return { server, entered, told, reason: () => reason };
}

test('a removed guest is told so and does not rejoin by itself', async (t_) => {
  const { server, told, reason } = await joined(t_, 'guest~ana');
  await told();
  await aside(5);
  assert.deepEqual([reason(), server.count('/rejoin')], ['removed', 0]);
});

test('a member that the server reports as removed rejoins', async (t_) => {
  const { server, entered, told, reason } = await joined(t_, 'alice');
  const { participant } = entered;
  await told();
  await until(() => entered.participant !== participant);
  assert.deepEqual([reason(), server.count('/rejoin')], [undefined, 1]);
});
