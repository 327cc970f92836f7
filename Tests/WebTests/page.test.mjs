import assert from 'node:assert/strict';
import { test } from 'node:test';
import { load } from './web.mjs';

const { userIDOf } = await load('people.js');
const { nameOf } = await load('dom.js');
const { Members } = await load('members.js');
const { ownerOf, tilesOf } = await load('tiles.js');

globalThis.ResizeObserver = class {};
const { layout } = await load('stage.js');

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

function callOf({ devices = [], tracks }) {
  const bob = { user: 'bob', state: 'joined', participants: [{ participant: 2, connected: true, tracks }] };
  return {
    participant: 1,
    devices,
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
