import assert from 'node:assert/strict';
import { test } from 'node:test';
import { load } from './web.mjs';

const { RosterWatch } = await load('keys/roster-watch.js');

const seat = (user, participant) => ({ user, device: 'd', participant, fingerprint: user });
const joined = (...seats) => seats.map(({ user, device, participant }) => ({ user, state: 'joined', participants: [{ device, participant }] }));
const left = (user) => ({ user, state: 'left', participants: [] });
const [alice, bob, zed] = [seat('alice', 1), seat('bob', 2), seat('zed', 3)];

/** Alice's watch, a clock, and the known devices. */
function watched(facts = {}) {
  const watch = new RosterWatch();
  let now = 0;
  const known = { isConnected: true, isAsking: false, participant: 1, epoch: 2, list: [alice, bob], members: joined(alice, bob), rotateMinutes: 10, ...facts };
  const say = (changes = {}) => watch.update(now, Object.assign(known, changes));
  const asks = [];
  const pass = (seconds) => {
    for (let half = 0; half < seconds * 2; half += 1) {
      now += 500;
      if (watch.tick(now) === 'ask') asks.push(now);
    }
  };
  say();
  return { watch, say, pass, asks, asked: () => watch.asked(now), anyway: (shown = watch.stopped.people) => watch.sendAnyway(now, shown), news: () => watch.takeNews().map(({ problem, user }) => [problem, user]) };
}

test('a listed device that is in the call causes no warning', () => {
  const { watch, pass, news } = watched();
  pass(60);
  assert.deepEqual(watch.people.map(({ user, listed, member, isStranger, hasLeft }) => [user, listed, member, isStranger, hasLeft]), [
    ['alice', true, true, false, false],
    ['bob', true, true, false, false],
  ]);
  assert.deepEqual([watch.stopped, news()], [undefined, []]);
});

test('a stranger is reported at once, looked up after 5 s, and stops the sending only if the answer confirms it', () => {
  const { watch, say, pass, asks, asked, news } = watched();
  say({ list: [alice, bob, zed] });
  assert.deepEqual([watch.people.at(-1).isStranger, news()], [true, [['stranger', 'zed']]]);
  pass(4.5);
  assert.deepEqual([asks, watch.stopped], [[], undefined]);
  pass(0.5);
  assert.equal(asks.length, 1);
  assert.equal(watch.stopped, undefined, 'not before the answer');
  asked();
  assert.deepEqual([watch.stopped.cause, watch.stopped.people[0].user, watch.stopped.needsPerson], ['stranger', 'zed', false]);
  say({ members: joined(alice, bob, zed) });
  assert.equal(watch.stopped, undefined);
});

test('a number of another user or device is a stranger too', () => {
  for (const [user, device] of [['bob', 'other'], ['carol', 'd']]) {
    const { watch, say } = watched();
    say({ list: [alice, bob, { user, device, participant: 2, fingerprint: 'x' }].slice(0, 3) });
    assert.equal(watch.people.find((person) => person.user === user && person.device === device).isStranger, true);
  }
});

test('the time adds up across reconnects, and stops while there is no connection', () => {
  const { watch, say, pass, asks } = watched();
  say({ list: [alice, bob, zed] });
  for (let round = 0; round < 2; round += 1) {
    pass(2);
    say({ isConnected: false });
    pass(30);
    assert.deepEqual([asks, watch.stopped], [[], undefined]);
    say({ isConnected: true });
  }
  pass(1);
  assert.equal(asks.length, 1, '5 s in all');
});

test('the rules pause while an answer is pending, for 5 s; then the question counts as answered', () => {
  const { watch, say, pass, asks, asked } = watched();
  say({ list: [alice, bob, zed] });
  pass(5);
  assert.equal(asks.length, 1);
  say({ isAsking: true });
  pass(4.5);
  assert.equal(watch.stopped, undefined);
  pass(0.5);
  assert.equal(watch.stopped.cause, 'stranger');
  say({ isAsking: false, members: joined(alice, bob, zed) });
  asked();
  assert.equal(watch.stopped, undefined, 'the answer explains it');
});

test('a server that withholds answers, or breaks the connection when asked, cannot prevent the stop', () => {
  const withheld = watched();
  withheld.say({ list: [alice, bob, zed] });
  for (let round = 0; round < 4; round += 1) {
    withheld.say({ isAsking: true });
    withheld.pass(14.5);
    withheld.say({ isAsking: false });
    withheld.pass(0.5);
    withheld.say({ isAsking: true });
  }
  assert.equal(withheld.watch.stopped?.cause, 'stranger');
  const broken = watched();
  broken.say({ list: [alice, bob, zed] });
  let asks = 0;
  for (let half = 0; half < 40; half += 1) {
    broken.pass(0.5);
    if (broken.asks.length === asks) continue;
    asks = broken.asks.length;
    broken.say({ isAsking: true });
    broken.say({ isConnected: false, isAsking: false });
    broken.say({ isConnected: true, isAsking: true });
    broken.pass(4); // then it breaks again
    broken.say({ isConnected: false, isAsking: false });
    broken.say({ isConnected: true, isAsking: true });
    broken.pass(4);
  }
  assert.equal(broken.watch.stopped?.cause, 'stranger', 'the question was open for 8 s in all');
});

