// The proofs of a hostile review: each is an attack that once worked against these modules, named after what it must no longer break.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Announcer, CALL, Person } from './person.mjs';
import { aside, fakeTimers, load } from './web.mjs';

const { concat, fromBase64, sha256, toBase64, utf8 } = await load('wire/bytes.js');
const { trackIn } = await load('wire/checks.js');
const { Directory } = await load('trust/directory.js');
const { FrameKeys } = await load('frames/frames.js');
const { Identity } = await load('trust/identity.js');
const { deriveKey, parseHeader, seal } = await load('frames/sframe.js');
const { MemoryStore } = await load('devices/store.js');
const { baseKeyOf, kidOf } = await load('wire/transcript.js');
const { hpkeOpen } = await load('wire/wrap.js');

console.warn = () => {};

const frame = new Uint8Array(30);
const nonceOf = (sealed) => {
  const { kid, counter } = parseHeader(sealed);
  return `${kid}/${counter}`;
};

/** People without any announcement so far, and the server's chain of lists. */
async function scene(t, ...users) {
  const world = [];
  const people = [];
  for (const user of users) {
    const person = await Person.make(user, people.length + 1, world);
    t.after(() => person.close());
    people.push(person);
  }
  const lists = new Announcer();
  await lists.rotation(1, 'fresh', [people[0]]);
  await people[0].keys.start();
  return { world, lists, people };
}

/** The first of them leads an epoch for all, and all use it. */
async function inEpoch(t, ...users) {
  const { world, lists, people } = await scene(t, ...users);
  const [leader, ...others] = people;
  const event = await lists.rotation(2, 'fresh', people);
  await leader.keys.rotate({ ...event, deliver: others.map((person) => person.withKeys()) });
  const envelopes = leader.sent();
  for (const person of others) {
    await person.keys.rotate(event);
    await person.keys.envelope(envelopes.find(({ to }) => to.user === person.identity.user));
  }
  for (const person of people) await person.keys.switchTo({ epoch: 2 });
  return { world, lists, people, event, envelopes };
}

for (const lie of ['the reply', 'the list']) {
  test(`poc1: ${lie} that gives two devices the same number does not make them seal under the same key`, async (t) => {
    const { lists, people: [alice, bob] } = await scene(t, 'alice', 'bob');
    const [a, b] = [alice.entry(), bob.entry()];
    const toAlice = lie === 'the list' ? [a, { ...b, participant: 1 }] : [{ ...a, participant: 2 }, b];
    const toBob = lie === 'the list' ? [{ ...a, participant: 7 }, b] : [a, b];
    const forAlice = await lists.rotation(2, 'fresh', toAlice, { isAside: true });
    const forBob = await lists.rotation(2, 'fresh', toBob);
    assert.notEqual(forAlice.listHash, forBob.listHash, 'numbers are in the hash');
    await alice.keys.rotate({ ...forAlice, deliver: [{ ...toAlice[1], keys: bob.identity.keys }] });
    await bob.keys.rotate(forBob);
    assert.deepEqual([alice.keys.record(2), alice.problems], [undefined, ['refused-list']]);
    // In every epoch a device's sending key depends on its number, fingerprint and joinId. Alone in epoch 1, this device would seal nothing.
    alice.frames.isSilent = false;
    assert.equal(parseHeader(await alice.frames.seal(1, frame, 0)).kid, BigInt(kidOf(1, 1, 1)));
    assert.throws(() => alice.frames.identify({ call: CALL, participant: 2, fingerprint: alice.identity.fingerprint, joinId: alice.join.joinId }));
  });
}

test('poc2: a track number that overflows into another participant’s is invalid', async (t) => {
  const { people: [alice] } = await inEpoch(t, 'alice', 'bob');
  for (const track of ['1.257', '2.-255', '1.0', '01.1', '1.1e0', '1. 1', '1.256']) assert.throws(() => trackIn(track), /track/);
  for (const n of [257, -255, 256, NaN]) assert.equal(await alice.frames.seal(n, frame, 0), undefined);
});

