import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fakeTimers, load, loadPage } from './web.mjs';

const { nameOf, rest } = await loadPage('dom.js');
const { beginNames, knownPeople, labelFor, learnNames, namesakeOf, rememberNames, userIDOf } = await loadPage('names.js');
const { isGuest } = await load('guests.js');
const { Hands } = await loadPage('hands.js');
const { inOrder, largeOf, leadsOf } = await loadPage('stage.js');
const { Speaker } = await loadPage('speaker.js');
const { Members } = await load('call/members.js');
const { ownerOf, tilesOf } = await load('call/tiles.js');

test('a typed name maps to one user id, the same for everybody who types it', () => {
  assert.equal(userIDOf(' Carol Núñez ', true), 'carol-nunez');
  assert.equal(userIDOf('carol nunez', true), 'carol-nunez');
  assert.match(userIDOf('李雷', true), /^[A-Za-z0-9._~@+-]{1,128}$/);
  assert.notEqual(userIDOf('李雷', true), userIDOf('韩梅', true));
  assert.equal(userIDOf('  ', true), '');
});

test('without demo mode an id is used unchanged, or not at all', () => {
  assert.equal(userIDOf('Alice@example', false), 'Alice@example');
  assert.equal(userIDOf('two words', false), '');
});

test('a name cannot reverse the text around it', () => {
  assert.equal(nameOf({ user: 'bob', name: '\u202eBob\u202c' }), 'Bob');
  assert.equal(nameOf({ user: 'bob', name: '\u2067' }), 'bob');
  assert.equal(nameOf({ user: 'li', name: '李雷 محمد' }), '李雷 محمد');
});

const track = (id, source, muted = false) => ({ track: id, source, kind: 'video', muted });

const person = (facts) => ({ state: 'member', ...facts });
const noVideo = { videoOf: () => undefined, pictureOf: () => 'awaited' };
const noConfirmation = { state: 'confirming', missing: [] };

function callOf({ devices = [], tracks, roster = [], confirmation = noConfirmation, hasKey = true }) {
  const bob = { user: 'bob', state: 'joined', participants: [{ participant: 2, device: 'phone', connected: true, tracks }] };
  return {
    participant: 1,
    devices,
    roster,
    recordedOf: () => undefined,
    numberOwner: (number) => devices.find((device) => device.participant === number),
    hasKey,
    confirmation,
    members: new Members([bob, { user: 'carol', state: 'ringing', participants: [] }]),
    local: () => ({ isOn: true }),
  };
}

test('a person, a shared screen and somebody who is rung each have a tile', () => {
  const call = callOf({ tracks: [track('2.2', 'camera'), track('2.3', 'screen')] });
  const tiles = tilesOf(call, { ...noVideo, videoOf: (participant, n) => `video ${participant}.${n}` });
  assert.deepEqual(tiles.map(({ source, video }) => [source, video]), [
    ['camera', 'video 2.2'],
    ['screen', 'video 2.3'],
    ['ringing', undefined],
  ]);
});

test('a muted camera shows no picture', () => {
  const call = callOf({ tracks: [track('2.2', 'camera', true)] });
  assert.equal(tilesOf(call, { ...noVideo, videoOf: () => 'video' })[0].video, undefined);
});

test('a participant on hold shows no picture; while the call is on hold here, nobody does', () => {
  const call = callOf({ tracks: [track('2.2', 'camera')] });
  call.members.get('bob').participants[0].held = true;
  assert.deepEqual(tilesOf(call, { ...noVideo, videoOf: () => 'video' }).map(({ video, isHeld }) => [video, isHeld])[0], [undefined, true]);
  call.members.get('bob').participants[0].held = false;
  call.isHeld = true;
  assert.equal(tilesOf(call, { ...noVideo, videoOf: () => 'video' })[0].video, undefined);
});

test('the list of keys, not the server, determines the owner of a tile or a message', () => {
  const mallory = { participant: 2, user: 'mallory', device: 'm' };
  const call = callOf({ devices: [mallory], tracks: [], roster: [person({ ...mallory, state: 'stranger' })] });
  const [first, ...others] = tilesOf(call, noVideo);
  assert.deepEqual([first.member.user, first.doubt], ['mallory', 'stranger']);
  assert.deepEqual(others.map(({ source }) => source), ['ringing'], 'one tile for one device');
  assert.equal(ownerOf(call, 2).user, 'mallory');
  assert.equal(ownerOf(callOf({ tracks: [] }), 2).user, 'bob');
  assert.equal(ownerOf(call, 9), undefined, 'who has left already');
});

