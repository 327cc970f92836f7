import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Announcer, Person, CALL } from './person.mjs';
import { fakeTimers, load, until } from './web.mjs';

const { fromBase64, toBase64, random, sha256 } = await load('wire/bytes.js');
const { isSignedBy } = await load('trust/identity.js');
const { utf8 } = await load('wire/bytes.js');
const { makeEnvelope } = await load('keys/envelopes.js');
const { byUserThenDevice } = await load('wire/transcript.js');
const { wrap } = await load('wire/wrap.js');

console.warn = () => {}; // refusals are logged there

const people = (t, world, ...users) =>
  Promise.all(
    users.map(async (user, i) => {
      const person = await Person.make(user, i + 1, world);
      t.after(() => person.close());
      return person;
    }),
  );

/** Alice has started, Bob has joined, and both are in epoch 2. */
async function two(t, mode = 'ratchet') {
  const world = [];
  const [alice, bob, carol] = await people(t, world, 'alice', 'bob', 'carol');
  const lists = new Announcer();
  await lists.rotation(1, 'fresh', [alice]);
  await alice.keys.start();
  const event = await lists.rotation(2, mode, [alice, bob]);
  await alice.keys.rotate({ ...event, list: undefined, added: [bob.entry()], removed: [], deliver: [bob.withKeys()] });
  await bob.keys.rotate(event);
  const [envelope] = alice.sent();
  return { world, alice, bob, carol, envelope, lists, event };
}

async function inEpochTwo(t) {
  const made = await two(t);
  await made.bob.keys.envelope(made.envelope);
  for (const person of [made.alice, made.bob]) await person.keys.switchTo({ epoch: 2 });
  return made;
}

test('a joining device gets the ratcheted key, and both sides derive the same', async (t) => {
  const { alice, bob, envelope } = await two(t);
  assert.equal(await bob.keys.envelope(envelope), true);
  for (const person of [alice, bob]) await person.keys.switchTo({ epoch: 2 });
  assert.equal(await bob.derived(2), await alice.derived(2));
  assert.notEqual(await alice.derived(1), await alice.derived(2));
  assert.equal(await alice.keys.code(), await bob.keys.code());
  assert.match(await bob.keys.code(), /^\d{40}$/);
  assert.equal(await bob.hears(await alice.frames.seal(1, new Uint8Array(20), 0)), true);
  assert.deepEqual([alice.problems, bob.problems], [[], []]);
});

test('after a leave the key is fresh, and the remaining device gets it', async (t) => {
  const { alice, bob, carol, lists } = await inEpochTwo(t);
  const event = await lists.rotation(3, 'fresh', [alice, carol]);
  await alice.keys.rotate({ ...event, list: undefined, added: [carol.entry()], removed: [2], deliver: [carol.withKeys()] });
  await carol.keys.rotate(event);
  assert.equal(await carol.keys.envelope(alice.sent()[0]), true);
  assert.equal(await carol.derived(3), await alice.derived(3));
  assert.equal(await bob.derived(3), undefined);
});

test('a bad envelope is refused with a warning, and the good one still counts', async (t) => {
  const { bob, envelope, alice, carol } = await two(t);
  const forged = fromBase64(envelope.ciphertext);
  forged[70] ^= 1;
  const made = await wrap(bob.join.wire.joinKey.alg, fromBase64(bob.join.wire.joinKey.publicKey), new Uint8Array(32));
  const { listHash } = alice.posted.find(({ type, epoch }) => type === 'epoch' && epoch === 2);
  const longLived = await makeEnvelope({ identity: alice.identity, call: CALL, epoch: 2, listHash, entry: bob.entry(), target: bob.identity.keys[0], secret: random(32) });
  const refused = {
    unsigned: { ...envelope, signature: undefined },
    'for another': { ...envelope, to: { user: 'carol', device: 'd' } },
    'from a stranger': { ...envelope, from: { user: 'carol', device: 'd' } },
    'from this device itself': { ...envelope, from: { user: 'bob', device: 'd' } },
    'with another ciphertext': { ...envelope, ciphertext: toBase64(forged) },
    'made by the server': { ...envelope, ciphertext: toBase64(made) },
    'signed by another': { ...envelope, signature: toBase64((await carol.identity.sign(forged)).signature) },
    'said to be sealed to another key': { ...envelope, key: toBase64(await sha256(fromBase64(bob.identity.keys[0].publicKey))) },
    'sealed to the long-lived key': { ...longLived, from: envelope.from },
    'without its key': { ...envelope, key: undefined },
  };
  for (const [name, changed] of Object.entries(refused)) {
    assert.equal(await bob.keys.envelope(changed), false, name);
    assert.equal(await bob.derived(2), undefined, name);
  }
  assert.ok(bob.problems.includes('refused-envelope'));
  assert.equal(await bob.keys.envelope(envelope), true);
  assert.equal(await bob.keys.envelope(refused['made by the server']), true, 'the first valid secret stays');
  assert.equal(await bob.derived(2), await alice.derived(2));
});

