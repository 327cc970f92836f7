// A secret has one owner, who lends copies of it, and a past epoch or stay neither accepts nor gives secrets (protocol section 5.5), however long a cipher, a
// look-up or an answer of the server takes.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Announcer, CALL, Person } from './person.mjs';
import { aside, fakeTimers, hex, load, until } from './web.mjs';

const { random } = await load('wire/bytes.js');
const { envelopeIn } = await load('wire/checks.js');
const { makeEnvelope, openEnvelope } = await load('keys/envelopes.js');
const { Epoch } = await load('keys/epoch.js');
const { OpenedWraps } = await load('keys/private-messages.js');
const { RosterWatch } = await load('keys/roster-watch.js');

console.warn = () => {};

const ZEROS = new Uint8Array(32);

/** The first of `users` leads a fresh epoch 2, whose key the others have. `event` is its announcement. */
async function inEpoch(...users) {
  const world = [];
  const people = [];
  for (const user of users) people.push(await Person.make(user, people.length + 1, world));
  const lists = new Announcer();
  await lists.rotation(1, 'fresh', [people[0]]);
  const [leader, ...others] = people;
  await leader.keys.start();
  const event = await lists.rotation(2, 'fresh', people);
  await leader.keys.rotate({ ...event, deliver: others.map((person) => person.withKeys()) });
  for (const person of others) {
    await person.keys.rotate(event);
    await person.keys.envelope(leader.sent().find(({ to }) => to.user === person.identity.user));
  }
  for (const person of people) await person.keys.switchTo({ epoch: 2 });
  return { lists, people, event, close: () => people.forEach((person) => person.close()) };
}

/** The number of ciphers that have ended. */
let ended = 0;
for (const name of ['importKey', 'encrypt', 'sign', 'digest', 'deriveBits', 'generateKey', 'exportKey']) {
  const call = crypto.subtle[name].bind(crypto.subtle);
  crypto.subtle[name] = (...options) => call(...options).finally(() => (ended += 1));
}

/** Waits until `count` more ciphers have ended, or `work` is done. */
async function ciphers(count, work) {
  const last = ended + count;
  let isDone = false;
  work.finally(() => (isDone = true));
  while (ended < last && !isDone) await aside(1);
}

/** The secrets in the envelopes that `signer` sent to the server for `to`. */
async function secretsFor(to, signer) {
  const bodies = signer.requests.filter(({ path }) => path === 'keys').flatMap(({ body }) => body.envelopes);
  const { user, device, keys } = signer.identity;
  return Promise.all(
    bodies.filter((body) => body.to.user === to.identity.user).map(async (body) => {
      const envelope = envelopeIn({ ...body, from: { user, device } });
      const { listHash } = to.keys.record(envelope.epoch);
      return hex(await openEnvelope(envelope, { identity: to.identity, call: CALL, listHash, pair: to.join.holder(envelope.key).pair, keys }));
    }),
  );
}

/** `rotate` as called by an event; the one of `person.mjs` waits for the leader. */
const announce = (person, event) => Object.getPrototypeOf(person.keys).rotate.call(person.keys, event);

const ends = {
  stay: ({ people: [alice] }) => alice.close(),
  async epoch({ people: [alice], next }) {
    void announce(alice, next);
    await alice.keys.switchTo({ epoch: 3 });
  },
};

