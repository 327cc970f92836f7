// A page that nobody looks at: when that is so, and which videos are still wanted.

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

test('a page that is hidden for 5 s is not looked at, and is again as soon as it is shown', (t) => {
  const { tick, hide, changes } = attention(t);
  hide(true);
  tick(4_900);
  assert.deepEqual(changes, []);
  tick(100);
  assert.deepEqual(changes, [true]);
  hide(false);
  assert.deepEqual(changes, [true, false]);
});

test('a look at another tab changes nothing, however often', (t) => {
  const { tick, hide, changes } = attention(t);
  for (let time = 0; time < 10; time += 1) {
    hide(true);
    tick(3_000);
    hide(false);
    tick(3_000);
  }
  assert.deepEqual(changes, []);
});

test('a page that is opened in the background is not looked at', (t) => {
  const tick = fakeTimers(t);
  document.hidden = true;
  const { isAway } = new Attention();
  assert.equal(isAway, false);
  const watched = new Attention();
  tick(5_000);
  assert.equal(watched.isAway, true);
});
