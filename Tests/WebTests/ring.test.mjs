import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Announcer, CALL, Person } from './person.mjs';
import { load } from './web.mjs';

const { toBase64 } = await load('wire/bytes.js');
const { ringEpoch } = await load('keys/envelopes.js');
const { JoinKeys } = await load('keys/join-keys.js');
const { RingMemory } = await load('call/ring-memory.js');
const { MemoryStore } = await load('devices/store.js');
const { byUserThenDevice, rosterHashOf } = await load('wire/transcript.js');
const { makeWord } = await load('trust/words.js');

console.warn = () => {}; // refusals are logged there

/** Alice rings Bob and Carol: the three people, and the content of Bob's ring. */
async function rung(t, { call = CALL, at } = {}) {
  const world = [];
  const [alice, bob, carol] = await Promise.all(
    ['alice', 'bob', 'carol'].map(async (user, i) => {
      const person = await Person.make(user, i + 1, world);
      t.after(() => person.close());
      return person;
    }),
  );
  if (at) alice.join = await JoinKeys.make(alice.identity, call, at);
  const { identity, directory, join } = alice;
  const made = await ringEpoch({ identity, directory, join, call, callees: ['bob', 'carol'] });
  const envelope = { ...made.envelopes.find(({ to }) => to.user === 'bob'), from: { user: 'alice', device: 'd' } };
  bob.used = new RingMemory(new MemoryStore(), bob.identity);
  const admissions = [await makeWord(identity, call, 'bob')];
  return { world, alice, bob, carol, made, ring: { from: 'alice', list: made.list, envelope, admissions } };
}

test('after an answer both sides hear each other at once, under the same list', async (t) => {
  const { alice, bob, made, ring } = await rung(t);
  const seats = new Map([['bob/d', { participant: 2, joinId: bob.join.wire.joinId }]]);
  await alice.keys.start(made);
  await alice.keys.seated(seats);
  bob.keys.seated(seats);
  await bob.keys.startRung(ring, bob.used);
  assert.equal(bob.keys.canSend, true);
  assert.equal(await alice.derived(1), await bob.derived(1));
  assert.equal(await alice.hears(await bob.frames.seal(1, new Uint8Array(20), 0)), true);
  assert.equal(await bob.hears(await alice.frames.seal(1, new Uint8Array(20), 0)), true);
  assert.equal(await alice.keys.code(), await bob.keys.code());
});

test('a ring has keys for 255 devices, first for one device of each callee', async (t) => {
  const world = [];
  const [alice, bob, carol] = await Promise.all(['alice', 'bob', 'carol'].map((user, i) => Person.make(user, i + 1, world)));
  t.after(() => [alice, bob, carol].forEach((person) => person.close()));
  const { identity, join } = alice;
  const entryOf = (person, device) => ({ entry: { ...person.entry(), device, participant: 0, fingerprint: toBase64(crypto.getRandomValues(new Uint8Array(32))), joinId: undefined, joinKey: undefined }, keys: person.identity.keys });
  const devices = [...Array.from({ length: 300 }, (_, n) => entryOf(bob, `d${1_000 + n}`)), entryOf(carol, 'phone')];
  const made = await ringEpoch({ identity, directory: { devicesOf: async () => devices }, join, call: CALL, callees: ['bob', 'carol'] });
  assert.equal(made.envelopes.length, 255);
  assert.equal(made.envelopes.filter(({ to }) => to.user === 'carol').length, 1);
  assert.equal(made.list.length, 256);
});

test('a device to which nothing can be sealed is left out, and the others are rung with a key', async (t) => {
  const world = [];
  const [alice, bob, carol] = await Promise.all(['alice', 'bob', 'carol'].map((user, i) => Person.make(user, i + 1, world)));
  t.after(() => [alice, bob, carol].forEach((person) => person.close()));
  const { identity, join } = alice;
  const entries = [bob, carol].map((person) => ({ ...person.entry(), participant: 0, joinId: undefined, joinKey: undefined, person }));
  const directory = {
    devicesOf: async () =>
      entries.map(({ person, ...entry }) => ({
        entry,
        // Carol's wrap key is invalid, though its algorithm is known.
        keys: person === carol ? carol.identity.keys.map((key) => (key.use === 'wrap' ? { ...key, publicKey: toBase64(new Uint8Array(91)) } : key)) : person.identity.keys,
      })),
  };
  const made = await ringEpoch({ identity, directory, join, call: CALL, callees: ['bob', 'carol'] });
  assert.deepEqual(made.envelopes.map(({ to }) => to.user), ['bob']);
  assert.deepEqual(made.list.map(({ user }) => user), ['alice', 'bob']);
});