test('poc3: an error from devices/list and a repeated switch do not end the silence of “verified only”', async (t) => {
  const { lists, people: [alice, bob], world } = await inEpoch(t, 'alice', 'bob');
  alice.directory.verifiedOnly = true;
  await alice.directory.verify([bob.entry()]);
  await alice.keys.reconsider();
  assert.equal(alice.keys.canSend, true);
  const ghost = await Person.make('zed', 3, world);
  const dud = await Person.make('dud', 4, []);
  t.after(() => [ghost, dud].forEach((person) => person.close()));
  const event = await lists.rotation(3, 'fresh', [alice, bob, ghost, dud]);
  await bob.keys.rotate({ ...event, deliver: [alice.withKeys(), ghost.withKeys()] });
  await alice.keys.rotate(event);
  await alice.keys.envelope(bob.sent().find(({ to }) => to.user === 'alice'));
  await alice.keys.switchTo({ epoch: 3 });
  assert.equal(alice.keys.canSend, false);
  const { examine } = alice.directory;
  alice.directory.examine = async () => Promise.reject(Object.assign(new Error('no'), { code: 'rate.limited' }));
  await alice.keys.reconsider();
  await alice.keys.switchTo({ epoch: 3 });
  assert.deepEqual([alice.keys.canSend, await alice.frames.seal(1, frame, 0)], [false, undefined]);
  alice.directory.examine = examine;
});

test('poc4: a joinId that swallows the next entry is invalid, and different lists have different hashes', async (t) => {
  const { lists, people: [alice, bob, carol, ghost] } = await scene(t, 'alice', 'bob', 'carol', 'zed');
  const c = carol.entry();
  const g = ghost.entry();
  const long = concat(fromBase64(c.joinId), await sha256(fromBase64(c.joinKey.publicKey)), fromBase64(g.fingerprint), fromBase64(g.joinId));
  const toBob = [alice.entry(), bob.entry(), { ...c, joinId: toBase64(long) }];
  const forAlice = await lists.rotation(2, 'fresh', [alice, bob, carol, ghost], { isAside: true });
  const forBob = await lists.rotation(2, 'fresh', toBob, { isAside: true });
  assert.notEqual(forAlice.listHash, forBob.listHash);
  await bob.keys.rotate({ ...forBob, listHash: forAlice.listHash });
  await bob.keys.rotate(forBob);
  assert.equal(bob.keys.record(2), undefined);
});

test('poc5: verifying one person’s device does not verify a ghost that is on everybody’s list', async (t) => {
  const { people: [alice, bob] } = await inEpoch(t, 'alice', 'bob', 'zed');
  const shown = alice.keys.devices.filter(({ user }) => user === 'bob');
  await alice.directory.verify(shown);
  alice.directory.verifiedOnly = true;
  await alice.keys.reconsider();
  assert.deepEqual(alice.keys.devices.map(({ user, isVerified }) => [user, Boolean(isVerified)]), [['alice', false], ['bob', true], ['zed', false]]);
  assert.deepEqual([alice.keys.canSend, alice.keys.silence], [false, 'unverified']);
  assert.ok(bob);
});

test('poc6 and poc13: epoch 2^32 + e is not epoch e: no counter restarts, and nobody who left is let in again', async (t) => {
  fakeTimers(t); // keeps join keys from being refreshed meanwhile
  const { lists, people: [alice, bob, carol], event, envelopes } = await inEpoch(t, 'alice', 'bob', 'carol');
  const toBob = envelopes.find(({ to }) => to.user === 'bob');
  const seen = new Set([nonceOf(await bob.frames.seal(1, frame, 0))]);
  const third = await lists.rotation(3, 'fresh', [alice, bob]);
  await alice.keys.rotate({ ...third, deliver: [bob.withKeys()] });
  await bob.keys.rotate(third);
  await bob.keys.envelope(alice.sent()[0]);
  for (const person of [alice, bob]) await person.keys.switchTo({ epoch: 3 });
  for (const epoch of [2 ** 32 + 2, 2 ** 33 + 2, 2 ** 32 + 4]) {
    await bob.keys.rotate({ ...event, epoch });
    assert.equal(await bob.keys.envelope({ ...toBob, epoch }), false);
    await bob.keys.switchTo({ epoch });
    const sealed = await bob.frames.seal(1, frame, 0);
    assert.ok(!seen.has(nonceOf(sealed)));
    seen.add(nonceOf(sealed));
    assert.equal(await carol.hears(sealed), false);
    assert.equal(await alice.hears(sealed), true);
  }
  assert.equal(bob.keys.epoch, 3);
});

