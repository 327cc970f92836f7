// A call that everybody else has left: a valid link keeps it alive, and the person is asked.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fakeTimers, loadPage } from './web.mjs';

const { Alone, isDeserted } = await loadPage('alone.js');

const other = (state) => ({ user: 'bob', state, participants: state === 'joined' || state === 'disconnected' ? [{ participant: 2 }] : [] });
const facts = (others, rest = {}) => ({ answeredAt: 1, policy: {}, others, ...rest });

test('a call is deserted when there were others, and now none is there, rings or may come back', () => {
  assert.equal(isDeserted(facts([other('left'), other('declined')])), true);
  for (const state of ['joined', 'disconnected', 'ringing']) assert.equal(isDeserted(facts([other('left'), other(state)])), false, state);
  assert.equal(isDeserted(facts([other('missed')], { answeredAt: undefined })), false, 'nobody has come yet: somebody with the link may');
  assert.equal(isDeserted(facts([other('left')], { policy: { aloneSeconds: 3_600 } })), false, 'the app decides');
});

test('somebody who is left alone and does not answer the question leaves after two minutes', (t) => {
  const tick = fakeTimers(t);
  let left = 0;
  const alone = new Alone({ leave: () => (left += 1) });
  alone.look(facts([other('joined')]));
  assert.equal(alone.isAsking, false);
  alone.look(facts([other('left')]));
  tick(119_000);
  alone.look(facts([other('left')])); // asked once, however often the call changes
  assert.deepEqual([alone.isAsking, left], [true, 0]);
  tick(1_000);
  assert.equal(left, 1);
});

test('somebody who chooses to wait stays, and is asked again when the next person has come and gone', (t) => {
  const tick = fakeTimers(t);
  let left = 0;
  const alone = new Alone({ leave: () => (left += 1) });
  alone.look(facts([other('left')]));
  alone.wait();
  tick(600_000);
  assert.deepEqual([alone.isAsking, left], [false, 0]);
  alone.look(facts([other('joined')]));
  alone.look(facts([other('left')]));
  assert.equal(alone.isAsking, true);
  alone.look(facts([other('joined')]));
  tick(600_000);
  assert.deepEqual([alone.isAsking, left], [false, 0], 'somebody came in time');
  alone.look(facts([other('left')]));
  alone.stop();
  tick(600_000);
  assert.equal(left, 0, 'the call is over');
});
