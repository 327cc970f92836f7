import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fakeTimers, load, loadPage } from './web.mjs';

const { userIDOf } = await loadPage('people.js');
const { nameOf, rest } = await loadPage('dom.js');
const { beginNames, labelFor, learnNames, namesakeOf, rememberNames } = await loadPage('names.js');
const { Members } = await load('members.js');
const { ownerOf, tilesOf } = await load('tiles.js');

globalThis.ResizeObserver = class {};
const { layout } = await loadPage('stage.js');

test('a typed name stands for one user id, the same for everybody who types it', () => {
  assert.equal(userIDOf(' Carol Núñez ', true), 'carol-nunez');
  assert.equal(userIDOf('carol nunez', true), 'carol-nunez');
  assert.match(userIDOf('李雷', true), /^[A-Za-z0-9._~@+-]{1,128}$/);
  assert.notEqual(userIDOf('李雷', true), userIDOf('韩梅', true));
  assert.equal(userIDOf('  ', true), '');
});

test('without demo mode an id is taken as it is, or not at all', () => {
  assert.equal(userIDOf('Alice@example', false), 'Alice@example');
  assert.equal(userIDOf('two words', false), '');
});

test('a name cannot turn the text around it', () => {
  assert.equal(nameOf({ user: 'bob', name: '\u202eBob\u202c' }), 'Bob');
  assert.equal(nameOf({ user: 'bob', name: '\u2067' }), 'bob');
  assert.equal(nameOf({ user: 'li', name: '李雷 محمد' }), '李雷 محمد');
});

test('tiles fit their box and keep the shape of a face', () => {
  for (const [count, width, height] of [[1, 1280, 640], [3, 1280, 640], [3, 366, 680], [9, 800, 600], [25, 1920, 900]]) {
    const tile = layout(count, width, height);
    const columns = Math.floor((width + 12) / (tile.width + 12));
    assert.ok(Math.ceil(count / columns) * (tile.height + 12) - 12 <= height, `${count} in ${width}×${height}`);
    assert.ok(tile.width / tile.height < 1.8 && tile.width / tile.height > 0.7, `${tile.width}×${tile.height}`);
  }
});

const track = (id, source, muted = false) => ({ track: id, source, kind: 'video', muted });

const person = (facts) => ({ state: 'member', ...facts });
const noConfirmation = { state: 'confirming', missing: [] };

function callOf({ devices = [], tracks, roster = [], confirmation = noConfirmation }) {
  const bob = { user: 'bob', state: 'joined', participants: [{ participant: 2, device: 'phone', connected: true, tracks }] };
  return {
    participant: 1,
    devices,
    roster,
    confirmation,
    members: new Members([bob, { user: 'carol', state: 'ringing', participants: [] }]),
    local: () => ({ isOn: true }),
  };
}

test('a person, a shared screen and somebody who is rung have a tile each', () => {
  const call = callOf({ tracks: [track('2.2', 'camera'), track('2.3', 'screen')] });
  const tiles = tilesOf(call, (participant, n) => `video ${participant}.${n}`);
  assert.deepEqual(tiles.map(({ source, video }) => [source, video]), [
    ['camera', 'video 2.2'],
    ['screen', 'video 2.3'],
    ['ringing', undefined],
  ]);
});

test('a muted camera shows no picture', () => {
  const call = callOf({ tracks: [track('2.2', 'camera', true)] });
  assert.equal(tilesOf(call, () => 'video')[0].video, undefined);
});

test('who is on hold shows no picture, and nobody does while the call is on hold here', () => {
  const call = callOf({ tracks: [track('2.2', 'camera')] });
  call.members.get('bob').participants[0].held = true;
  assert.deepEqual(tilesOf(call, () => 'video').map(({ video, isHeld }) => [video, isHeld])[0], [undefined, true]);
  call.members.get('bob').participants[0].held = false;
  call.isHeld = true;
  assert.equal(tilesOf(call, () => 'video')[0].video, undefined);
});

test('the list of keys, not the server, says whose a tile or a message is', () => {
  const call = callOf({ devices: [{ participant: 2, user: 'mallory' }], tracks: [] });
  assert.equal(tilesOf(call, () => undefined)[0].member.user, 'mallory');
  assert.equal(ownerOf(call, 2).user, 'mallory');
  assert.equal(ownerOf(callOf({ tracks: [] }), 2).user, 'bob');
  assert.equal(ownerOf(call, 9), undefined, 'who is gone already');
});

