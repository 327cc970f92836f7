// The list of recent calls: consecutive calls with the same people share a row, which can be expanded.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { page } from './fake-page.mjs';
import { aside, loadPage } from './web.mjs';

const byID = page();
const { HistoryView } = await loadPage('history-view.js');
const { grouped, when } = await loadPage('history-words.js');
const { beginNames } = await loadPage('names.js');
beginNames('me', [], () => {});

let next = 0;
const call = (people, facts = {}) => {
  next += 1;
  return { id: `c${next}`, media: 'video', direction: 'incoming', outcome: 'missed', startedAt: 1_000_000 - next, seconds: 0, rejoinable: false, members: ['me', ...people].map((user) => ({ user })), ...facts };
};
const rows = () => byID('history-list').children;
const texts = (node, className) => node.querySelectorAll(`.${className}`).map(({ textContent }) => textContent);
const button = (node, label) => node.querySelectorAll('button').find(({ ariaLabel }) => ariaLabel === label);

/** A view of `calls`, which are served in pages; `asked` collects its requests. */
async function viewOf(calls, asked = []) {
  const view = new HistoryView({ callBack: async (...rung) => asked.push(rung), enter: async (id) => asked.push(id), favourites: { users: [], star: () => '' } });
  const conclave = {
    user: 'me',
    history: async ({ before = Infinity, limit }) => calls.filter(({ startedAt }) => startedAt < before).slice(0, limit),
    deleteHistory: async (ids) => asked.push(ids),
    totals: async (user) => ({ calls: 7, seconds: 60, user }),
    presence: { watch: async () => {}, of: () => 'available' },
  };
  await view.load(conclave);
  return view;
}

test('only consecutive calls with the same people share a row, whoever called, and a rejoinable call has its own', () => {
  const calls = [call(['bob']), call(['bob'], { direction: 'outgoing', outcome: 'answered' }), call(['carol', 'bob']), call(['bob', 'carol']), call(['bob']), call(['bob'], { rejoinable: true }), call(['bob']), call([]), call([])];
  assert.deepEqual(grouped(calls, 'me').map((row) => [row.others.map(({ user }) => user).join(), row.calls.length]), [['bob', 2], ['carol,bob', 2], ['bob', 1], ['bob', 1], ['bob', 1], ['', 2]]);
});

test('a row shows its newest call and the number of calls, and expands to all of them with the totals', async () => {
  const asked = [];
  await viewOf([call(['bob'], { media: 'audio' }), call(['bob']), call(['bob'], { outcome: 'declined' }), call(['carol'])], asked);
  const [bob, carol] = rows();
  assert.deepEqual([rows().length, texts(bob, 'row-count'), texts(carol, 'row-count')], [2, ['(3)'], []]);
  assert.deepEqual([bob.dataset.outcome, bob.dataset.count, texts(bob, 'single-calls').length], ['missed', '3', 0]);
  await button(bob, 'Call back: bob').click();
  assert.deepEqual(asked, [[['bob'], false]]);
  button(bob, 'Details: bob (3)').click();
  await aside();
  const opened = rows()[0];
  assert.equal(button(opened, 'Details: bob (3)')['aria-expanded'], 'true');
  const lines = opened.querySelector('.single-calls').children;
  assert.equal(lines.length, 3);
  assert.match(lines[2].children[0].children[1], /^Declined ·\s.*\d:\d\d/);
  assert.match(texts(opened, 'totals')[0], /^bob: available · in all 7 calls/);
  // One call of several, then the row.
  await lines[2].querySelector('button').click();
  assert.deepEqual([asked.at(-1).length, texts(rows()[0], 'row-count'), rows()[0].querySelectorAll('.single-calls').length], [1, ['(2)'], 1]);
  await button(rows()[0], 'Delete: bob (2)').click();
  assert.deepEqual([asked.at(-1).length, rows().length], [2, 1]);
  button(rows()[0], 'Details: carol').click();
  await aside();
  assert.deepEqual([rows()[0].querySelectorAll('.single-calls').length, texts(rows()[0], 'totals').length], [0, 1]);
  button(rows()[0], 'Details: carol').click();
  assert.equal(texts(rows()[0], 'totals').length, 0);
});

test('if many calls make one row, more are loaded at once', async () => {
  const calls = [...Array.from({ length: 70 }, () => call(['bob'])), ...Array.from({ length: 40 }, (_, index) => call([`u${index}`]))];
  await viewOf(calls);
  assert.deepEqual([texts(rows()[0], 'row-count'), rows().length, byID('history-more').hidden], [['(70)'], 11, false]);
  await byID('history-more').click();
  assert.equal(rows().length, 31);
  await byID('history-more').click();
  assert.deepEqual([rows().length, byID('history-more').hidden], [41, true]);
});

test('older calls show date and time, and those of other years also the year', () => {
  const now = new Date(2026, 10, 21, 15).getTime();
  assert.match(when(new Date(2026, 2, 3, 9, 10).getTime(), now), /^Mar\s3,\s0?9:10/);
  assert.match(when(new Date(2026, 10, 22, 7).getTime(), now), /^tomorrow\s0?7:00/);
  assert.match(when(new Date(2025, 2, 3, 9, 10).getTime(), now), /^Mar\s3,\s2025,\s0?9:10/);
});
