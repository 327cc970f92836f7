// Two people with the same name: wherever somebody can be chosen for a call, the page tells them apart.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { page } from './fake-page.mjs';
import { loadPage } from './web.mjs';

const byID = page();
globalThis.sessionStorage ??= {};
const stored = new Map([['favourites/me', '["b0b","bob","carol"]']]);
Object.defineProperty(globalThis, 'localStorage', { value: { getItem: (key) => stored.get(key) ?? null }, configurable: true });
const { beginNames, learnNames } = await loadPage('names.js');
const { PeopleField, suggestPeople } = await loadPage('people.js');
const { Faces } = await loadPage('faces.js');
const { Favourites } = await loadPage('favourites.js');
const { HistoryView } = await loadPage('history-view.js');

const people = [{ user: 'bob', name: 'Bob' }, { user: 'b0b', name: 'Bob' }, { user: 'carol', name: 'Carol' }];
const labels = ['Bob (bob)', 'Bob (b0b)', 'Carol'];
const texts = (list) => list.querySelectorAll('span').map(({ textContent }) => textContent);
const spoken = (list) => list.querySelectorAll('button').map(({ ariaLabel }) => ariaLabel);

beginNames('me', [['bob', 'Bob'], ['carol', 'Carol']], () => {});
learnNames([{ user: 'me', name: 'Me' }, people[1]]); // a stranger, in this visit

test('chips, and the buttons that remove them', () => {
  const input = byID('people');
  const list = byID('chips');
  input.value = '';
  input.closest = () => ({ querySelector: () => list, addEventListener() {} });
  const field = new PeopleField(input);
  field.add('bob,b0b,carol');
  assert.deepEqual([texts(list), spoken(list)], [labels, labels.map((label) => `Remove ${label}`)]);
});

test('suggestions while a name is typed', () => {
  suggestPeople();
  const suggested = byID('known-people').children.map(({ value, label }) => [value, label]);
  assert.deepEqual(new Map(suggested), new Map([['b0b', 'Bob (b0b)'], ['bob', 'Bob (bob)'], ['carol', 'Carol']]));
});

test('favourites and recent people', () => {
  const favourites = new Favourites(() => {});
  favourites.begin('me');
  const history = { people: new Map() };
  new Faces({ favourites, history, presence: { of: () => undefined }, field: { hasNames: false }, call: async () => {} }).show();
  const [bob, stranger, carol] = labels;
  const list = byID('faces');
  assert.deepEqual(list.querySelectorAll('.face-name').map(({ textContent }) => textContent), [stranger, bob, carol]);
  assert.deepEqual(spoken(list), [stranger, bob, carol].flatMap((label) => [`Video call: ${label}`, `Favourite: ${label}`]));
});

test('recent calls, and the buttons that call back', async () => {
  const history = new HistoryView({ callBack() {}, enter() {}, favourites: new Favourites(() => {}) });
  const past = { media: 'video', direction: 'incoming', outcome: 'missed', startedAt: 0, seconds: 0 };
  const calls = people.map((person) => ({ ...past, id: person.user, members: [{ user: 'me' }, person] }));
  await history.load({ user: 'me', history: async () => calls, presence: { watch: async () => {}, of: () => undefined } });
  const callBack = spoken(byID('history-list')).filter((label) => label.startsWith('Call back'));
  assert.deepEqual(callBack, labels.map((label) => `Call back: ${label}`));
});