for (const [what, end] of Object.entries(ends)) {
  test(`an envelope has the secret or is not sent, whenever the ${what} ends during sealing`, async (t) => {
  fakeTimers(t); // keeps confirmations and refreshed join keys from being sent meanwhile
    let tried = 0;
    let isSentInTime = false;
    for (let count = 0; !isSentInTime; count += 1) {
      assert.ok(count < 100, 'it is sent at last');
      const scene = await inEpoch('alice', 'bob');
      const [alice, bob] = scene.people;
      const secret = hex(alice.keys.record(2).secret);
      scene.next = await scene.lists.rotation(3, 'fresh', scene.people);
      let isOver = false;
      const late = [];
      alice.answer = (path, body) => {
        if (path === 'keys' && (isOver || body.epoch < alice.keys.epoch)) late.push(body);
        return {};
      };
      const asked = alice.keys.requested({ epoch: 2, to: bob.withKeys() });
      await ciphers(count, asked);
      await end(scene);
      isOver = true;
      await asked;
      await aside(20);
      assert.deepEqual(late, [], 'nothing is sent afterwards');
      const secrets = await secretsFor(bob, alice);
      isSentInTime = secrets.length === 2;
      tried = count;
      assert.deepEqual(new Set(secrets), new Set([secret]), `after ${count} ciphers`);
      scene.close();
    }
    assert.ok(tried > 5, `an envelope takes more than ${tried} ciphers`);
  });
}

test('an answer about devices after the switch causes no envelope of the previous epoch', async (t) => {
  fakeTimers(t); // keeps confirmations and refreshed join keys from being sent meanwhile
  const { people: [alice, bob], lists, close } = await inEpoch('alice', 'bob');
  const { examine } = alice.directory;
  let answer;
  // Bob's device is not known yet.
  alice.keys.record(2).keysOf = () => undefined;
  alice.directory.examine = (entries) => new Promise((resolve) => (answer = () => resolve(examine.call(alice.directory, entries))));
  const before = alice.requests.length;
  const asked = alice.keys.requested({ epoch: 2, to: bob.entry() });
  await until(() => answer);
  alice.directory.examine = examine;
  await alice.keys.rotate(await lists.rotation(3, 'fresh', [alice, bob]));
  await alice.keys.switchTo({ epoch: 3 });
  answer();
  await asked;
  assert.equal(alice.keys.epoch, 3);
  assert.deepEqual(alice.requests.slice(before).filter(({ path }) => path === 'keys'), []);
  close();
});

test('a leader that is asked to lead again, before and after its answer was refused, hands out one secret', async (t) => {
  fakeTimers(t); // keeps confirmations and refreshed join keys from being sent meanwhile
  const world = [];
  const [alice, bob, carol] = await Promise.all(['alice', 'bob', 'carol'].map((user, i) => Person.make(user, i + 1, world)));
  const lists = new Announcer();
  await lists.rotation(1, 'fresh', [alice]);
  await alice.keys.start();
  const event = await lists.rotation(2, 'fresh', [alice, bob, carol]);
  const answers = [];
  alice.answer = (path) => (path === 'keys' ? new Promise((resolve, reject) => answers.push({ resolve, reject })) : {});
  for (const person of [bob, carol]) await person.keys.rotate(event);
  for (const [index, person] of [bob, carol, bob].entries()) {
    void announce(alice, { ...event, deliver: [person.withKeys()] });
    await until(() => answers.length === index + 1);
    if (index === 1) answers[0].reject(Object.assign(new Error(), { code: 'keys.epoch-stale' }));
    await aside(20);
  }
  assert.equal(alice.keys.record(2).hasSecret, false);
  answers.forEach(({ resolve }) => resolve({}));
  await until(() => alice.keys.record(2).hasSecret);
  const secrets = [...(await secretsFor(bob, alice)), ...(await secretsFor(carol, alice))];
  assert.equal(secrets.length, 3);
  assert.deepEqual(new Set(secrets), new Set([hex(alice.keys.record(2).secret)]));
  for (const person of world) person.close();
});