test('a device that can hear the call but is not in it has its own tile, whoever it claims to be', () => {
  const ghost = person({ user: 'zed', device: 'web-1', participant: 9, state: 'stranger' });
  const second = person({ user: 'bob', device: 'tablet', participant: 7, state: 'stranger' });
  const gone = person({ user: 'dave', device: 'd', participant: 5, state: 'gone' });
  const roster = [person({ user: 'bob', device: 'phone', participant: 2 }), ghost, second, gone];
  const tiles = tilesOf(callOf({ tracks: [], roster }), noVideo);
  const listeners = tiles.filter(({ source }) => source === 'listener');
  assert.deepEqual(listeners.map(({ member, doubt }) => [member.user, doubt]), [['zed', 'stranger'], ['bob', 'stranger'], ['dave', 'gone']]);
  assert.equal(new Set(tiles.map(({ key }) => key)).size, tiles.length);
});

test('a device that can hear but is not in the call is on the first page, before the speaker; with only one page, one that has just left keeps its place', () => {
  const tile = (source, participant, doubt) => ({ description: { source, participant, doubt, isOwn: participant === 1 } });
  const tiles = [tile('camera', 1), tile('camera', 2), tile('camera', 3), tile('ringing'), tile('listener', 9, 'stranger'), tile('screen', 1), tile('listener', 8, 'gone')];
  const order = (speaker, size = 3) => inOrder(tiles, [speaker], size).map((one) => tiles.indexOf(one));
  assert.deepEqual(order(), [4, 6, 1, 2, 3, 5, 0]);
  assert.deepEqual(order(tiles[2]), [4, 6, 2, 1, 3, 5, 0]);
  assert.deepEqual(order(undefined, 7), [4, 1, 2, 3, 5, 6, 0]);
});

test('a shared screen replaces a pinned tile, except with video first', () => {
  const [pinned, screen, other] = ['pinned', 'screen', 'other'];
  const large = (isVideoFirst) => [[[], undefined], [[], pinned], [[screen], undefined], [[screen, other], pinned], [[screen], screen]].map((tiles) => largeOf(...tiles, isVideoFirst));
  assert.deepEqual(large(false), [[], [pinned], [screen], [screen, other], [screen]]);
  assert.deepEqual(large(true), [[], [pinned], [screen], [pinned, screen, other], [screen]]);
});

test('the speaker comes first; with video first only raised hands do, if they are on another page', () => {
  const tiles = [1, 2, 3, 4].map((participant) => ({ description: { source: 'camera', participant, isOwn: participant === 1 } }));
  const leads = (size, isVideoFirst) => leadsOf(tiles, size, { speaker: tiles[3], isVideoFirst, isRaised: (participant) => participant !== 2 });
  assert.deepEqual([leads(2, false), leads(4, false)], [[tiles[3]], [tiles[3]]]);
  assert.deepEqual([leads(2, true), leads(4, true)], [[tiles[2], tiles[3]], []]);
  assert.deepEqual(leadsOf(tiles, 4, { speaker: undefined, isVideoFirst: false, isRaised: () => true }), []);
});

test('the tile of a device stays when it leaves, and when it comes back under another number, until a list without it is used', () => {
  const bob = person({ user: 'bob', device: 'phone', participant: 2 });
  const tileOf = (participants, state) => {
    const call = callOf({ tracks: [], roster: [{ ...bob, state }] });
    call.members.get('bob').participants = participants;
    return tilesOf(call, noVideo).filter(({ member }) => member.user === 'bob').map(({ key, source, doubt }) => [key, source, doubt])[0];
  };
  const seat = (participant) => [{ participant, device: 'phone', connected: true, tracks: [] }];
  assert.deepEqual(tileOf(seat(2), 'member'), ['bob/phone', 'camera', undefined]);
  assert.deepEqual(tileOf([], 'gone'), ['bob/phone', 'listener', 'gone']);
  assert.deepEqual(tileOf(seat(5), 'gone'), ['bob/phone', 'camera', 'returning'], 'it has the key of its list');
});

test('each listed device is drawn, whatever the state says about its user', () => {
  const devices = [
    { user: 'bob', device: 'phone', participant: 2 },
    { user: 'bob', device: 'tablet', participant: 7 },
    { user: 'carol', device: 'c1', participant: 0 },
    { user: 'carol', device: 'c2', participant: 0 },
    { user: 'bob', device: 'watch', participant: 0 },
    { user: 'dave', device: 'd', participant: 0 },
  ];
  for (const state of ['member', 'gone', 'stranger']) {
    const tiles = tilesOf(callOf({ tracks: [], roster: devices.map((device) => person({ ...device, state })) }), noVideo);
    for (const { user, device, participant } of devices) {
      const isDrawn = (tile) => tile.member.user === user && (tile.device === device || (participant === 0 && tile.rung?.includes(device)));
      assert.ok(tiles.some(isDrawn), `${user}/${device} ${state}`);
    }
    assert.equal(new Set(tiles.map(({ key }) => key)).size, tiles.length);
  }
});

