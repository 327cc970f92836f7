import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Person } from './person.mjs';
import { hex, load } from './web.mjs';

const { fromBase64, toBase64, sha256, concat, lp, utf8, u32 } = await load('bytes.js');
const { fingerprintOf, isSignedBy, joinBytes } = await load('identity.js');
const { callCodeOf, envelopeBytes, listBytes, listHashOf, ratchet } = await load('transcript.js');
const { wrap } = await load('wrap.js');

console.warn = () => {}; // refusals are said there

const rotation = async (epoch, mode, people, rest) => {
  const list = people.map((person) => person.entry());
  return { epoch, mode, leader: 1, list, listHash: toBase64(await listHashOf(list)), ...rest };
};

/** Alice has started, Bob came, and both are in epoch 2. */
async function two() {
  const world = [];
  const alice = await Person.make('alice', 1, world);
  const bob = await Person.make('bob', 2, world);
  await alice.keys.begin();
  const event = await rotation(2, 'ratchet', [alice, bob]);
  await alice.keys.rotate({ ...event, list: undefined, added: [bob.entry()], deliver: [bob.withKeys()] });
  await bob.keys.rotate(event);
  const [envelope] = alice.sent();
  return { world, alice, bob, envelope };
}

test('a device that comes gets the ratcheted key, and both derive the same', async () => {
  const { alice, bob, envelope } = await two();
  assert.equal(await bob.keys.envelope(envelope), true);
  for (const person of [alice, bob]) await person.keys.switchTo({ epoch: 2 });
  assert.equal(await bob.derived(2), await alice.derived(2));
  assert.notEqual(await alice.derived(1), await alice.derived(2));
  assert.equal(await alice.keys.code(), await bob.keys.code());
  assert.match(await bob.keys.code(), /^\d{40}$/);
  assert.deepEqual(bob.posted.at(-1), { type: 'switch', epoch: 2, isSilent: false });
});

test('when somebody goes the key is fresh, and the one who stays gets it', async () => {
  const { alice, bob, envelope, world } = await two();
  const carol = await Person.make('carol', 3, world);
  await bob.keys.envelope(envelope);
  for (const person of [alice, bob]) await person.keys.switchTo({ epoch: 2 });
  const event = await rotation(3, 'fresh', [alice, carol]);
  await alice.keys.rotate({ ...event, deliver: [carol.withKeys()] });
  await carol.keys.rotate(event);
  assert.equal(await carol.keys.envelope(alice.sent()[0]), true);
  assert.equal(await carol.derived(3), await alice.derived(3));
  assert.equal(await bob.derived(3), undefined);
});

test('an envelope that is not what it should be is refused', async () => {
  const { bob, envelope, alice } = await two();
  const carol = await Person.make('carol', 3, []);
  const stranger = { ...envelope, from: { user: 'carol', device: 'd' } };
  const forged = fromBase64(envelope.ciphertext);
  forged[70] ^= 1;
  const made = await wrap(bob.join.wire.joinKey.alg, fromBase64(bob.join.wire.joinKey.publicKey), new Uint8Array(32));
  const refused = {
    unsigned: { ...envelope, signature: undefined },
    'for another': { ...envelope, to: { user: 'carol', device: 'd' } },
    'of another epoch': { ...envelope, epoch: 1 },
    'from a stranger': stranger,
    'with another ciphertext': { ...envelope, ciphertext: toBase64(forged) },
    'made by the server': { ...envelope, ciphertext: toBase64(made) },
    'signed by another': { ...envelope, signature: toBase64((await carol.identity.sign(forged)).signature) },
  };
  for (const [name, changed] of Object.entries(refused)) {
    assert.equal(await bob.keys.envelope(changed), false, name);
    assert.equal(await bob.derived(2), undefined, name);
  }
  assert.equal(await bob.keys.envelope(envelope), true);
  assert.equal(await bob.keys.envelope(refused['made by the server']), true, 'the first valid secret stays');
  await alice.keys.switchTo({ epoch: 2 });
  assert.equal(await bob.derived(2), await alice.derived(2));
});

