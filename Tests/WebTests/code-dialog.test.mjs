// Comparing the call code: the shown code stays, and the buttons are disabled for a while after a change.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { page } from './fake-page.mjs';
import { fakeTimers, loadPage, until } from './web.mjs';

const byID = page();
const { openCode, showCode } = await loadPage('code-dialog.js');

const listed = (user, participant) => ({ user, device: 'phone', participant, fingerprint: Buffer.alloc(32, participant).toString('base64') });
const confirmation = { state: 'confirming', missing: [] };

/** Time for the clock and timers that only `pass(ms)` moves. */
function fakeTime(t) {
  const tick = fakeTimers(t);
  let now = performance.now() + 60_000;
  t.mock.method(performance, 'now', () => now);
  return (ms) => {
    now += ms;
    tick(ms);
  };
}

function openedCode(names = {}) {
  const call = { user: 'alice', device: 'phone', code: '1'.repeat(40), devices: [listed('alice', 1), listed('bob', 2)], confirmation };
  const verified = [];
  const deviceName = (user, device) => names[`${user}/${device}`];
  openCode(call, { verify: async (devices) => (verified.push(devices), devices), deviceName });
  return { call, verified };
}

const buttons = () => byID('person-list').querySelectorAll('button');
const areResting = () => new Set(buttons().map(({ disabled }) => Boolean(disabled)));
const labels = () => buttons().map(({ ariaLabel }) => ariaLabel);
const all = (value) => new Set([value]);

test('after a change of the call the buttons are disabled for two seconds, whatever else changes meanwhile', (t) => {
  const pass = fakeTime(t);
  const { call } = openedCode();
  pass(2_000);
  assert.deepEqual(areResting(), all(false));
  Object.assign(call, { code: '2'.repeat(40), devices: [...call.devices, listed('carol', 3)] });
  for (let ms = 0; ms < 1_800; ms += 300) {
    showCode(call);
    assert.deepEqual(areResting(), all(true), `${ms} ms after the change`);
    pass(300);
  }
  for (let ms = 1_800; ms < 4_000; ms += 300) {
    showCode(call);
    pass(300);
  }
  assert.deepEqual(areResting(), all(false));
  assert.equal(byID('code-changed').hidden, false, 'the earlier code is still compared');
});

test('another change while the buttons are disabled restarts the two seconds', (t) => {
  const pass = fakeTime(t);
  const { call } = openedCode();
  pass(2_000);
  for (const digit of ['3', '4']) {
    call.code = digit.repeat(40);
    showCode(call);
    pass(1_500);
  }
  assert.deepEqual(areResting(), all(true));
  pass(500);
  assert.deepEqual(areResting(), all(false));
});

test('a press verifies the shown devices, not those that have come since', async (t) => {
  const pass = fakeTime(t);
  const { call, verified } = openedCode();
  pass(2_000);
  const shown = listed('bob', 2).fingerprint;
  call.devices = [listed('alice', 1), { ...listed('bob', 9), participant: 2 }];
  showCode(call);
  pass(2_000);
  await buttons()[0].click();
  assert.deepEqual(verified, [[{ user: 'bob', device: 'phone', fingerprint: shown }]]);
});

test('a device is shown by its name, if the server reports one, and always by its id', (t) => {
  fakeTime(t);
  const deviceRows = () => byID('person-list').querySelectorAll('.devices').flatMap((list) => list.querySelectorAll('li'));
  const rows = () => Object.fromEntries(deviceRows().map((row) => [row.dataset.user, row.querySelectorAll('span').filter(({ className }) => !className?.includes('fingerprint')).map(({ textContent }) => textContent)]));
  const shows = (names, expected) => {
    const { call } = openedCode(names);
    assert.deepEqual(rows(), expected);
    call.confirmation = { state: 'not-confirmed', missing: [{ user: 'bob', device: 'phone' }] };
    showCode(call);
    assert.match(byID('confirmation').textContent, new RegExp(`bob \\(${expected.bob[0]}\\)`));
  };
  shows({}, { alice: ['phone (this device)'], bob: ['phone'] });
  // The characters of a name that would reverse the text are not shown.
  shows({ 'alice/phone': 'Office', 'bob/phone': 'Kitchen\u202e tablet' }, { alice: ['Office (this device)', 'phone'], bob: ['Kitchen tablet', 'phone'] });
});

test('an English page shows words, and their digits under the details', async (t) => {
  fakeTime(t);
  const { call } = openedCode();
  const place = byID('call-code');
  await until(() => place.dataset.form === 'words');
  assert.equal(place.querySelectorAll('.code-line').length, 4);
  assert.equal(place.querySelectorAll('span').filter(({ className }) => !className).length, 12);
  assert.equal(byID('code-digits').children.map(({ textContent }) => textContent).join(''), call.code);
  assert.equal(byID('code-digits-part').hidden, false);
  assert.equal(byID('code-digits-help').hidden, true);
  assert.match(byID('code-text').textContent, /^Read these twelve words/);
  const before = place.querySelectorAll('span').map(({ textContent }) => textContent);
  call.code = '1'.repeat(39) + '2';
  openCode(call, { verify: async () => [], deviceName: () => undefined });
  assert.notDeepEqual(place.querySelectorAll('span').map(({ textContent }) => textContent), before, 'another digit is another word');
});

test('different codes show a warning that says what to do, and verify nobody', async (t) => {
  const pass = fakeTime(t);
  const { verified } = openedCode();
  pass(2_000);
  assert.deepEqual(labels(), ['They match: bob', 'They differ: bob']);
  await buttons()[1].click();
  assert.equal(byID('code-dialog').open, false);
  const warning = byID('warnings').children.at(-1);
  assert.equal(warning.dataset.key, 'code-differs/bob');
  assert.match(warning.querySelectorAll('p')[0].textContent, /bob.*somebody may be listening in/);
  await warning.querySelectorAll('button')[0].click();
  assert.equal(byID('code-dialog').open, true, 'a press starts another comparison');
  assert.deepEqual(verified, []);
});

test('somebody whose devices are all verified has a shield with a label, and no button', (t) => {
  const pass = fakeTime(t);
  const { call } = openedCode();
  const shields = () => byID('person-list').querySelectorAll('.shield').map((shield) => shield.querySelector('span').textContent);
  assert.deepEqual(shields(), []);
  call.devices = [listed('alice', 1), { ...listed('bob', 2), level: 'verified' }];
  showCode(call);
  pass(2_000);
  assert.deepEqual(shields(), ['verified']);
  assert.deepEqual(labels(), []);
  call.devices = [...call.devices, listed('bob', 3)];
  openCode(call, { verify: async () => [], deviceName: () => undefined });
  assert.deepEqual(shields(), [], 'not for one device of two');
});

test('fingerprints are in the details; a changed one is beside its device', (t) => {
  fakeTime(t);
  const { call } = openedCode();
  const beside = () => byID('person-list').querySelectorAll('.fingerprint').length;
  assert.equal(byID('fingerprint-list').querySelectorAll('.fingerprint').length, 2);
  assert.equal(beside(), 0);
  call.devices = [listed('alice', 1), { ...listed('bob', 2), problem: 'changed-key' }];
  showCode(call);
  assert.equal(beside(), 1);
});
