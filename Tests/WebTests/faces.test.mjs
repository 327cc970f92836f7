// The faces in the lobby: who is shown, what a press does, and that favourites are kept.

import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { page } from './fake-page.mjs';
import { loadPage } from './web.mjs';

const byID = page();
const stored = new Map();
Object.defineProperty(globalThis, 'localStorage', { value: { getItem: (key) => stored.get(key) ?? null, setItem: (key, value) => stored.set(key, value) }, configurable: true });
const { Faces } = await loadPage('faces.js');
const { Favourites } = await loadPage('favourites.js');
const { peopleIn } = await loadPage('history-words.js');
const { beginNames } = await loadPage('names.js');

beforeEach(() => stored.clear());
beginNames('me', ['bob', 'carol', 'dave'].map((user) => [user, user]), () => {});

const call = (media, ...others) => ({ media, members: [{ user: 'me' }, ...others.map((user) => ({ user }))] });

test('people of past calls are sorted, latest first, each with the media of the last call with only that person', () => {
  const calls = [call('video', 'bob', 'carol'), call('audio', 'bob'), call('video', 'bob'), call('video', 'dave'), call('audio', 'guest~1'), call('audio')];
  assert.deepEqual([...peopleIn(calls, 'me')], [['bob', false], ['carol', undefined], ['dave', true]]);
  assert.deepEqual([...peopleIn([], 'me')], []);
});

function facesOf({ people = new Map(), states = {}, chosen = [] } = {}) {
  const asked = [];
  const field = { get hasNames() { return chosen.length > 0; }, add: (user) => asked.push(['add', user]) };
  const favourites = new Favourites(() => faces.show());
  favourites.begin('me');
  const faces = new Faces({ favourites, history: { people }, presence: { of: (user) => states[user] }, field, call: async (...rung) => asked.push(rung) });
  faces.show();
  return { asked, faces, favourites };
}

const rows = () => byID('faces').children.map(({ dataset }) => dataset);
const faceOf = (user) => byID('faces').children.find(({ dataset }) => dataset.user === user).querySelectorAll('button')[0];
const starOf = (user) => byID('faces').children.find(({ dataset }) => dataset.user === user).querySelectorAll('button')[1];

test('one press calls, with the camera unless the last call had none', async () => {
  const { asked } = facesOf({ people: new Map([['bob', false], ['carol', undefined], ['dave', true]]) });
  assert.deepEqual(['bob', 'carol', 'dave'].map((user) => faceOf(user).ariaLabel), ['Audio call: bob', 'Video call: carol', 'Video call: dave']);
  for (const user of ['bob', 'carol', 'dave']) await faceOf(user).click();
  assert.deepEqual(asked, [[['bob'], false], [['carol'], true], [['dave'], true]]);
});

test('while people are chosen for a call, a press adds to them', async () => {
  const { asked } = facesOf({ people: new Map([['bob', false]]), chosen: ['carol'] });
  assert.equal(faceOf('bob').ariaLabel, 'Add bob');
  await faceOf('bob').click();
  assert.deepEqual(asked, [['add', 'bob']]);
});

test('a star makes or removes a favourite, who stays first and is kept', () => {
  facesOf({ people: new Map([['bob', true], ['carol', true]]) });
  assert.deepEqual(rows(), [{ user: 'bob', favourite: 'false' }, { user: 'carol', favourite: 'false' }]);
  starOf('carol').click();
  assert.deepEqual(rows(), [{ user: 'carol', favourite: 'true' }, { user: 'bob', favourite: 'false' }]);
  assert.equal(starOf('carol')['aria-pressed'], 'true');
  assert.deepEqual(JSON.parse(stored.get('favourites/me')), ['carol']);
  facesOf();
  assert.deepEqual(rows(), [{ user: 'carol', favourite: 'true' }], 'even without a call');
  starOf('carol').click();
  assert.equal(byID('faces').hidden, true);
});

test('presence is given in words, separate from the accessible name of the button', () => {
  facesOf({ people: new Map([['bob', true]]), states: { bob: 'in-call' } });
  const presence = faceOf('bob').querySelectorAll('span').find(({ id }) => id === faceOf('bob')['aria-describedby']);
  assert.equal(presence.textContent, 'in a call');
  assert.equal(faceOf('bob').ariaLabel, 'Video call: bob');
});

test('eight people of past calls are shown in addition to the favourites', () => {
  const people = new Map(Array.from({ length: 20 }, (_, n) => [`user${n}`, true]));
  const { favourites, faces } = facesOf({ people });
  assert.equal(rows().length, 8);
  favourites.toggle('user3');
  favourites.toggle('user15');
  faces.show();
  assert.deepEqual(rows().map(({ user }) => user), ['user3', 'user15', 'user0', 'user1', 'user2', 'user4', 'user5', 'user6', 'user7', 'user8']);
});