test('an envelope for another list than the announced one is refused', async (t) => {
  const world = [];
  const [alice, bob, carol] = await people(t, world, 'alice', 'bob', 'carol');
  const lists = new Announcer();
  await lists.rotation(1, 'fresh', [alice]);
  await alice.keys.start();
  await alice.keys.rotate({ ...(await lists.rotation(2, 'ratchet', [alice, bob, carol], { isAside: true })), deliver: [bob.withKeys()] });
  await bob.keys.rotate(await lists.rotation(2, 'ratchet', [alice, bob]));
  assert.equal(await bob.keys.envelope(alice.sent()[0]), false);
});

test('an invalid list is refused, changes nothing and causes a warning', async (t) => {
  const { alice, bob, carol, lists } = await inEpochTwo(t);
  const [a, b, c] = [alice.entry(), bob.entry(), carol.entry()];
  const aside_ = (mode, list) => lists.rotation(3, mode, list, { isAside: true });
  const good = await aside_('fresh', [a, b, c]);
  const bad = {
    'another hash': { ...good, listHash: toBase64(new Uint8Array(32)) },
    'a ratchet that drops somebody': await aside_('ratchet', [b, c]),
    'not on it': await aside_('fresh', [a, c]),
    'two of one number': await aside_('fresh', [a, b, { ...c, participant: 1 }]),
    'own number for another': await aside_('fresh', [a, b, { ...c, participant: 2 }]),
    'another own number': await aside_('fresh', [a, { ...b, participant: 7 }, c]),
    'one joinId twice': await aside_('fresh', [a, b, { ...c, joinId: a.joinId }]),
    'one fingerprint twice': await aside_('fresh', [a, b, { ...c, fingerprint: a.fingerprint }]),
    'another own join key': await aside_('fresh', [a, { ...b, joinKey: c.joinKey }]),
    'own join key for another': await aside_('fresh', [a, b, { ...c, joinKey: b.joinKey }]),
    'somebody who stays with another number': await aside_('fresh', [{ ...a, participant: 9 }, b]),
    'somebody who stays with another key': await aside_('fresh', [{ ...a, joinKey: c.joinKey }, b]),
    'no join key': { ...good, list: [a, b, { ...c, joinKey: undefined }] },
    'an invalid number': { ...good, list: [a, b, { ...c, participant: 1.5 }] },
    'a long joinId': { ...good, list: [a, b, { ...c, joinId: toBase64(new Uint8Array(112).fill(1)) }] },
    'not in order': { ...good, list: [b, a, c] },
    'a ring’s entry': { ...good, list: [a, b, { ...c, participant: 0, joinId: undefined, joinKey: undefined }] },
    'another mode': { ...good, mode: 'old' },
  };
  for (const [name, event] of Object.entries(bad)) {
    bob.warnings.length = 0;
    const fresh = await Person.make('bob', 2, [], { store: undefined });
    fresh.close();
    await bob.keys.rotate(event);
    assert.equal(await bob.derived(3), undefined, name);
    assert.deepEqual([bob.keys.epoch, bob.keys.isBroken], [2, false], name);
  }
  await bob.keys.rotate(good);
  assert.equal(bob.keys.record(3)?.epoch, 3, 'the good one is accepted afterwards');
});