test('a device that can hear the call and is not in it has a tile of its own, whoever it says it is', () => {
  const ghost = person({ user: 'zed', device: 'web-1', participant: 9, state: 'stranger' });
  const second = person({ user: 'bob', device: 'tablet', participant: 7, state: 'stranger' });
  const gone = person({ user: 'dave', device: 'd', participant: 5, state: 'gone' });
  const roster = [person({ user: 'bob', device: 'phone', participant: 2 }), ghost, second, gone];
  const tiles = tilesOf(callOf({ tracks: [], roster }), () => undefined);
  const listeners = tiles.filter(({ source }) => source === 'listener');
  assert.deepEqual(listeners.map(({ member, doubt }) => [member.user, doubt]), [['zed', 'stranger'], ['bob', 'stranger'], ['dave', 'gone']]);
  assert.equal(new Set(tiles.map(({ key }) => key)).size, tiles.length);
});

test('somebody who left a moment ago and is still listed has no tile yet', () => {
  const roster = [person({ user: 'bob', device: 'phone', participant: 2 }), person({ user: 'dave', device: 'd', participant: 5 })];
  assert.deepEqual(tilesOf(callOf({ tracks: [], roster }), () => undefined).map(({ source }) => source), ['camera', 'ringing']);
});

test('a member that is not on the list cannot hear yet; on a ring’s list a device has no number', () => {
  const alice = person({ user: 'alice', device: 'd', participant: 1 });
  const doubt = (roster) => tilesOf(callOf({ tracks: [], roster }), () => undefined)[0].doubt;
  assert.equal(doubt([alice, person({ user: 'bob', device: 'phone', participant: 2, state: 'unlisted' })]), 'unlisted');
  assert.equal(doubt([alice, person({ user: 'bob', device: 'phone', participant: 0 })]), undefined);
  assert.equal(doubt([alice, person({ user: 'bob', device: 'phone', participant: 2 })]), undefined);
});

test('who did not confirm the key in time is marked, who may still do so is not', () => {
  const roster = [person({ user: 'bob', device: 'phone', participant: 2 })];
  const doubt = (confirmation) => tilesOf(callOf({ tracks: [], roster, confirmation }), () => undefined)[0].doubt;
  const missing = [{ participant: 2 }];
  assert.equal(doubt({ state: 'confirming', missing }), undefined);
  assert.equal(doubt({ state: 'not-confirmed', missing }), 'not-confirmed');
  assert.equal(doubt({ state: 'not-confirmed', missing: [{ participant: 3 }] }), undefined);
});

test('a user id stands beside a name at the first contact and where somebody else has that name', () => {
  const saved = [];
  beginNames('me', [['bob', 'Bob']], (names) => saved.splice(0, saved.length, ...names));
  learnNames([{ user: 'me', name: 'Me' }, { user: 'bob', name: 'Bob' }, { user: 'u-17', name: 'Carol' }, { user: 'dave', name: 'Dave' }]);
  assert.deepEqual(['me', 'bob', 'u-17', 'dave'].map(labelFor), ['Me', 'Bob', 'Carol (u-17)', 'Dave']);
  rememberNames(['u-17', 'me']);
  assert.equal(labelFor('u-17'), 'Carol');
  assert.deepEqual(saved, [['bob', 'Bob'], ['u-17', 'Carol']]);
  for (const name of ['Bob', 'bob ', 'Ｂｏｂ', 'B\u200bob', 'B.o.b']) {
    learnNames([{ user: 'b0b', name }]);
    assert.equal(namesakeOf('b0b'), 'bob', name);
    assert.deepEqual(['b0b', 'bob'].map(labelFor), [`${nameOf({ name })} (b0b)`, 'Bob (bob)'], name);
  }
  learnNames([{ user: 'b0b', name: 'Robert' }]);
  assert.equal(namesakeOf('b0b'), undefined);
});

test('a button rests for two seconds after what it is about has changed, and once more after another change', (t) => {
  const tick = fakeTimers(t);
  const button = { disabled: false };
  rest(button);
  tick(1_900);
  rest(button);
  tick(1_900);
  assert.equal(button.disabled, true);
  tick(200);
  assert.equal(button.disabled, false);
});

test('tracks come, change and go', () => {
  const members = new Members([{ user: 'bob', participants: [{ participant: 2, tracks: [] }] }]);
  assert.equal(members.setTrack({ ...track('2.1', 'camera'), participant: 2 }).isNew, true);
  assert.equal(members.setTrack({ ...track('2.1', 'camera', true), participant: 2 }).isNew, false);
  assert.deepEqual(members.tracksOfOthers('alice'), [track('2.1', 'camera', true)]);
  assert.deepEqual(members.tracksOfOthers('bob'), []);
  members.removeTrack({ track: '2.1', participant: 2 });
  assert.deepEqual(members.tracksOfOthers('alice'), []);
  assert.equal(members.setTrack({ ...track('9.1', 'camera'), participant: 9 }).isNew, false);
});