test('a member that is not listed cannot hear yet; on a ring’s list a device has no number', () => {
  const alice = person({ user: 'alice', device: 'd', participant: 1 });
  const doubt = (roster) => tilesOf(callOf({ tracks: [], roster }), noVideo)[0].doubt;
  assert.equal(doubt([alice, person({ user: 'bob', device: 'phone', participant: 2, state: 'unlisted' })]), 'unlisted');
  assert.equal(doubt([alice, person({ user: 'bob', device: 'phone', participant: 0 })]), undefined);
  assert.equal(doubt([alice, person({ user: 'bob', device: 'phone', participant: 2 })]), undefined);
});

test('a device that did not confirm the key in time is marked, one that still has time is not', () => {
  const roster = [person({ user: 'bob', device: 'phone', participant: 2 })];
  const doubt = (confirmation) => tilesOf(callOf({ tracks: [], roster, confirmation }), noVideo)[0].doubt;
  const missing = [{ participant: 2 }];
  assert.equal(doubt({ state: 'confirming', missing }), undefined);
  assert.equal(doubt({ state: 'not-confirmed', missing }), 'not-confirmed');
  assert.equal(doubt({ state: 'not-confirmed', missing: [{ participant: 3 }] }), undefined);
});

test('a tile says why the two do not hear each other', () => {
  const doubt = (facts, hasKey) => tilesOf(callOf({ tracks: [], roster: [person({ user: 'bob', device: 'phone', participant: 2, ...facts })], hasKey }), noVideo)[0].doubt;
  assert.equal(doubt({}, false), 'no-key');
  assert.equal(doubt({ problem: 'changed-key' }), 'untrusted');
  assert.equal(doubt({ problem: 'revoked', isConfirmed: true }), 'untrusted-hears', 'another member gave it the key');
  assert.equal(doubt({ isWaiting: true }), 'distrusting');
  assert.equal(doubt({}), undefined);
});

test('a tile tells the state of its picture, if one is sent', () => {
  const picture = (muted) => tilesOf(callOf({ tracks: [track('2.2', 'camera', muted)] }), { ...noVideo, pictureOf: (participant, n) => `of ${participant}.${n}` })[0].picture;
  assert.deepEqual([picture(false), picture(true)], ['of 2.2', undefined]);
});

test('the user id is beside a name at the first contact, and if somebody else has the same name', () => {
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

test('a button is disabled for two seconds after a change of its subject, and again after another change', (t) => {
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
  assert.deepEqual(members.removeTrack({ track: '2.1', participant: 2 }).removed, track('2.1', 'camera', true));
  assert.equal(members.removeTrack({ track: '2.1', participant: 2 }).removed, undefined);
  assert.deepEqual(members.tracksOfOthers('alice'), []);
  assert.equal(members.setTrack({ ...track('9.1', 'camera'), participant: 9 }).isNew, false);
});

test('the speaker changes at most every two seconds, and a screen reader announces one every five', () => {
  const speaker = new Speaker();
  const update = (now, ...speaking) => speaker.update(now, new Set(speaking));
  assert.deepEqual([update(0), speaker.current, speaker.toSay(0)], [false, undefined, undefined]);
  assert.deepEqual([update(100, 2), speaker.current, speaker.toSay(100)], [true, 2, 2]);
  assert.deepEqual([update(1_000, 3), speaker.current], [false, 2], 'not with every word');
  assert.deepEqual([update(2_200, 3), speaker.current, speaker.toSay(2_200)], [true, 3, undefined]);
  assert.deepEqual([speaker.toSay(5_100), speaker.toSay(20_000)], [3, undefined], 'once');
  assert.equal(update(9_000, 2, 3), false, 'whoever keeps speaking stays');
});

test('a hand is up until its owner lowers it or leaves', () => {
  const hands = new Hands();
  assert.equal(hands.take({ participant: 2, text: 'Hello' }), false);
  hands.take({ participant: 2, hand: true });
  hands.take({ participant: 3, hand: true });
  hands.take({ participant: 3, hand: false });
  assert.deepEqual([2, 3].map((participant) => hands.isRaised(participant)), [true, false]);
  hands.keep(new Set([1, 3]));
  assert.equal(hands.isRaised(2), false);
});

test('a guest is recognised by its id, whatever the server says, and is not remembered', () => {
  const saved = [];
  beginNames('me', [['bob', 'Bob']], (names) => saved.push(...names));
  learnNames([{ user: 'guest~1', name: 'Ana' }, { user: 'guest~2', name: '\u202eBob', link: undefined }, { user: 'dora', name: 'Dora (guest)' }]);
  assert.deepEqual(['guest~1', 'guest~2', 'guest~3'].map(labelFor), ['Ana (guest)', 'Bob (guest) (guest~2)', 'guest~3 (guest)']);
  assert.equal(labelFor('dora'), 'Dora (guest) (dora)');
  assert.equal(namesakeOf('guest~2'), 'bob');
  assert.deepEqual(knownPeople(9).filter(isGuest), []);
  rememberNames(['guest~1', 'bob']);
  assert.deepEqual(saved, [['bob', 'Bob']]);
  assert.ok(!isGuest('guest') && !isGuest('Guest~1') && !isGuest(undefined) && !isGuest(7));
});