test('an epoch that is not a number from 1 to 2^32 - 1 is refused', async (t) => {
  const { bob, event } = await inEpochTwo(t);
  const before = bob.requests.length;
  for (const epoch of [2 ** 32 + 2, 2.5, 0, -1, '3', null, 2 ** 53]) {
    await bob.keys.rotate({ ...event, epoch });
    await bob.keys.envelope({ epoch });
    await bob.keys.switchTo({ epoch });
    await bob.keys.inUse(epoch);
  }
  assert.deepEqual([bob.keys.epoch, bob.requests.length], [2, before]);
});

test('a repeated announcement changes nothing, but with another list it breaks the history', async (t) => {
  const { alice, bob, carol, event, lists } = await inEpochTwo(t);
  const posted = bob.posted.length;
  await bob.keys.rotate(event);
  assert.deepEqual([bob.posted.length, bob.events], [posted, []]);
  await bob.keys.rotate(await lists.rotation(2, 'ratchet', [alice, bob, carol], { isAside: true }));
  assert.deepEqual([bob.events, bob.keys.isBroken, bob.keys.canSend], [['broken'], true, false]);
  assert.ok(bob.problems.includes('broken-history'));
  assert.equal(await bob.frames.seal(1, new Uint8Array(20), 0), undefined);
});

test('a list that does not follow from the one before breaks the history', async (t) => {
  const { alice, bob, lists } = await inEpochTwo(t);
  const previous = toBase64(lists.hash(1));
  await bob.keys.rotate(await lists.rotation(3, 'fresh', [alice, bob], { previous }));
  assert.deepEqual(bob.events, ['broken']);
});

/** The server's answer to `keys/list`, from `since` on. */
const listReply = (lists, rosters, event) => (path, { since }) =>
  path === 'keys/list' ? { ...event, links: rosters.filter(({ epoch }) => since !== undefined && epoch > since), confirmed: [] } : {};

test('a gap is closed by a chain of links, and no key is ratcheted across it', async (t) => {
  const { alice, bob, lists, carol } = await inEpochTwo(t);
  const { rosterHashOf } = await load('wire/transcript.js');
  const roster = async (...all) => toBase64(await rosterHashOf(all.map((person) => person.entry()).sort(byUserThenDevice)));
  await lists.rotation(3, 'fresh', [alice, bob, carol]);
  const event = await lists.rotation(4, 'ratchet', [alice, bob, carol]);
  const all = await roster(alice, bob, carol);
  const links = [{ epoch: 3, roster: all }, { epoch: 4, roster: all }];
  bob.answer = listReply(lists, links, event);
  await bob.keys.rotate({ ...event, list: undefined, added: [], removed: [] });
  assert.equal(bob.keys.record(4).isWhole, false);
  assert.equal(await bob.derived(4), undefined);
  const { alice: other, bob: dave, lists: chain } = await inEpochTwo(t);
  await chain.rotation(3, 'fresh', [other, dave, carol]);
  const later = await chain.rotation(4, 'ratchet', [other, dave]);
  const two_ = await roster(other, dave);
  dave.answer = listReply(chain, [{ epoch: 3, roster: two_ }, { epoch: 4, roster: two_ }], later);
  await dave.keys.rotate({ ...later, list: undefined, added: [], removed: [] });
  assert.deepEqual(dave.events, ['broken'], 'links that hide who was on the list in between');
});

test('a gap longer than the server’s history breaks the history', async (t) => {
  const { alice, bob, lists } = await inEpochTwo(t);
  const event = await lists.rotation(1_500, 'fresh', [alice, bob]);
  bob.answer = listReply(lists, [], event);
  await bob.keys.rotate(event);
  assert.deepEqual(bob.events, ['broken']);
});

test('a joinId or a number that was removed must not return', async (t) => {
  const { alice, bob, carol, lists } = await inEpochTwo(t);
  await bob.keys.rotate(await lists.rotation(3, 'fresh', [alice, bob, carol]));
  await bob.keys.rotate(await lists.rotation(4, 'fresh', [alice, bob]));
  const dave = await Person.make('dave', 3, []);
  dave.close();
  for (const back of [carol, dave]) {
    await bob.keys.rotate(await lists.rotation(5, 'fresh', [alice, bob, back], { isAside: true }));
    assert.equal(bob.keys.record(5), undefined);
  }
  assert.deepEqual(bob.problems, ['refused-list']);
});