test('a departed device that is still listed is marked at once, reported after 3 s, and stops the sending after 15 s', () => {
  const { watch, say, pass, news } = watched();
  say({ members: [...joined(alice), left('bob')] });
  assert.deepEqual([watch.people[1].hasLeft, news()], [true, []]);
  pass(2.5);
  assert.deepEqual(news(), []);
  pass(0.5);
  assert.deepEqual(news(), [['gone', 'bob']]);
  pass(11.5);
  assert.equal(watch.stopped, undefined);
  pass(0.5);
  assert.deepEqual([watch.stopped.cause, watch.stopped.people[0].user], ['gone', 'bob']);
  say({ list: [alice], epoch: 3 });
  assert.equal(watch.stopped, undefined);
});

test('a device with a new number every 2.5 s counts as one suspicion, and stops the sending', () => {
  for (const isNamedFirst of [false, true]) {
    const { watch, say, pass, asked, asks } = watched();
    if (isNamedFirst) say({ list: [alice, bob, zed], members: joined(alice, bob, zed) });
    for (let number = 3; number < 12; number += 1) {
      say({ list: [alice, bob, { ...zed, participant: number }], members: [...joined(alice, bob), left('zed')], epoch: number });
      assert.ok(watch.people.some(({ user, isStranger, hasLeft }) => user === 'zed' && (isStranger || hasLeft)), 'shown at once');
      pass(2.5);
      if (asks.length > 0) asked();
    }
    assert.equal(watch.stopped?.cause, isNamedFirst ? 'gone' : 'stranger');
  }
});

test('a device is a stranger until it has been a participant while listed, whatever the state says about its user; so is another key under its name', () => {
  const { watch, say } = watched();
  say({ members: joined(alice, bob, zed) });
  say({ list: [alice, bob, zed], members: [...joined(alice, bob), left('zed')] });
  assert.equal(watch.people.at(-1).isStranger, true, 'named before it was listed');
  say({ members: joined(alice, bob, zed) });
  say({ members: [...joined(alice, bob), left('zed')] });
  assert.equal(watch.people.at(-1).hasLeft, true);
  say({ list: [alice, bob, { ...zed, fingerprint: 'other' }] });
  assert.equal(watch.people.at(-1).isStranger, true);
});

test('the old number that a rejoin leaves for a moment counts as gone, not as a stranger', () => {
  const { watch, say, pass, news, asks } = watched();
  say({ members: joined(alice, seat('bob', 5)) });
  pass(2);
  say({ list: [alice, seat('bob', 5)], epoch: 3 });
  pass(60);
  assert.deepEqual([news(), asks, watch.stopped], [[], [], undefined]);
});

test('the moments of many rejoins do not add up: while the device is in the call, the time decreases', () => {
  const { watch, say, pass, news } = watched();
  for (let number = 5; number < 60; number += 1) {
    say({ members: joined(alice, seat('bob', number)) });
    pass(1);
    say({ list: [alice, seat('bob', number)] });
    pass(2);
  }
  assert.deepEqual([news(), watch.stopped], [[], undefined]);
});

test('sending anyway applies to the shown devices: another key, another join or another device stops again', () => {
  const { watch, say, pass, anyway } = watched();
  const gone = [...joined(alice), left('bob')];
  say({ members: gone });
  pass(15);
  const [shown] = watch.stopped.people;
  say({ list: [alice, bob, zed] }); // half a second before the press
  anyway([shown]);
  assert.equal(watch.stopped, undefined);
  pass(5);
  watch.asked(1e6);
  assert.deepEqual(watch.stopped.people.map(({ user }) => user), ['zed']);
  for (const change of [{ fingerprint: 'other' }, { joinId: 'other' }]) {
    const again = watched();
    again.say({ members: gone });
    again.pass(15);
    again.anyway();
    again.say({ list: [alice, { ...bob, ...change }] });
    again.pass(60);
    assert.ok(again.watch.stopped || again.asks.length > 0, JSON.stringify(change));
    again.asked();
    assert.deepEqual(again.watch.stopped.people.map(({ user }) => user), ['bob'], JSON.stringify(change));
  }
});

test('a second stop within a minute waits for the person, and sending anyway lasts until another cause', () => {
  const { watch, say, pass, anyway, asked } = watched();
  const gone = { members: [...joined(alice), left('bob')] };
  say(gone);
  pass(15);
  say({ members: joined(alice, bob) });
  pass(10);
  say(gone);
  pass(15);
  assert.equal(watch.stopped.needsPerson, true);
  say({ members: joined(alice, bob) });
  pass(100);
  assert.equal(watch.stopped.needsPerson, true, 'the cause is gone, but the question remains');
  anyway();
  assert.equal(watch.stopped, undefined);
  pass(100);
  say(gone);
  pass(15);
  assert.equal(watch.stopped.needsPerson, false, 'a separate stop');
  anyway();
  pass(100);
  assert.equal(watch.stopped, undefined);
  say({ list: [alice, bob, zed], members: [...joined(alice), left('bob'), left('zed')] });
  pass(6);
  asked();
  assert.equal(watch.stopped.people.map(({ user }) => user).join(), 'zed');
});

