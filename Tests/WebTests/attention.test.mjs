// A page that nobody looks at: how it is recognised, and which videos are still wanted.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fakeTimers, loadPage } from './web.mjs';

globalThis.document = Object.assign(new EventTarget(), { hidden: false });
const { Attention } = await loadPage('attention.js');

function attention(t) {
  const tick = fakeTimers(t);
  document.hidden = false;
  const watched = new Attention();
  const changes = [];
  watched.addEventListener('change', () => changes.push(watched.isAway));
  const hide = (hidden) => {
    document.hidden = hidden;
    document.dispatchEvent(new Event('visibilitychange'));
  };
  return { tick, hide, changes, watched };
}

test('a page counts as not looked at after 5 s hidden, and as looked at as soon as it is shown', (t) => {
  const { tick, hide, changes } = attention(t);
  hide(true);
  tick(4_900);
  assert.deepEqual(changes, []);
  tick(100);
  assert.deepEqual(changes, [true]);
  hide(false);
  assert.deepEqual(changes, [true, false]);
});

test('brief looks at other tabs change nothing, however many', (t) => {
  const { tick, hide, changes } = attention(t);
  for (let time = 0; time < 10; time += 1) {
    hide(true);
    tick(3_000);
    hide(false);
    tick(3_000);
  }
  assert.deepEqual(changes, []);
});

test('a page that is opened in the background counts as not looked at', (t) => {
  const tick = fakeTimers(t);
  document.hidden = true;
  const { isAway } = new Attention();
  assert.equal(isAway, false);
  const watched = new Attention();
  tick(5_000);
  assert.equal(watched.isAway, true);
});