test('a newcomer ignores lists of an earlier stay, and asks when no list of its own stay comes', async (t) => {
  const tick = fakeTimers(t);
  const [alice, old] = await people(t, [], 'alice', 'bob');
  const bob = await Person.make('bob', 5, []);
  t.after(() => bob.close());
  const lists = new Announcer();
  await lists.rotation(1, 'fresh', [alice]);
  await bob.keys.rotate(await lists.rotation(2, 'fresh', [alice, old]));
  assert.deepEqual([bob.problems, bob.requests], [[], []]);
  tick(5_000);
  await until(() => bob.requests.length > 0);
  assert.deepEqual(bob.requests.map(({ path, body }) => [path, body]), [['keys/list', {}]]);
});

test('a newcomer waits longer for the list of a large call', async (t) => {
  const tick = fakeTimers(t);
  const bob = await Person.make('bob', 5, [], { members: 300 });
  t.after(() => bob.close());
  tick(7_999);
  assert.deepEqual(bob.requests, []);
  tick(1);
  await until(() => bob.requests.length > 0);
  assert.equal(bob.requests[0].path, 'keys/list');
});

test('the leader hands no key to a device that is not on its list', async (t) => {
  const { alice, world, lists } = await two(t);
  const mallory = await Person.make('mallory', 9, world);
  mallory.close();
  const before = alice.requests.length;
  await alice.keys.requested({ epoch: 2, to: mallory.withKeys() });
  await alice.keys.rotate({ ...(await lists.rotation(3, 'fresh', [alice])), deliver: [mallory.withKeys()] });
  assert.equal(alice.requests.length, before);
});

test('keys.request is answered with the same key, three times', async (t) => {
  const { alice, bob } = await two(t);
  for (let i = 0; i < 5; i += 1) await alice.keys.requested({ epoch: 2, to: bob.withKeys() });
  assert.equal(alice.requests.filter(({ path }) => path === 'keys').length, 1 + 3);
  assert.equal(await bob.keys.envelope(alice.sent()[0]), true);
  assert.equal(await bob.derived(2), await alice.derived(2));
});

test('without the key at the switch nothing is sent; the key is requested three times, then the person is told', async (t) => {
  const tick = fakeTimers(t);
  const { bob, envelope } = await two(t);
  const asked = () => bob.requests.filter(({ path }) => path === 'keys/request').length;
  await bob.keys.switchTo({ epoch: 2 });
  assert.deepEqual([bob.keys.canSend, bob.frames.isSilent], [false, true], 'not under the previous key either');
  const counts = [];
  for (let s = 0; s < 8; s += 1) {
    tick(1_000);
    counts.push(asked());
  }
  assert.deepEqual(counts, [1, 1, 2, 2, 3, 3, 3, 3]);
  assert.deepEqual(bob.problems, ['no-key']);
  await bob.keys.envelope(envelope);
  assert.deepEqual([bob.keys.canSend, bob.frames.isSilent], [true, false]);
});

test('one’s own secret that drops somebody on the current list is used after 3 s, any other after 10 s', async (t) => {
  const tick = fakeTimers(t);
  const { alice, bob, carol, lists } = await inEpochTwo(t);
  await alice.keys.rotate({ ...(await lists.rotation(3, 'fresh', [alice])), deliver: [] });
  tick(2_900);
  assert.equal(alice.frames.sendingEpoch, 2);
  tick(200);
  assert.deepEqual([alice.frames.sendingEpoch, alice.keys.epoch], [3, 3]);
  await alice.keys.rotate({ ...(await lists.rotation(4, 'fresh', [alice, carol])), deliver: [carol.withKeys()] });
  tick(9_900);
  assert.equal(alice.frames.sendingEpoch, 3);
  tick(200);
  assert.equal(alice.frames.sendingEpoch, 4);
  for (const epoch of [1, 3, 4]) await alice.keys.switchTo({ epoch });
  await alice.keys.inUse(3);
  assert.equal(alice.frames.sendingEpoch, 4, 'never back');
  assert.ok(bob);
});