test('a ring not made by the caller for this call now is not used; the call continues with epoch 2', async (t) => {
  const { ring, alice, carol } = await rung(t);
  const { envelope, list } = ring;
  const bad = {
    'of another caller': { ...ring, from: 'carol' },
    'with a changed signature': { ...ring, envelope: { ...envelope, signature: toBase64(new Uint8Array(64).fill(1)) } },
    'of epoch 2': { ...ring, envelope: { ...envelope, epoch: 2 } },
    unsigned: { ...ring, envelope: { ...envelope, signature: undefined } },
    'with a shorter list': { ...ring, list: list.slice(0, 2) },
    'with two that have joined': { ...ring, list: list.map((entry) => (entry.user === 'carol' ? carol.entry() : entry)) },
    'with another number for the caller': { ...ring, list: list.map((entry) => (entry.user === 'alice' ? { ...entry, participant: 3 } : entry)) },
  };
  for (const [name, changed] of Object.entries(bad)) {
    const { bob } = await rung(t);
    bob.identity.fingerprint = ring.bobs ?? bob.identity.fingerprint;
    await bob.keys.startRung(changed, bob.used);
    assert.deepEqual([bob.keys.canSend, bob.keys.list, bob.problems], [false, [], ['refused-ring']], name);
  }
  assert.ok(alice);
});

test('after a doubtful ring the first list with this join is accepted', async (t) => {
  const { bob, alice, ring } = await rung(t);
  await bob.keys.startRung({ ...ring, from: 'carol' }, bob.used);
  const event = await new Announcer().rotation(2, 'fresh', [alice, bob]);
  await bob.keys.rotate(event);
  assert.equal(bob.keys.record(2)?.epoch, 2);
});

test('a later list that comes while the ring is being checked is accepted, and so is the one in between', async (t) => {
  const { alice, bob, carol, made, ring } = await rung(t);
  const lists = new Announcer();
  await lists.rotation(1, 'fresh', made.list);
  await lists.rotation(2, 'fresh', [alice, carol]);
  const event = await lists.rotation(3, 'fresh', [alice, bob, carol]);
  const roster = async (people) => toBase64(await rosterHashOf(people.map((person) => person.entry()).sort(byUserThenDevice)));
  const links = [{ epoch: 2, roster: await roster([alice, carol]) }, { epoch: 3, roster: await roster([alice, bob, carol]) }];
  bob.answer = (path) => (path === 'keys/list' ? { ...event, links, confirmed: [] } : {});
  const examined = bob.keys.startRung(ring, bob.used);
  await Promise.all([examined, bob.keys.rotate(event)]);
  assert.deepEqual([bob.keys.record(1)?.epoch, bob.keys.record(3)?.epoch, bob.problems], [1, 3, []]);
});

test('a ring of another call, or of ten minutes ago, is not used', async (t) => {
  const other = await rung(t, { call: '7d1f0d6c-5a3e-4c0b-9b0e-2f64c1a8e3d4' });
  await other.bob.keys.startRung(other.ring, other.bob.used);
  assert.deepEqual([other.bob.keys.canSend, other.bob.problems], [false, ['refused-ring']]);
  for (const minutes of [-11, 11]) {
    const old = await rung(t, { at: Date.now() + minutes * 60_000 });
    await old.bob.keys.startRung(old.ring, old.bob.used);
    assert.deepEqual([old.bob.keys.canSend, old.bob.problems], [false, []], String(minutes));
  }
  const apart = await rung(t, { at: Date.now() + 9 * 60_000 });
  await apart.bob.keys.startRung(apart.ring, apart.bob.used);
  assert.equal(apart.bob.keys.canSend, true);
});

test('the envelope of a ring is used once, even after a reload of the page', async (t) => {
  const { bob, ring, world } = await rung(t);
  await bob.keys.startRung(ring, bob.used);
  assert.equal(bob.keys.canSend, true);
  const store = new MemoryStore();
  await store.put('identities', 'bob/d', { wrap: bob.identity.wrap });
  const again = await Person.make('bob', 4, world);
  t.after(() => again.close());
  Object.assign(again.identity, { wrap: bob.identity.wrap, keys: bob.identity.keys, fingerprint: bob.identity.fingerprint });
  await again.keys.startRung(ring, bob.used);
  assert.equal(again.keys.canSend, false);
});