test('while a leader waits for the server’s answer, it accepts no other secret of the epoch', async (t) => {
  fakeTimers(t); // keeps confirmations and refreshed join keys from being sent meanwhile
  const { people: [alice, bob, carol], lists, close } = await inEpoch('alice', 'bob', 'carol');
  const event = await lists.rotation(3, 'fresh', [alice, bob, carol]);
  await bob.keys.rotate({ ...event, deliver: [alice.withKeys(), carol.withKeys()] });
  for (const isTaken of [true, false]) {
    let answer;
    alice.answer = (path) => (path === 'keys' ? new Promise((resolve, reject) => (answer = () => (isTaken ? resolve({}) : reject(new Error('no'))))) : {});
    const of = isTaken ? event : await lists.rotation(4, 'fresh', [alice, bob, carol]);
    if (!isTaken) await bob.keys.rotate({ ...of, deliver: [alice.withKeys()] });
    void announce(alice, { ...of, deliver: [carol.withKeys()] });
    await until(() => answer);
    const { later } = await alice.keys.envelope(bob.sent().find(({ to }) => to.user === 'alice'));
    assert.ok(later, 'neither acknowledged nor refused');
    assert.equal(alice.keys.record(of.epoch).hasSecret, false);
    answer();
    assert.equal(await later, true);
    const secret = (person) => hex(person.keys.record(of.epoch).secret);
    assert.equal(secret(alice) === secret(bob), !isTaken, 'its own if the server took it, else the other’s');
  }
  close();
});

test('an answer to a leader after the switch does not give a forgotten epoch a secret', async (t) => {
  fakeTimers(t); // keeps confirmations and refreshed join keys from being sent meanwhile
  const { people: [alice, bob], lists, event, close } = await inEpoch('alice', 'bob');
  let answer;
  alice.answer = (path) => (path === 'keys' ? new Promise((resolve) => (answer = resolve)) : {});
  void announce(alice, { ...event, deliver: [bob.withKeys()] });
  await until(() => answer);
  await announce(alice, await lists.rotation(3, 'fresh', [alice, bob]));
  await alice.keys.switchTo({ epoch: 3 });
  const before = alice.posted.length;
  answer({});
  await aside();
  const record = alice.keys.record(2);
  assert.deepEqual([record.isOver, record.hasSecret, record.secret, record.key], [true, false, undefined, undefined]);
  assert.deepEqual(alice.posted.slice(before).filter(({ epoch }) => epoch === 2), []);
  close();
});

test('32 zero bytes are not a secret: they are neither set nor opened', async (t) => {
  fakeTimers(t); // keeps confirmations and refreshed join keys from being sent meanwhile
  const { people: [alice, bob], lists, close } = await inEpoch('alice', 'bob');
  await assert.rejects(new Epoch({ epoch: 2, roster: { entries: [] }, listHash: ZEROS }, { call: CALL }).setSecret(ZEROS), /a secret that is none/);
  const event = await lists.rotation(3, 'fresh', [alice, bob]);
  await bob.keys.rotate(event);
  const { listHash } = bob.keys.record(3);
  const made = (secret) => makeEnvelope({ identity: alice.identity, call: CALL, epoch: 3, listHash, entry: bob.entry(), target: bob.join.wire.joinKey, secret });
  const from = { user: 'alice', device: 'd' };
  assert.equal(await bob.keys.envelope({ ...(await made(ZEROS)), from }), false);
  assert.ok(bob.problems.includes('refused-envelope'));
  assert.equal(bob.keys.record(3).hasSecret, false);
  assert.equal(await bob.keys.envelope({ ...(await made(random(32))), from }), true, 'the same with another secret is taken');
  close();
});

test('an epoch lends copies, and wiping one does not affect the secret', async (t) => {
  fakeTimers(t); // keeps confirmations and refreshed join keys from being sent meanwhile
  const epoch = new Epoch({ epoch: 2, roster: { entries: [] }, listHash: ZEROS }, { call: CALL });
  const secret = random(32);
  const before = hex(secret);
  await epoch.setSecret(secret);
  secret.fill(0);
  epoch.secret.fill(0);
  const lent = [];
  let isDone = false;
  const work = epoch.lend(async (copy) => {
    lent.push(copy);
    await aside(2);
    isDone = hex(copy) === before;
  });
  epoch.forget();
  await work;
  assert.ok(isDone, 'not wiped while it is in use, though the epoch is over');
  assert.deepEqual(lent, [ZEROS], 'wiped afterwards');
  await assert.rejects(epoch.lend(() => {}), /an epoch that is over/);
  assert.equal(await epoch.setSecret(random(32)), false, 'a secret of an epoch that is over');
});