test('poc8: one number for two devices does not cause a repeated key and nonce, which would reveal GCM’s key', async (t) => {
  const { lists, people: [alice, bob, carol] } = await scene(t, 'alice', 'bob', 'carol');
  const event = await lists.rotation(2, 'fresh', [{ ...alice.entry(), participant: 2 }, bob, carol]);
  await alice.keys.rotate({ ...event, deliver: [bob.withKeys(), carol.withKeys()] });
  for (const person of [bob, carol]) await person.keys.rotate(event);
  assert.equal(alice.requests.filter(({ path }) => path === 'keys').length, 0, 'nothing is handed out for such a list');
  assert.deepEqual([alice, bob, carol].map((person) => person.keys.record(2)), [undefined, undefined, undefined]);
});

test('poc9: no other entry is listed under this device’s own name', async (t) => {
  const { lists, people: [alice, bob], world } = await inEpoch(t, 'alice', 'bob');
  const ghost = await Person.make('alice', 3, world, { device: 'e' });
  t.after(() => ghost.close());
  const asAlice = { ...ghost.entry(), device: 'd' };
  for (const list of [[alice, asAlice, bob], [asAlice, alice, bob], [asAlice, bob]]) {
    const event = await lists.rotation(3, 'fresh', list, { isAside: true });
    await alice.keys.rotate({ ...event, list: list.map((each) => each.entry?.() ?? each) });
    assert.equal(alice.keys.record(3), undefined);
  }
  assert.deepEqual(alice.problems, ['refused-list']);
});

test('poc10: pins are stored under the requested user, so a server that spells it differently ends the connection', async () => {
  // Row 48 of the table of lies shows that the connection ends; this shows why it must.
  const store = new MemoryStore();
  const [bob, fake] = [await Identity.open(new MemoryStore(), 'bob', 'd'), await Identity.open(new MemoryStore(), 'bob', 'd')];
  const entry = ({ user, device, keys, fingerprint }) => ({ user, device, keys, fingerprint: toBase64(fingerprint), participant: 2 });
  const open = (owner) => new Directory({ store, owner, fetchDevices: async () => ({ devices: [] }) });
  await open('alice').examine([entry(bob)]);
  const [{ problem }] = await open('alice').examine([entry(fake)]);
  assert.equal(problem, 'changed-key');
});

test('poc11: trusting a changed key accepts the key that was shown, not a newer one', async () => {
  const make = () => Identity.open(new MemoryStore(), 'bob', 'd');
  const [bob, shown, servers] = await Promise.all([make(), make(), make()]);
  const entry = ({ keys, fingerprint }) => ({ user: 'bob', device: 'd', keys, fingerprint: toBase64(fingerprint), participant: 2 });
  const directory = new Directory({ store: new MemoryStore(), owner: 'alice', fetchDevices: async () => ({ devices: [] }) });
  for (const each of [bob, shown, servers]) await directory.examine([entry(each)]);
  await directory.trust('bob', 'd', toBase64(shown.fingerprint));
  assert.equal((await directory.examine([entry(servers)]))[0].problem, 'changed-key');
});

test('poc12: a list without a join key is refused, and nothing of epoch 2 is sealed to a long-lived key', async (t) => {
  const { lists, people: [alice, bob, carol] } = await scene(t, 'alice', 'bob', 'carol');
  const { joinKey, ...stripped } = bob.entry();
  const event = await lists.rotation(2, 'fresh', [alice, stripped, carol], { isAside: true });
  await alice.keys.rotate({ ...event, deliver: [{ ...stripped, keys: bob.identity.keys }, carol.withKeys()] });
  assert.deepEqual([alice.keys.record(2), alice.problems], [undefined, ['refused-list']]);
  const good = await lists.rotation(2, 'fresh', [alice, bob, carol]);
  await alice.keys.rotate({ ...good, deliver: [bob.withKeys(), carol.withKeys()] });
  const toBob = alice.sent().find(({ to }) => to.user === 'bob');
  await assert.rejects(hpkeOpen(bob.identity.wrap, fromBase64(toBob.ciphertext)));
  assert.equal(toBob.key, toBase64(await sha256(fromBase64(joinKey.publicKey))));
});