test('an envelope for another list than the one shown is refused', async () => {
  const world = [];
  const [alice, bob, carol] = await Promise.all(['alice', 'bob', 'carol'].map((user, i) => Person.make(user, i + 1, world)));
  await alice.keys.begin();
  await alice.keys.rotate({ ...(await rotation(2, 'ratchet', [alice, bob, carol])), deliver: [bob.withKeys()] });
  await bob.keys.rotate(await rotation(2, 'ratchet', [alice, bob]));
  assert.equal(await bob.keys.envelope(alice.sent()[0]), false);
});

test('a list is refused that its hash denies, that lost somebody in a ratchet, or that this join is not on', async () => {
  const { alice, bob, envelope, world } = await two();
  const carol = await Person.make('carol', 3, world);
  await bob.keys.envelope(envelope);
  await bob.keys.switchTo({ epoch: 2 });
  const good = await rotation(3, 'fresh', [alice, bob, carol]);
  const bad = [
    { ...good, listHash: toBase64(new Uint8Array(32)) },
    await rotation(3, 'ratchet', [bob, carol]),
    await rotation(3, 'fresh', [alice, carol]),
  ];
  for (const event of bad) {
    await bob.keys.rotate(event);
    assert.equal(await bob.derived(3), undefined);
  }
  await bob.keys.rotate({ ...(await rotation(1, 'fresh', [bob])), leader: 2, deliver: [] });
  assert.equal(bob.requests.filter(({ path }) => path === 'keys').length, 0, 'a lower epoch');
});

test('an epoch that was announced as fresh is not ratcheted, whatever the server says of it later', async () => {
  const { alice, bob, envelope } = await two();
  await bob.keys.envelope(envelope);
  for (const person of [alice, bob]) await person.keys.switchTo({ epoch: 2 });
  const withoutBob = await rotation(3, 'fresh', [alice]);
  await alice.keys.rotate({ ...withoutBob, leader: 9 });
  await alice.keys.rotate({ ...withoutBob, leader: 9, mode: 'ratchet' });
  assert.equal(await alice.derived(3), undefined);
});

test('a device whose key is none gets nothing, and the others get theirs', async () => {
  const world = [];
  const [alice, bob, mallory] = await Promise.all(['alice', 'bob', 'mallory'].map((user, i) => Person.make(user, i + 1, world)));
  const publicKey = toBase64(utf8('no key'));
  const { joinId, wire } = mallory.join;
  const data = joinBytes(mallory.identity.fingerprint, joinId, wire.joinKey.alg, utf8('no key'));
  const { signature } = await mallory.identity.sign(data);
  wire.joinKey = { ...wire.joinKey, publicKey, signature: toBase64(signature) };
  await alice.keys.begin();
  await alice.keys.rotate({ ...(await rotation(2, 'fresh', [alice, bob, mallory])), deliver: [bob.withKeys(), mallory.withKeys()] });
  assert.deepEqual(alice.sent().map(({ to }) => to.user), ['bob']);
});

test('the leader hands no key to a device that is not on its list', async () => {
  const { alice, world } = await two();
  const mallory = await Person.make('mallory', 9, world);
  const before = alice.requests.length;
  await alice.keys.requested({ epoch: 2, to: mallory.withKeys() });
  const event = await rotation(3, 'fresh', [alice]);
  await alice.keys.rotate({ ...event, deliver: [mallory.withKeys()] });
  assert.equal(alice.requests.length, before);
});

test('keys.request is answered with the same key, three times', async () => {
  const { alice, bob } = await two();
  for (let i = 0; i < 5; i += 1) await alice.keys.requested({ epoch: 2, to: bob.withKeys() });
  assert.equal(alice.requests.filter(({ path }) => path === 'keys').length, 1 + 3);
  assert.equal(await bob.keys.envelope(alice.sent()[0]), true);
  assert.equal(await bob.derived(2), await alice.derived(2));
});