test('epoch 1 ends ten seconds after the second connected participant has come, or after a minute', () => {
  const ring = { ...seat('bob', 0) };
  const first = { epoch: 1, list: [alice, ring], members: [...joined(alice), { user: 'bob', state: 'ringing', participants: [] }] };
  const { watch, say, pass } = watched(first);
  pass(60);
  assert.equal(watch.stopped, undefined, 'while it rings');
  say({ members: joined(alice, bob) });
  pass(5);
  say({ isConnected: false });
  pass(20);
  say({ isConnected: true });
  pass(4.5);
  assert.equal(watch.stopped, undefined);
  pass(1);
  assert.equal(watch.stopped.cause, 'epoch-1');
  say({ epoch: 2, list: [alice, bob] });
  assert.equal(watch.stopped, undefined);
  const away = watched(first);
  away.say({ members: joined(alice, bob) });
  away.say({ isConnected: false });
  away.pass(61);
  assert.equal(away.watch.stopped.cause, 'epoch-1');
});

test('a key is old after twice its lifetime, but not right after a reconnect', () => {
  const { watch, say, pass } = watched();
  pass(19 * 60);
  assert.equal(watch.isOld, false);
  say({ isConnected: false });
  pass(120);
  say({ isConnected: true });
  pass(29);
  assert.equal(watch.isOld, false);
  pass(2);
  assert.equal(watch.isOld, true);
  say({ epoch: 3 });
  assert.equal(watch.isOld, false);
  const slow = watched({ rotateMinutes: 1_440 });
  slow.pass(119 * 60);
  assert.equal(slow.watch.isOld, false);
  slow.pass(2 * 60);
  assert.equal(slow.watch.isOld, true, 'two hours at most');
});

test('a ring’s entry belongs to its user, and is a stranger if there is no such member', () => {
  const ring = { user: 'zed', device: 'd', participant: 0, fingerprint: 'z' };
  const { watch, say } = watched({ epoch: 1, list: [alice, ring], members: [...joined(alice), { user: 'zed', state: 'declined', participants: [] }] });
  assert.equal(watch.people[1].isStranger, false);
  say({ members: joined(alice) });
  assert.equal(watch.people[1].isStranger, true);
});

test('a device that nobody let in is reported even if it left the list before that was certain', () => {
  let how = 'open';
  const { say, pass, news } = watched({ uninvited: ({ user }) => (user === 'zed' ? how : undefined) });
  const comes = () => say({ list: [alice, bob, zed], members: joined(alice, bob, zed) });
  const goes = () => say({ list: [alice, bob], members: joined(alice, bob) });
  comes();
  pass(4);
  goes();
  pass(1);
  assert.deepEqual(news(), [], 'a look-up may still show who let it in');
  how = 'yes';
  pass(0.5);
  assert.deepEqual(news(), [['uninvited', 'zed']]);
  pass(10);
  assert.deepEqual(news(), [], 'once');
  how = 'open';
  pass(60);
  say();
  comes();
  pass(1);
  goes();
  how = undefined;
  pass(10);
  assert.deepEqual(news(), [], 'it was let in');
});

test('a device that nobody let in, and that is listed only while a question is pending, is reported afterwards', () => {
  const { say, pass, news } = watched({ uninvited: ({ user }) => (user === 'zed' ? 'yes' : undefined) });
  say({ isAsking: true, list: [alice, bob, zed], members: joined(alice, bob, zed) });
  pass(4);
  say({ list: [alice, bob], members: joined(alice, bob) });
  assert.deepEqual(news(), []);
  say({ isAsking: false });
  assert.deepEqual(news(), [['uninvited', 'zed']]);
});

test('at the first stop, which ends by itself once somebody lets the device in, the person may send to it, but not to a stranger beside it', () => {
  const nobody = new Set(['zed']);
  const { watch, say, pass, asked, anyway } = watched({ uninvited: ({ user }) => (nobody.has(user) ? 'yes' : undefined) });
  const stopped = (...list) => {
    say({ list, members: joined(alice, bob, zed) });
    pass(6);
    asked();
    return [watch.stopped?.people.map(({ user }) => user), watch.stopped?.needsPerson];
  };
  assert.deepEqual(stopped(alice, bob, zed), [['zed'], true]);
  nobody.clear();
  say();
  assert.equal(watch.stopped, undefined, 'it was let in');
  pass(70);
  nobody.add('zed');
  assert.deepEqual(stopped(alice, bob, zed, seat('eve', 4)), [['zed', 'eve'], false]);
  assert.deepEqual(stopped(alice, bob, zed), [['zed'], true]);
  anyway();
  pass(70);
  assert.equal(watch.stopped, undefined);
});