test('a thousand used rings are remembered, and the oldest is forgotten first', async () => {
  const store = new MemoryStore();
  const used = new RingMemory(store, { user: 'bob', device: 'd' });
  for (let i = 0; i < 1_000; i += 1) await store.put('rings', `bob/d>old-${i}`, { lastUsed: i });
  assert.equal(await used.add('new'), true);
  assert.equal((await store.entries('rings', 'bob/d>')).length, 1_000);
  assert.equal(await store.get('rings', 'bob/d>old-0'), undefined);
  assert.equal(await used.add('old-1'), false);
});

test('under a ring’s list a number or joinId of another device, or of this one, counts for nobody', async (t) => {
  const { alice, bob, made } = await rung(t);
  await alice.keys.start(made);
  const senders = () => alice.posted.filter(({ type }) => type === 'epoch').at(-1).senders.map(({ participant }) => participant);
  const { joinId } = bob.join.wire;
  await alice.keys.seated(new Map([['bob/d', { participant: 1, joinId }]]));
  assert.deepEqual(senders(), [], 'the caller’s own number');
  await alice.keys.seated(new Map([['bob/d', { participant: 2, joinId: alice.join.wire.joinId }]]));
  assert.deepEqual(senders(), [], 'the caller’s own joinId');
  await alice.keys.seated(new Map([['bob/d', { participant: 2, joinId }], ['carol/d', { participant: 2, joinId: toBase64(new Uint8Array(16).fill(3)) }]]));
  assert.deepEqual(senders(), [2], 'the first has it');
  assert.ok(alice.problems.includes('taken-number'));
});

test('a callee’s device with a changed key gets no ring envelope', async (t) => {
  const { alice, bob, world } = await rung(t);
  world.splice(world.indexOf(bob), 1);
  const again = await Person.make('bob', 2, world);
  t.after(() => again.close());
  const { identity, directory, join } = alice;
  const made = await ringEpoch({ identity, directory, join, call: CALL, callees: ['bob'] });
  assert.deepEqual([made.envelopes.length, made.list.length], [0, 1]);
});

test('a ring’s devices disappear with the next list, and no key is ratcheted from it', async (t) => {
  const { alice, bob, made, ring } = await rung(t);
  await alice.keys.start(made);
  await bob.keys.startRung(ring, bob.used);
  const lists = new Announcer();
  await lists.rotation(1, 'fresh', made.list);
  const ratcheted = await lists.rotation(2, 'ratchet', [alice, bob], { isAside: true });
  await bob.keys.rotate(ratcheted);
  assert.deepEqual([bob.keys.record(2), bob.problems], [undefined, ['refused-list']]);
  const event = await lists.rotation(2, 'fresh', [alice, bob]);
  await alice.keys.rotate({ ...event, list: undefined, added: [bob.entry()], removed: [], deliver: [bob.withKeys()] });
  await bob.keys.rotate(event);
  assert.equal(await bob.keys.envelope(alice.sent()[0]), true);
  assert.equal(await bob.derived(2), await alice.derived(2));
  assert.deepEqual(alice.keys.record(2).list.map(({ user }) => user), ['alice', 'bob']);
});

test('a new device of a known person is reported once, when its ring is answered; so is one of a verified person', async (t) => {
  for (const isVerified of [false, true]) {
    const world = [];
    const [old, bob] = [await Person.make('alice', 9, world, { device: 'old' }), await Person.make('bob', 2, world)];
    await bob.directory.devicesOf(['alice']);
    if (isVerified) await bob.directory.verify([old.entry()]);
    const alice = await Person.make('alice', 1, world);
    t.after(() => [old, bob, alice].forEach((person) => person.close()));
    const { identity, directory, join } = alice;
    const made = await ringEpoch({ identity, directory, join, call: CALL, callees: ['bob'] });
    const envelope = { ...made.envelopes.find(({ to }) => to.user === 'bob'), from: { user: 'alice', device: 'd' } };
    const admissions = [await makeWord(identity, CALL, 'bob')];
    await bob.keys.startRung({ from: 'alice', list: made.list, envelope, admissions }, new RingMemory(new MemoryStore(), bob.identity));
    assert.equal(bob.keys.hasKey, true);
    assert.deepEqual(bob.warnings.map(({ problem, user, device, isOfVerified }) => [problem, user, device, isOfVerified]), [['new-device', 'alice', 'd', isVerified]]);
    assert.equal((await bob.directory.examine([alice.entry()]))[0].isNew, false, 'it is known now');
  }
});
