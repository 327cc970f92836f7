import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Person, directoryFor } from './person.mjs';
import { load } from './web.mjs';

const { toBase64 } = await load('bytes.js');
const { listHashOf } = await load('transcript.js');
const { MemoryStore } = await load('store.js');
const { FrameKeys } = await load('frames.js');

console.warn = () => {};

async function rotation(epoch, people) {
  const list = people.map((person) => person.entry());
  return { epoch, mode: 'fresh', leader: people[0].participant, list, listHash: toBase64(await listHashOf(list)) };
}

/** Alice leads epoch 2 with Bob on the list. */
async function led({ verifiedOnly = false } = {}) {
  const world = [];
  const [alice, bob] = [await Person.make('alice', 1, world), await Person.make('bob', 2, world)];
  alice.directory.verifiedOnly = verifiedOnly;
  await alice.keys.begin();
  await alice.keys.rotate({ ...(await rotation(2, [alice, bob])), deliver: [bob.withKeys()] });
  await alice.keys.switchTo({ epoch: 2 });
  return { world, alice, bob };
}

/** What the worker is told after the switch to epoch 1, with a switch or without. */
const silences = ({ posted }) => posted.filter((message) => 'isSilent' in message).map(({ isSilent }) => isSilent).slice(1);

test('with “verified only” an unverified device gets no key, and nothing is sent while it is there', async () => {
  const { alice, bob } = await led({ verifiedOnly: true });
  assert.deepEqual(alice.sent(), []);
  assert.deepEqual(silences(alice), [true]);
  assert.equal(alice.keys.canSend, false);
  assert.deepEqual(alice.warnings.map(({ problem, user }) => [problem, user]), [['unverified', 'bob']]);
  const { senders } = alice.posted.filter(({ type }) => type === 'epoch').at(-1);
  assert.deepEqual(senders.map(({ participant }) => participant), [1, 2], 'who is not verified may speak');
  await assert.rejects(alice.keys.verify('1'.repeat(40)), /changed/, 'another code than the one in use');
  assert.deepEqual(silences(alice), [true]);
  await alice.keys.verify(await alice.keys.code());
  assert.deepEqual(silences(alice), [true, false]);
  await alice.keys.requested({ epoch: 2, to: bob.withKeys() });
  assert.equal(alice.sent().length, 1);
});

test('a device that is not verified is known from the moment its list is announced until it is verified', async () => {
  const world = [];
  const [alice, bob] = [await Person.make('alice', 1, world), await Person.make('bob', 2, world)];
  alice.directory.verifiedOnly = true;
  await alice.keys.begin();
  assert.equal(alice.keys.hasUnverified, false);
  await alice.keys.rotate({ ...(await rotation(2, [alice, bob])), deliver: [bob.withKeys()] });
  assert.equal(alice.keys.hasUnverified, true, 'before the switch');
  await alice.keys.switchTo({ epoch: 2 });
  assert.equal(alice.keys.hasUnverified, true);
  await alice.keys.verify(await alice.keys.code());
  assert.equal(alice.keys.hasUnverified, false);
});

test('switched on in a call, “verified only” silences at once, and off again it speaks', async () => {
  const { alice } = await led();
  assert.equal(alice.keys.canSend, true);
  alice.directory.verifiedOnly = true;
  await alice.keys.reconsider();
  assert.equal(alice.keys.canSend, false);
  alice.directory.verifiedOnly = false;
  await alice.keys.reconsider();
  assert.deepEqual(silences(alice), [false, true, false]);
});

test('while silent nothing is sealed, whatever key there is', async () => {
  const keys = new FrameKeys();
  keys.participant = 1;
  const secret = await crypto.subtle.importKey('raw', new Uint8Array(32), 'HKDF', false, ['deriveBits']);
  const senders = [{ participant: 1, fingerprint: new Uint8Array(32), joinId: new Uint8Array(16) }];
  keys.install({ epoch: 1, call: 'c', listHash: new Uint8Array(32), secret, senders });
  keys.switchTo(1);
  keys.isSilent = true;
  assert.equal(await keys.seal(1, new Uint8Array(20), 0), undefined);
  assert.equal(await keys.sealMessage(new Uint8Array(20)), undefined);
  keys.isSilent = false;
  assert.notEqual(await keys.seal(1, new Uint8Array(20), 0), undefined);
});

test('a new device of somebody known is told, a stranger’s devices are not', async () => {
  const world = [];
  const bob = await Person.make('bob', 2, world);
  const tablet = await Person.make('bob', 3, world, { device: 'tablet' });
  const directory = directoryFor('alice', new MemoryStore(), world);
  const first = await directory.examine([bob.entry(), tablet.entry()]);
  assert.deepEqual(first.map(({ isNew }) => isNew), [false, false]);
  const laptop = await Person.make('bob', 4, world, { device: 'laptop' });
  const later = await directory.examine([bob.entry(), laptop.entry()]);
  assert.deepEqual(later.map(({ isNew }) => isNew), [false, true]);
  const again = await directory.examine([laptop.entry()]);
  assert.equal(again[0].isNew, false);
});

test('a device of one’s own that was not here before is told', async () => {
  const world = [];
  const other = await Person.make('alice', 2, world, { device: 'phone' });
  const [{ isNew }] = await directoryFor('alice', new MemoryStore(), world).examine([other.entry()]);
  assert.equal(isNew, true);
});

test('verified is a key, not a name: a changed one is not verified', async () => {
  const world = [];
  const bob = await Person.make('bob', 2, world);
  const directory = directoryFor('alice', new MemoryStore(), world);
  await directory.examine([bob.entry()]);
  await directory.verify([bob.entry()]);
  assert.equal((await directory.examine([bob.entry()]))[0].isVerified, true);
  const again = await Person.make('bob', 3, world);
  const changed = { ...again.entry(), keys: again.identity.keys };
  await directory.verify([changed]);
  assert.equal((await directory.examine([changed]))[0].problem, 'changed-key');
  await directory.trust('bob', 'd', changed.fingerprint);
  assert.equal((await directory.examine([changed]))[0].isVerified, false);
});
