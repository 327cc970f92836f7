import assert from 'node:assert/strict';
import { test } from 'node:test';
import { load } from './web.mjs';

const { Handout } = await load('keys/handout.js');

const bob = { user: 'bob', device: 'phone', fingerprint: 'f', joinId: 'j' };
const carol = { user: 'carol', device: 'phone', fingerprint: 'g', joinId: 'k' };

/** A leader that trusts the users in `trusted`, with what it sends; `lists` is its history. */
function leader() {
  const lists = { isBroken: false };
  const trusted = new Set();
  const sent = [];
  const record = {
    epoch: 2,
    hasSecret: true,
    propose() {},
    list: [bob, carol],
    listed: (entry) => entry,
    keysOf: () => undefined,
    envelope: async ({ user, device }) => (trusted.has(user) ? { to: { user, device } } : undefined),
  };
  const request = async (path, { envelopes }) => void sent.push(envelopes.map(({ to }) => to.user));
  const [warnings, demands] = [{ warn() {} }, { begin() {} }];
  const handout = new Handout({ request, examine: async () => {}, accept: () => {}, lists, demands, warnings });
  handout.begin(record);
  return { handout, lists, record, trusted, sent };
}

test('a device that the leader skipped gets the key without asking as soon as it is trusted', async () => {
  const { handout, record, trusted, sent } = leader();
  trusted.add('carol');
  await handout.lead(record, [bob, carol]);
  await handout.answerAgain(record);
  assert.deepEqual(sent, [['carol']]);
  trusted.add('bob');
  await handout.answerAgain(record);
  await handout.answerAgain(record);
  assert.deepEqual(sent, [['carol'], ['bob']]);
});

test('refused requests do not use up a device’s answers', async () => {
  const { handout, record, trusted, sent } = leader();
  for (let i = 0; i < 10; i += 1) await handout.answer(record, bob);
  assert.deepEqual(sent, []);
  trusted.add('bob');
  await handout.answerAgain(record);
  for (let i = 0; i < 10; i += 1) await handout.answer(record, bob);
  assert.deepEqual(sent, [['bob'], ['bob'], ['bob']], 'three answers for an epoch');
});

test('a newer epoch forgets the skipped devices', async () => {
  const { handout, record, trusted, sent } = leader();
  await handout.lead(record, [bob]);
  handout.begin({ ...record, epoch: 3 });
  trusted.add('bob');
  await handout.answerAgain(record);
  assert.deepEqual(sent, [[]]);
});

test('no key is handed out with a broken history of lists, or for a past epoch', async () => {
  for (const end of [({ lists }) => (lists.isBroken = true), ({ record }) => (record.isOver = true)]) {
    const made = leader();
    made.trusted.add('bob');
    end(made);
    await assert.rejects(made.handout.answer(made.record, bob), /an epoch that is over/);
    await assert.rejects(made.handout.lead(made.record, [bob]), /an epoch that is over/);
    assert.deepEqual(made.sent, []);
  }
});
