// *Do not disturb*: how long it lasts, its sign, and who turns it off.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { page } from './fake-page.mjs';
import { aside, load, loadPage } from './web.mjs';

const byID = page();
const stored = new Map();
const storage = { getItem: (key) => stored.get(key) ?? null, setItem: (key, value) => void stored.set(key, value), removeItem: (key) => void stored.delete(key) };
Object.defineProperty(globalThis, 'localStorage', { value: storage, configurable: true });
byID('quiet-dialog').close = () => (byID('quiet-dialog').open = false);
const { DoNotDisturb, endsFrom } = await loadPage('do-not-disturb.js');
const { Presence } = await load('devices/presence.js');

const HOUR = 3_600_000;
const KEY = 'quiet-end/me';

/** A page that starts while the server has the user in `state`. */
async function started(state) {
  const ends = [];
  const asked = [];
  let fails = false;
  const presence = new Presence(async (path, body) => {
    if (path === 'presence/watch') return { users: [{ user: 'me', state }] };
    if (fails) throw new Error('x');
    asked.push(body.state);
    return {};
  });
  const conclave = Object.assign(new EventTarget(), { user: 'me', status: 'ready', presence });
  presence.addEventListener('change', () => conclave.dispatchEvent(new Event('presence')));
  new DoNotDisturb({ conclave, ended: () => ends.push('ended') });
  await presence.connectionReady('me');
  await aside();
  return { asked, ends, presence, sign: () => (byID('quiet-sign').hidden ? undefined : byID('quiet-end').textContent), fail: (isSo) => (fails = isSo) };
}

test('“until tomorrow” ends at seven, after midnight on the same morning', () => {
  const at = (...parts) => new Date(2026, 2, ...parts).getTime();
  const ends = (now) => endsFrom(now);
  assert.equal(ends(at(3, 22, 15)).hour, at(3, 23, 15));
  assert.deepEqual([at(3, 22), at(4, 0, 30), at(4, 4), at(31, 12)].map((now) => ends(now).tomorrow), [at(4, 7), at(4, 7), at(5, 7), at(32, 7)]);
  assert.equal(ends(at(3)).always, undefined);
});

test('the page asks how long, shows the end, and turns it off by a press or by the timer', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  stored.clear();
  const { asked, ends, sign } = await started('available');
  await byID('availability').click();
  assert.deepEqual([asked, byID('quiet-dialog').open, sign()], [[], true, undefined]);
  await byID('quiet-hour').click();
  assert.deepEqual([asked, byID('quiet-dialog').open, byID('availability').ariaPressed], [['unavailable'], false, true]);
  assert.match(sign(), /^until \d/);
  await byID('availability').click();
  assert.deepEqual([asked.at(-1), sign(), ends, stored.has(KEY)], ['available', undefined, ['ended'], false]);

  await byID('availability').click();
  await byID('quiet-always').click();
  assert.deepEqual([asked.at(-1), sign(), stored.has(KEY)], ['unavailable', '', false]);
  await byID('availability').click();

  await byID('availability').click();
  await byID('quiet-hour').click();
  const { now } = Date;
  t.after(() => (Date.now = now));
  Date.now = () => now() + HOUR + 1;
  t.mock.timers.tick(HOUR + 1);
  await aside();
  assert.deepEqual([asked.at(-1), sign(), stored.has(KEY), byID('availability').disabled], ['available', undefined, false, false]);
});

test('a page that is opened after the end turns it off, one that is opened before shows it', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  stored.set(KEY, String(Date.now() - 1));
  const late = await started('unavailable');
  assert.deepEqual([late.asked, late.sign(), stored.has(KEY)], [['available'], undefined, false]);
  stored.set(KEY, String(Date.now() + HOUR));
  const early = await started('unavailable');
  assert.deepEqual([early.asked, stored.has(KEY)], [[], true]);
  assert.match(early.sign(), /^until \d/);
  // Another device turns it off: this page's end is void, and does not apply to the next time.
  early.presence.take({ user: 'me', state: 'available' });
  assert.deepEqual([early.sign(), stored.has(KEY)], [undefined, false]);
  early.presence.take({ user: 'me', state: 'unavailable' });
  assert.equal(early.sign(), '');
});

test('an end that could not be sent is sent when the server is heard again', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const { asked, sign, fail, presence } = await started('unavailable');
  stored.set(KEY, String(Date.now() - 1));
  fail(true);
  presence.take({ user: 'bob', state: 'offline' });
  await aside();
  assert.deepEqual([asked, stored.has(KEY)], [[], true]);
  fail(false);
  presence.take({ user: 'bob', state: 'available' });
  await aside();
  assert.deepEqual([asked, sign()], [['available'], undefined]);
});