test('the state of the call makes up for a lost switch', async (t) => {
  const { bob, envelope } = await two(t);
  await bob.keys.envelope(envelope);
  await bob.keys.inUse(2);
  assert.deepEqual([bob.keys.epoch, bob.keys.canSend], [2, true]);
});

test('the epoch that was in use before the join is not looked up', async (t) => {
  const [, bob] = await people(t, [], 'alice', 'bob');
  await bob.keys.inUse(7);
  assert.deepEqual([bob.keys.epoch, bob.requests], [0, []]);
});

test('a leader without the old secret asks for it instead of making one up', async (t) => {
  const tick = fakeTimers(t);
  const [alice, bob] = await people(t, [], 'alice', 'bob');
  await alice.keys.rotate({ ...(await new Announcer().rotation(5, 'ratchet', [alice, bob])), deliver: [bob.withKeys()] });
  tick(1_000);
  assert.deepEqual(alice.requests.filter(({ path }) => path.startsWith('keys')).map(({ path }) => path), ['keys/request']);
});

test('a leader that is too late does not use its own key', async (t) => {
  const { alice, bob, lists } = await two(t);
  alice.answer = (path) => {
    if (path === 'keys') throw Object.assign(new Error('stale'), { code: 'keys.epoch-stale' });
  };
  await alice.keys.rotate({ ...(await lists.rotation(3, 'fresh', [alice, bob])), deliver: [bob.withKeys()] });
  assert.equal(await alice.derived(3), undefined);
});

test('a device with a changed key gets nothing until the person trusts it; then its request is answered', async (t) => {
  const { alice, bob, world, lists } = await two(t);
  const again = await Person.make('bob', 3, world);
  t.after(() => again.close());
  world.splice(world.indexOf(bob), 1);
  await alice.keys.rotate({ ...(await lists.rotation(3, 'fresh', [alice, again])), deliver: [again.withKeys()] });
  assert.deepEqual(alice.warnings.map(({ problem, user, fingerprint }) => [problem, user, fingerprint]), [['changed-key', 'bob', again.entry().fingerprint]]);
  assert.deepEqual(alice.sent(), []);
  const senders = () => alice.posted.filter(({ type }) => type === 'epoch').at(-1).senders.map((one) => one.participant);
  assert.deepEqual(senders(), []);
  await alice.keys.requested({ epoch: 3, to: again.withKeys() });
  assert.deepEqual(alice.sent(), []);
  await alice.directory.trust('bob', 'd', bob.entry().fingerprint);
  await alice.keys.reconsider();
  assert.deepEqual(senders(), [], 'another key than the one that was shown');
  await alice.directory.trust('bob', 'd', again.entry().fingerprint);
  await alice.keys.reconsider();
  assert.deepEqual(senders(), [3]);
  await until(() => alice.sent().length === 1);
  assert.equal(alice.sent().length, 1, 'the earlier request is answered now');
});

test('an envelope of an untrusted device is kept, reported to the server once, and opened when the person trusts it', async (t) => {
  const { alice, bob, carol, world, lists } = await two(t);
  const again = await Person.make('alice', 4, world);
  t.after(() => again.close());
  world.splice(world.indexOf(alice), 1);
  await carol.directory.examine([alice.entry()].map((entry) => ({ ...entry, keys: alice.identity.keys })));
  const event = await lists.rotation(3, 'fresh', [again, carol]);
  await carol.keys.rotate(event);
  await again.keys.rotate({ ...event, deliver: [carol.withKeys()] });
  const [envelope] = again.sent();
  const { later } = await carol.keys.envelope(envelope);
  await carol.keys.envelope(envelope);
  assert.deepEqual(carol.requests.filter(({ path }) => path === 'keys/wait').map(({ body }) => body), [{ epoch: 3, reason: 'trust' }]);
  assert.equal(await carol.derived(3), undefined);
  assert.equal(await later, true, 'the older of two is done with');
  await carol.directory.trust('alice', 'd', again.entry().fingerprint);
  await carol.keys.reconsider();
  assert.equal(await carol.derived(3), await again.derived(3));
  assert.ok(bob);
});