test('who has no key at the switch sends nothing, asks for it, and sends once it is there', async () => {
  const { bob, envelope } = await two();
  const silent = () => bob.posted.filter((message) => 'isSilent' in message).at(-1)?.isSilent;
  await bob.keys.switchTo({ epoch: 2 });
  assert.deepEqual(bob.requests.at(-1), { path: 'keys/request', body: { epoch: 2 } });
  assert.deepEqual([bob.keys.canSend, silent()], [false, true], 'not under the key before either');
  await bob.keys.envelope(envelope);
  assert.deepEqual([bob.keys.canSend, silent()], [true, false]);
});

test('a switch that was lost is made up for by the state of the call', async () => {
  const { bob, envelope } = await two();
  await bob.keys.envelope(envelope);
  await bob.keys.inUse(2);
  assert.deepEqual([bob.keys.epoch, bob.keys.canSend], [2, true]);
});

test('the epoch in use from before the join is not looked up', async () => {
  const bob = await Person.make('bob', 2, []);
  await bob.keys.inUse(7);
  assert.deepEqual([bob.keys.epoch, bob.requests], [0, []]);
});

test('a leader without the old secret asks, and makes none up', async () => {
  const world = [];
  const [alice, bob] = [await Person.make('alice', 1, world), await Person.make('bob', 2, world)];
  await alice.keys.rotate({ ...(await rotation(5, 'ratchet', [alice, bob])), deliver: [bob.withKeys()] });
  assert.deepEqual(alice.requests.map(({ path }) => path), ['keys/request']);
});

test('a leader that comes too late does not use its own key', async () => {
  const { alice, bob } = await two();
  alice.answer = (path) => {
    if (path === 'keys') throw Object.assign(new Error('stale'), { code: 'keys.epoch-stale' });
  };
  await alice.keys.rotate({ ...(await rotation(3, 'fresh', [alice, bob])), deliver: [bob.withKeys()] });
  assert.equal(await alice.derived(3), undefined);
});

test('an unknown epoch is looked up', async () => {
  const { bob, alice, envelope } = await two();
  const list = await rotation(4, 'fresh', [alice, bob]);
  bob.answer = (path) => (path === 'keys/list' ? list : {});
  await bob.keys.envelope(envelope);
  await bob.keys.switchTo({ epoch: 4 });
  assert.deepEqual(bob.requests.map(({ path }) => path), ['keys/list', 'keys/request', 'keys/request']);
  assert.equal(bob.keys.epoch, 4);
});

test('a changed key is a warning, and gets nothing until the user takes it', async () => {
  const { alice, bob, world } = await two();
  const again = await Person.make('bob', 3, world);
  world.splice(world.indexOf(bob), 1);
  const event = await rotation(3, 'fresh', [alice, again]);
  await alice.keys.rotate({ ...event, deliver: [again.withKeys()] });
  assert.deepEqual(alice.warnings.map(({ problem, user }) => [problem, user]), [['changed-key', 'bob']]);
  assert.deepEqual(alice.sent(), []);
  const senders = () => alice.posted.filter(({ type }) => type === 'epoch').at(-1).senders.map((one) => one.participant);
  assert.deepEqual(senders(), [1]);
  await alice.keys.requested({ epoch: 3, to: again.withKeys() });
  assert.deepEqual(alice.sent(), []);
  await alice.keys.trust('bob', 'd', again.entry().fingerprint);
  assert.deepEqual(senders(), [1, 3]);
  assert.equal(alice.sent().length, 1, 'who asked before is answered now');
});