test('poc15: a member can write and speak only as itself, and can mute nobody', async (t) => {
  const { people: [alice, bob, mallory] } = await inEpoch(t, 'alice', 'bob', 'mallory');
  const { secret, listHash } = mallory.posted.find(({ type, epoch }) => type === 'epoch' && epoch === 2);
  const stay = { participant: 2, fingerprint: bob.identity.fingerprint, joinId: bob.join.joinId };
  const base = await baseKeyOf(secret, { call: CALL, epoch: 2, listHash }, stay);
  const forge = async (n, counter, metadata, plain) => seal(await deriveKey(base, BigInt(kidOf(2, n, 2))), counter, metadata, plain);
  const chat = concat(Uint8Array.of(0), await forge(0, 0n, utf8('message'), utf8('{"text":"send me the password"}')));
  await assert.rejects(alice.frames.openMessage(chat, 3), { reason: 'attribution' }, 'the honest server says that Mallory sent it');
  const bomb = await forge(1, 2n ** 48n - 1n, new Uint8Array(0), new Uint8Array(3));
  // In Mallory's slot it does not count at all (`attribution.test.mjs`); in a slot that was Bob's a moment ago it moves his window only a little.
  await assert.rejects(alice.frames.open(bomb, 0, alice.frames.inspect(bomb, 0), 64), { reason: 'replay' });
  assert.equal(await alice.hears(await bob.frames.seal(1, utf8('bob speaks on'), 0)), true);
  const written = await bob.frames.sealMessage(utf8('{"text":"mine"}'));
  assert.equal((await alice.frames.openMessage(written, 2)).participant, 2, 'his window for chat was not touched');
  await assert.rejects(async () => alice.frames.inspect(await forge(1, 2n ** 53n, new Uint8Array(0), new Uint8Array(3)), 0), { reason: 'header' });
});

test('poc16: a ghost that only the leader is shown gets another secret than the others', async (t) => {
  const { lists, people: [alice, bob, carol], world } = await inEpoch(t, 'alice', 'bob', 'carol');
  const [zed, eve] = [await Person.make('zed', 4, world), await Person.make('eve', 5, world)];
  t.after(() => [zed, eve].forEach((person) => person.close()));
  const forAlice = await lists.rotation(3, 'ratchet', [alice, bob, carol, eve, zed], { isAside: true });
  const forOthers = await lists.rotation(3, 'ratchet', [alice, bob, carol, eve]);
  await alice.keys.rotate({ ...forAlice, deliver: [zed.withKeys()] });
  await zed.keys.rotate(forAlice);
  for (const person of [bob, carol]) await person.keys.rotate(forOthers);
  assert.equal(await zed.keys.envelope(alice.sent()[0]), true, 'the secret that the leader gave it');
  for (const person of [alice, bob, carol, zed]) await person.keys.switchTo({ epoch: 3 });
  const sealed = await bob.frames.seal(1, utf8('nobody but us'), 0);
  assert.equal(await carol.hears(sealed), true);
  // The ghost's computation: its secret, with the list's hash and senders as the server gave them to Carol.
  const own = zed.posted.find(({ type, epoch }) => type === 'epoch' && epoch === 3);
  const theirs = carol.posted.find(({ type, epoch }) => type === 'epoch' && epoch === 3);
  const program = new FrameKeys();
  program.identify({ call: CALL, participant: 4, fingerprint: zed.identity.fingerprint, joinId: zed.join.joinId });
  program.install({ ...own, listHash: theirs.listHash, senders: theirs.senders });
  await assert.rejects(program.open(sealed, 0, program.inspect(sealed, 0)), { reason: 'authentication' });
  await aside(1);
});