test('a past stay sends nothing: no request, and no message to its worker', async (t) => {
  fakeTimers(t); // keeps confirmations and refreshed join keys from being sent meanwhile
  const { people: [alice, bob], lists, close } = await inEpoch('alice', 'bob');
  const event = await lists.rotation(3, 'fresh', [alice, bob]);
  const work = [announce(alice, { ...event, deliver: [bob.withKeys()] }), announce(bob, event), alice.keys.requested({ epoch: 2, to: bob.withKeys() })];
  await ciphers(4, new Promise(() => {}));
  close();
  const counts = () => [alice, bob].flatMap(({ requests, posted }) => [requests.length, posted.length]);
  const before = counts();
  await Promise.allSettled([...work, alice.keys.leading, alice.keys.switchTo({ epoch: 3 }), bob.keys.resync(), bob.keys.reconsider()]);
  await aside();
  assert.deepEqual(counts(), before);
  assert.equal(alice.keys.canSend, false);
});

test('ratchets do not make a key younger: its age counts from the last fresh secret', async (t) => {
  fakeTimers(t);
  const { people: [alice, bob], lists, close } = await inEpoch('alice', 'bob');
  const carol = await Person.make('carol', 3, [alice, bob]);
  const event = await lists.rotation(3, 'ratchet', [alice, bob, carol]);
  await bob.keys.rotate(event);
  await bob.keys.switchTo({ epoch: 3 });
  assert.deepEqual([bob.keys.epoch, bob.keys.freshEpoch], [3, 2]);
  await bob.keys.rotate(await lists.rotation(4, 'fresh', [alice, bob]));
  await bob.keys.switchTo({ epoch: 4 });
  assert.equal(bob.keys.freshEpoch, 4);
  carol.close();
  close();
  const isOldAfter = (minutes, freshEpoch) => {
    const watch = new RosterWatch();
    for (let minute = 0; minute <= minutes; minute += 1) {
      const epoch = 2 + Math.floor(minute / 5);
      watch.update(minute * 60_000, { isConnected: true, isAsking: false, participant: 1, epoch, freshEpoch: freshEpoch(epoch), list: [], members: [], rotateMinutes: 10 });
    }
    return watch.isOld;
  };
  assert.deepEqual([isOldAfter(19, () => 2), isOldAfter(20, () => 2), isOldAfter(60, (epoch) => epoch)], [false, true, false]);
});

test('up to 10,000 opened private messages are remembered for each epoch, and more are not opened', () => {
  const pair = {};
  const wrap = (number) => Uint8Array.from({ length: 113 }, (_, at) => (at < 4 ? number >> (8 * at) : at < 65 ? 1 : number));
  for (let number = 0; number < 10_000; number += 1) {
    OpenedWraps.of(pair).check(2, wrap(number));
    OpenedWraps.of(pair).add(2, wrap(number));
  }
  assert.throws(() => OpenedWraps.of(pair).check(2, wrap(77)), /came before/);
  assert.throws(() => OpenedWraps.of(pair).check(2, wrap(10_000)), /more private messages/);
  OpenedWraps.of(pair).check(3, wrap(77));
  OpenedWraps.of({}).check(2, wrap(77));
});

test('private messages of the newest epochs are remembered, in whatever order they come', () => {
  const wraps = OpenedWraps.of({});
  const wrap = new Uint8Array(113);
  for (const epoch of [4, 3, 2, 5, 6]) wraps.add(epoch, wrap);
  for (const epoch of [3, 4, 5, 6]) assert.throws(() => wraps.check(epoch, wrap), /came before/, `epoch ${epoch}`);
});