test('a join key that the device did not sign is a warning', async () => {
  const world = [];
  const [alice, bob, carol] = await Promise.all(['alice', 'bob', 'carol'].map((user, i) => Person.make(user, i + 1, world)));
  bob.join.wire.joinKey = { ...bob.join.wire.joinKey, publicKey: carol.join.wire.joinKey.publicKey };
  await alice.keys.begin();
  await alice.keys.rotate({ ...(await rotation(2, 'fresh', [alice, bob])), deliver: [bob.withKeys()] });
  assert.deepEqual(alice.warnings.map(({ problem }) => problem), ['bad-join-key']);
  assert.deepEqual(alice.sent(), []);
});

test('keys that do not hash to the fingerprint are none', async () => {
  const world = [];
  const [alice, bob, carol] = await Promise.all(['alice', 'bob', 'carol'].map((user, i) => Person.make(user, i + 1, world)));
  const examined = await alice.directory.examine([{ ...bob.entry(), keys: carol.identity.keys }]);
  assert.equal(examined[0].problem, 'unknown-keys');
});

test('hashes are over the bytes that the protocol names', async () => {
  const person = await Person.make('bob', 2, []);
  const [wrapKey, signKey] = person.identity.keys.map(({ publicKey }) => fromBase64(publicKey));
  const names = ['bob', 'd', 'HPKE-P256-SHA256-AES256GCM'].map(lp);
  const expected = await sha256(concat(utf8('conclave-device-v1'), ...names, lp(wrapKey), lp('ES256'), lp(signKey)));
  assert.deepEqual(await fingerprintOf('bob', 'd', person.identity.keys), expected);

  const ring = { user: 'Bob', device: 'd', fingerprint: toBase64(new Uint8Array(32).fill(1)) };
  const list = await listBytes([person.entry(), ring]);
  assert.equal(list.length, 160);
  assert.equal(hex(list.subarray(0, 80)), '01'.repeat(32) + '00'.repeat(48), 'sorted as bytes, zeros for what is not there');
  assert.deepEqual(list.subarray(112, 128), person.join.joinId);
  assert.deepEqual(list.subarray(128), await sha256(fromBase64(person.join.wire.joinKey.publicKey)));
});

test('the call code and the ratchet are what anyone computes', async () => {
  const entry = { user: 'a', device: 'd', fingerprint: toBase64(new Uint8Array(32)) };
  const digest = await sha256(concat(utf8('conclave-code-v1'), lp('c'), new Uint8Array(80)));
  const number = BigInt(`0x${hex(digest)}`) % 10n ** 40n;
  assert.equal(await callCodeOf('c', [entry]), String(number).padStart(40, '0'));
  const base = Uint8Array.from({ length: 16 }, (_, i) => i);
  assert.equal(hex(await ratchet(base)).slice(0, 16), '895fe5603750295c', 'as notes/e2ee.md 1.5 has it');
});

test('an envelope signature covers the call, the epoch, both devices and the list', async () => {
  const facts = {
    call: 'c', epoch: 2, from: { user: 'a', device: 'x' }, to: { user: 'b', device: 'y' }, alg: 'A',
    ciphertext: utf8('ct'), listHash: new Uint8Array(32).fill(9),
  };
  const expected = concat(
    utf8('conclave-envelope-v1'), ...['c'].map(lp), u32(2), ...['a', 'x', 'b', 'y', 'A'].map(lp),
    await sha256(utf8('ct')), facts.listHash,
  );
  assert.deepEqual(await envelopeBytes(facts), expected);
});

test('a signature by another algorithm than the key is for verifies nothing', async () => {
  const { identity } = await Person.make('bob', 2, []);
  const { signature } = await identity.sign(utf8('x'));
  assert.equal(await isSignedBy(identity.keys, 'ES256', signature, utf8('x')), true);
  assert.equal(await isSignedBy(identity.keys, 'ES256', signature, utf8('y')), false);
  assert.equal(await isSignedBy(identity.keys, 'PS256', signature, utf8('x')), false);
  assert.equal(await isSignedBy(identity.keys, 'none', new Uint8Array(0), utf8('x')), false);
});