test('a join key that its device did not sign for this call and stay gets nothing, and causes a warning', async (t) => {
  const { JoinKeys } = await load('keys/join-keys.js');
  const world = [];
  const [alice, bob, carol] = await people(t, world, 'alice', 'bob', 'carol');
  const otherCall = (await JoinKeys.make(bob.identity, '7d1f0d6c-5a3e-4c0b-9b0e-2f64c1a8e3d4')).wire.joinKey;
  const otherStay = (await JoinKeys.make(bob.identity, CALL)).wire.joinKey;
  for (const joinKey of [carol.join.wire.joinKey, otherCall, otherStay]) {
    const lists = new Announcer();
    const leader = await Person.make('alice', 1, world);
    await lists.rotation(1, 'fresh', [leader]);
    await leader.keys.start();
    const entry = { ...bob.entry(), joinKey };
    await leader.keys.rotate({ ...(await lists.rotation(2, 'fresh', [leader, entry])), deliver: [{ ...entry, keys: bob.identity.keys }] });
    assert.deepEqual(leader.problems, ['bad-join-key']);
    assert.deepEqual(leader.sent(), []);
    leader.close();
  }
  assert.ok(alice);
});

test('a refreshed join key is sealed to; an older one, or another of the same generation, gets nothing', async (t) => {
  const { alice, bob, lists } = await inEpochTwo(t);
  const refresh = await bob.join.refresh(performance.now(), true);
  const lead = async (epoch, changes) => {
    alice.requests.length = 0;
    alice.warnings.length = 0;
    await alice.keys.rotate({ ...(await lists.rotation(epoch, 'fresh', [alice, bob])), deliver: [{ ...bob.withKeys(), ...changes }] });
    return alice.sent();
  };
  const [first] = await lead(3, { refresh });
  assert.equal(first.key, toBase64(await sha256(fromBase64(refresh.publicKey))));
  assert.deepEqual(await lead(4, {}), [], 'the server went back to generation 0');
  assert.deepEqual(alice.problems, ['old-join-key']);
  const { JoinKeys } = await load('keys/join-keys.js');
  const other = await JoinKeys.make(bob.identity, CALL);
  assert.deepEqual(await lead(5, { refresh: await other.refresh(0, true) }), [], 'signed for another stay');
  assert.equal((await lead(6, { refresh })).length, 1);
});

test('an envelope to an older join key than the one the server has is refused with a warning', async (t) => {
  const { alice, bob, lists } = await inEpochTwo(t);
  bob.join.markPublished(await bob.join.refresh(performance.now(), true));
  const event = await lists.rotation(3, 'fresh', [alice, bob]);
  await bob.keys.rotate(event);
  await alice.keys.rotate({ ...event, deliver: [bob.withKeys()] });
  assert.equal(await bob.keys.envelope(alice.sent()[0]), false);
  assert.ok(bob.problems.includes('withheld-join-key'));
  assert.equal(await bob.derived(3), undefined);
});

test('keys that do not match the fingerprint are invalid', async (t) => {
  const [alice, bob, carol] = await people(t, [], 'alice', 'bob', 'carol');
  const examined = await alice.directory.examine([{ ...bob.entry(), keys: carol.identity.keys }]);
  assert.equal(examined[0].problem, 'unknown-keys');
});

test('closed keys forget their secrets and ignore events', async (t) => {
  const { alice, bob, envelope, lists } = await two(t);
  bob.close();
  assert.equal(await bob.keys.envelope(envelope), true);
  await bob.keys.rotate(await lists.rotation(3, 'fresh', [alice, bob]));
  assert.deepEqual([await bob.derived(2), bob.requests.length], [undefined, 0]);
});

test('a signature by another algorithm than the key’s is invalid', async (t) => {
  const [{ identity }] = await people(t, [], 'bob');
  const { signature } = await identity.sign(utf8('x'));
  assert.equal(await isSignedBy(identity.keys, 'ES256', signature, utf8('x')), true);
  assert.equal(await isSignedBy(identity.keys, 'ES256', signature, utf8('y')), false);
  assert.equal(await isSignedBy(identity.keys, 'PS256', signature, utf8('x')), false);
  assert.equal(await isSignedBy(identity.keys, 'none', new Uint8Array(0), utf8('x')), false);
});
