// The view after a call that nobody answered.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { page } from './fake-page.mjs';
import { loadPage } from './web.mjs';

const byID = page();
const keys = [];
document.addEventListener = (name, action) => name === 'keydown' && keys.push(action);
document.dispatchEvent = () => true;
const use = { href: '', getAttribute: () => use.href, setAttribute: (_, href) => (use.href = href) };
byID('unanswered-again').querySelector = () => use;
const { UnansweredView, headingOf, isUnanswered, outcomesOf, ringsNobody } = await loadPage('unanswered-view.js');
const { beginNames } = await loadPage('names.js');
const { show } = await loadPage('views.js');
beginNames('me', [], () => {});

const other = (user, state) => ({ user, state, participants: [] });
const heading = (results, ...others) => headingOf(outcomesOf(results, others));

test('a caller’s call is unanswered when nobody rings any longer and somebody declined or did not answer', () => {
  const isIt = (facts) => isUnanswered({ isInitiator: true, answeredAt: undefined, others: [other('bob', 'declined'), other('carol', 'missed')], ...facts });
  assert.equal(isIt({}), true);
  assert.equal(isIt({ isInitiator: false }), false);
  assert.equal(isIt({ answeredAt: 1 }), false);
  assert.equal(isIt({ others: [] }), false, 'a call with a link');
  assert.equal(isIt({ others: [other('bob', 'declined'), other('carol', 'ringing')] }), false);
  assert.equal(isIt({ others: [other('bob', 'cancelled')] }), false, 'the caller stopped ringing');
  assert.equal(isIt({ others: [other('bob', 'missed'), other('carol', 'cancelled')] }), true);
});

test('a single person is named with the reason, several each have one, and those whom the caller cancelled have none', () => {
  assert.equal(heading({ bob: 'ringing' }, other('bob', 'declined')), 'bob declined');
  assert.equal(heading({ bob: 'offline' }, other('bob', 'missed')), 'bob did not answer');
  assert.equal(heading({ bob: 'busy' }), 'bob is in another call');
  const told = outcomesOf({ dora: 'unavailable', bob: 'ringing', carol: 'offline', eve: 'ringing' }, [other('carol', 'missed'), other('bob', 'declined'), other('eve', 'cancelled')]);
  assert.deepEqual(told.map(({ words }) => words), ['bob declined', 'carol did not answer', 'dora is not available']);
  assert.equal(headingOf(told), 'Nobody answered');
  assert.equal(heading({}, other('bob', 'declined'), other('carol', 'declined')), 'The call was declined');
  assert.equal(heading({ bob: 'busy', carol: 'no-keys' }), 'No one could be reached');
  assert.deepEqual(outcomesOf({ bob: 'an unknown result' }, []), []);
});

test('a call rings nobody if it has callees but none of them rings', () => {
  assert.deepEqual([{}, undefined, { bob: 'busy' }, { bob: 'busy', carol: 'offline' }].map(ringsNobody), [false, false, true, false]);
});

test('the view stays until it is closed, also by Escape, and can call the same people with the same media', async () => {
  const done = [];
  const view = new UnansweredView({ callAgain: async (...call) => done.push(call), record: async () => {}, canRecord: () => false, closed: () => done.push('closed') });
  show('lobby');
  const told = outcomesOf({ carol: 'busy' }, [other('bob', 'declined')]);
  assert.equal(view.show([], { withCamera: true, at: 0 }), false);
  assert.equal(view.isShown, false);
  assert.equal(view.show(told, { withCamera: true, at: 0 }), true);
  assert.deepEqual([view.isShown, byID('lobby').hidden, document.activeElement === byID('unanswered-title')], [true, true, true]);
  assert.deepEqual(byID('unanswered-list').children.map(({ dataset }) => ({ ...dataset })), [{ user: 'bob', result: 'declined' }, { user: 'carol', result: 'busy' }]);
  assert.equal(use.href, '#icon-camera');
  await byID('unanswered-again').click();
  assert.deepEqual(done, [[['bob', 'carol'], true]]);
  const press = (key) => keys.forEach((action) => action({ key }));
  press('a');
  assert.equal(view.isShown, true);
  press('Escape');
  press('Escape');
  assert.deepEqual([view.isShown, byID('lobby').hidden, done.slice(1)], [false, false, ['closed']]);
  view.show(told.slice(0, 1), { withCamera: false, at: 0 });
  assert.deepEqual([byID('unanswered-title').textContent, byID('unanswered-list').hidden, use.href], ['bob declined', true, '#icon-phone']);
  show('call');
  view.close();
  assert.equal(byID('call').hidden, false, 'a call has replaced it');
});

test('a message may be recorded for those whose history shows the call, if the server stores any', async () => {
  const recorded = [];
  let isServed = false;
  const view = new UnansweredView({ callAgain: async () => {}, record: async (...message) => recorded.push(message), canRecord: () => isServed, closed: () => {} });
  const told = outcomesOf({ carol: 'busy', dora: 'unavailable', eve: 'no-keys', fay: 'offline' }, [other('bob', 'declined'), other('fay', 'missed'), other('gil', 'cancelled')]);
  view.show(told, { withCamera: true, at: 0, call: 'c1' });
  assert.equal(byID('unanswered-record').hidden, true);
  isServed = true;
  view.offer();
  assert.equal(byID('unanswered-record').hidden, false, 'as soon as that is known');
  await byID('unanswered-record').click();
  assert.deepEqual(recorded, [[['bob', 'carol', 'dora', 'fay'], 'c1']]);
  show('message');
  view.return();
  assert.equal(view.isShown, true, 'it shows what it has shown');
  view.show(outcomesOf({ eve: 'no-keys' }, []), { withCamera: true, at: 0, call: 'c2' });
  assert.equal(byID('unanswered-record').hidden, true, 'nobody could open it');
});
