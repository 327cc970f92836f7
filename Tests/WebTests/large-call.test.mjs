// Drawing a call takes work proportional to its members, not to their square.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { load, loadPage } from './web.mjs';

const { CallEvents } = await load('call/call-events.js');
const { Refusal } = await load('wire/checks.js');
const { CallState } = await load('call/call-state.js');
const { confirmationOf, rosterOf } = await load('keys/call-trust.js');
const { Members } = await load('call/members.js');
const { beginNames, labelFor, learnNames } = await loadPage('names.js');
const { RosterWatch } = await load('keys/roster-watch.js');
const { tilesOf } = await load('call/tiles.js');

/** A proxy of `value` that counts in `work` each read of it, or of anything in it. */
function counted(value, work) {
  if (typeof value !== 'object' || value === null) return value;
  return new Proxy(value, {
    get(target, name) {
      work.reads += 1;
      const found = Reflect.get(target, name);
      return typeof found === 'function' ? found.bind(target) : counted(found, work);
    },
  });
}

/** A call of `count` members as the page sees it, in which nobody has confirmed the key, and the work done on it. */
function callOf(count) {
  const work = { reads: 0, lists: 0 };
  const people = Array.from({ length: count }, (_, index) => ({ user: `user-${index}`, device: 'phone', participant: index + 1 }));
  const list = people.map((entry) => counted({ ...entry, fingerprint: `f-${entry.user}` }, work));
  const members = people.map(({ user, device, participant }) => {
    const tracks = [{ track: `${participant}.1`, source: 'camera' }];
    return counted({ user, name: `Name ${user}`, state: 'joined', participants: [{ participant, device, connected: true, tracks }] }, work);
  });
  const watch = new RosterWatch();
  const missing = people.map(({ participant }) => participant);
  const asList = (made) => {
    work.lists += 1;
    return made;
  };
  return {
    work,
    participant: 1,
    hasKey: true,
    recordedOf: () => undefined,
    members: new Members(members),
    local: () => ({ isOn: true }),
    look: () => watch.update(0, { isConnected: true, participant: 1, epoch: 2, list, members, rotateMinutes: 10 }),
    get devices() {
      return asList(list.map((entry) => ({ ...entry })));
    },
    get roster() {
      return rosterOf(watch.people, this.devices);
    },
    get confirmation() {
      return confirmationOf({ state: 'not-confirmed', missing, wrong: [] }, this.devices);
    },
  };
}

/** The cost of drawing a call of `count` members once. */
function drawing(t, count) {
  const call = callOf(count);
  const normalize = t.mock.method(String.prototype, 'normalize');
  call.look();
  const tiles = tilesOf(call, { videoOf: () => undefined, pictureOf: () => 'awaited' });
  beginNames('user-0', [], () => {});
  learnNames(call.members.values());
  for (const { member } of tiles) labelFor(member.user);
  const names = normalize.mock.callCount();
  normalize.mock.restore();
  assert.equal(tiles.length, count);
  assert.equal(tiles.filter(({ doubt }) => doubt === 'not-confirmed').length, count - 1);
  return { ...call.work, names };
}

test('ten times the members take ten times the work, and not one more list', (t) => {
  const [small, large] = [drawing(t, 30), drawing(t, 300)];
  assert.ok(small.reads > 30 && small.names > 30, 'work is counted');
  assert.equal(large.lists, small.lists);
  assert.ok(large.reads <= 11 * small.reads, `${large.reads} reads for 300 members, ${small.reads} for 30`);
  assert.ok(large.names <= 11 * small.names, `${large.names} names compared for 300 members, ${small.names} for 30`);
});

test('an event about one member passes only that member to the keys', () => {
  const facts = new CallState({ id: 'c', user: 'user-0', device: 'phone' });
  facts.members = callOf(300).members;
  const seated = [];
  const keys = { seated: (seats) => seated.push([...seats.keys()]) };
  const events = new CallEvents(facts);
  events.stay = { keys, participant: 1 };
  events.handle('call.member', { call: 'c', at: 0, cause: 'joined', user: 'dora', state: 'joined', participants: [{ participant: 301, device: 'laptop', tracks: [] }] });
  assert.deepEqual(seated, [['dora/laptop']]);
  assert.equal(facts.members.size, 301);
});

test('changes that come together are judged after the last one, each member separately', () => {
  const facts = new CallState({ id: 'c', user: 'user-0', device: 'phone' });
  facts.members = callOf(300).members;
  const [seated, notices, own] = [[], [], []];
  const keys = { seated: (seats) => seated.push([...seats.keys()]) };
  const events = new CallEvents(facts);
  events.stay = { keys, participant: 1 };
  events.addEventListener('own-change', ({ detail }) => own.push([detail.cause, facts.members.get('user-0').participants.length]));
  events.addEventListener('notice', ({ detail: news }) => notices.push([news.member.user, news.cause]));
  const change = (user, cause, participants) => ({ cause, user, state: participants.length ? 'joined' : 'left', participants });
  const phone = { participant: 1, device: 'phone', tracks: [] };
  const members = [change('user-0', 'disconnected', []), change('dora', 'joined', [{ participant: 301, device: 'laptop', tracks: [] }]), change('user-0', 'rejoined', [phone]), change('user-7', 'left', [])];
  events.handle('call.members', { call: 'c', at: 0, members });
  assert.deepEqual(own, [['rejoined', 1]], 'only the last change determines where this device is');
  assert.deepEqual(notices, [['dora', 'joined'], ['user-7', 'left']]);
  assert.equal(seated.length, 4);
  assert.equal(facts.members.size, 301);
  for (const bad of [undefined, {}, [null], ['dora'], Array(65).fill(members[1])]) assert.throws(() => events.handle('call.members', { call: 'c', rev: 9, at: 0, members: bad }), Refusal);
  assert.equal(facts.members.size, 301);
  assert.equal(facts.rev, 0, 'the revision of a refused event does not count');
});

test('a server that names ever more members does not fill the memory', () => {
  const facts = new CallState({ id: 'c', user: 'user-0', device: 'phone' });
  facts.members = callOf(4_095).members;
  const joined = (user) => facts.memberChanged({ cause: 'joined', user, state: 'joined', participants: [] });
  joined('dora');
  assert.throws(() => joined('emil'), Refusal);
  joined('dora');
  assert.equal(facts.members.size, 4_096);
});
