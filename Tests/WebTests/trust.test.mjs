import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Announcer, Person, directoryFor } from './person.mjs';
import { aside, load, until } from './web.mjs';

const { toBase64 } = await load('wire/bytes.js');
const { Directory } = await load('trust/directory.js');
const { Identity } = await load('trust/identity.js');
const { MemoryStore } = await load('devices/store.js');
const { FrameKeys } = await load('frames/frames.js');
const { makeStatement } = await load('trust/vouching.js');

console.warn = () => {};

/** Alice leads epoch 2 with Bob on the list. */
async function led(t, { verifiedOnly = false } = {}) {
  const world = [];
  const [alice, bob] = [await Person.make('alice', 1, world), await Person.make('bob', 2, world)];
  t.after(() => [alice, bob].forEach((person) => person.close()));
  alice.directory.verifiedOnly = verifiedOnly;
  const lists = new Announcer();
  await lists.rotation(1, 'fresh', [alice]);
  await alice.keys.start();
  const event = await lists.rotation(2, 'fresh', [alice, bob]);
  await alice.keys.rotate({ ...event, deliver: [bob.withKeys()] });
  await aside();
  return { world, alice, bob, lists, event };
}

async function inUse(t, options) {
  const made = await led(t, options);
  await made.alice.keys.switchTo({ epoch: 2 });
  return made;
}

const verify = async ({ directory, keys }, ...people) => {
  await directory.verify(people.map((person) => person.entry()));
  await keys.reconsider();
};

/** The silent flags sent to the worker, in order, after the switch to epoch 1. */
const silences = ({ posted }) => posted.filter((message) => 'isSilent' in message).map(({ isSilent }) => isSilent).slice(1);

test('with “verified only” an unverified device gets no key, and nothing is sent while it is there', async (t) => {
  const { alice, bob } = await inUse(t, { verifiedOnly: true });
  assert.deepEqual(alice.sent(), []);
  assert.deepEqual(silences(alice), [true]);
  assert.deepEqual([alice.keys.canSend, alice.keys.silence], [false, 'unverified']);
  assert.deepEqual(alice.warnings.map(({ problem, user }) => [problem, user]), [['unverified', 'bob']]);
  const { senders } = alice.posted.filter(({ type }) => type === 'epoch').at(-1);
  assert.deepEqual(senders.map(({ participant }) => participant), [2], 'an unverified device may speak');
  await verify(alice, { entry: () => ({ ...bob.entry(), fingerprint: alice.entry().fingerprint }) });
  assert.deepEqual(silences(alice), [true], 'another key than the one that was shown');
  await verify(alice, bob);
  assert.deepEqual(silences(alice), [true, false]);
  await alice.keys.requested({ epoch: 2, to: bob.withKeys() });
  assert.equal(alice.sent().length, 1);
});

test('an unverified device is reported from its list’s announcement until it is verified', async (t) => {
  const { alice, bob } = await led(t, { verifiedOnly: true });
  assert.equal(alice.keys.hasUnverified, true, 'before the switch');
  await alice.keys.switchTo({ epoch: 2 });
  assert.equal(alice.keys.hasUnverified, true);
  await verify(alice, bob);
  assert.equal(alice.keys.hasUnverified, false);
});

test('if a look-up fails or hangs, “verified only” stays silent, and a repeated switch changes nothing', async (t) => {
  const { alice, bob, lists, world } = await inUse(t, { verifiedOnly: true });
  await verify(alice, bob);
  assert.equal(alice.keys.canSend, true);
  const zed = await Person.make('zed', 3, world);
  t.after(() => zed.close());
  const event = await lists.rotation(3, 'fresh', [alice, bob, zed]);
  await alice.keys.rotate({ ...event, leader: 1, deliver: [bob.withKeys()] });
  await alice.keys.switchTo({ epoch: 3 });
  await aside();
  assert.equal(alice.keys.canSend, false);
  for (const examine of [async () => Promise.reject(new Error('no')), () => new Promise(() => {})]) {
    alice.directory.examine = examine;
    alice.keys.reconsider().catch(() => {});
    await aside();
    await Promise.race([alice.keys.switchTo({ epoch: 3 }), aside()]);
    assert.deepEqual([alice.keys.canSend, await alice.frames.seal(1, new Uint8Array(20), 0)], [false, undefined]);
  }
});

test('an entry about which nothing is known yet is a problem', async (t) => {
  const { alice, bob, lists } = await inUse(t, { verifiedOnly: true });
  await verify(alice, bob);
  alice.directory.examine = () => new Promise(() => {});
  const zed = await Person.make('zed', 3, []);
  t.after(() => zed.close());
  const secretOf = { ...(await lists.rotation(3, 'fresh', [alice, bob, zed])), deliver: [] };
  await alice.keys.rotate(secretOf);
  await alice.keys.switchTo({ epoch: 3 });
  assert.deepEqual([alice.keys.epoch, alice.keys.canSend], [3, false]);
});

test('turning on “verified only” during a call silences at once, turning it off ends that', async (t) => {
  const { alice } = await inUse(t);
  assert.equal(alice.keys.canSend, true);
  alice.directory.verifiedOnly = true;
  await alice.keys.reconsider();
  assert.equal(alice.keys.canSend, false);
  alice.directory.verifiedOnly = false;
  await alice.keys.reconsider();
  assert.deepEqual(silences(alice), [false, true, false]);
});

test('nothing that a device sent opens after its revocation, not even under the previous epoch', async (t) => {
  const [world, revokes] = [[], []];
  const fetchDevices = async () => ({ devices: world.map((other) => other.asDevice()), revokes });
  const directory = new Directory({ store: new MemoryStore(), owner: 'alice', fetchDevices });
  const [alice, bob] = [await Person.make('alice', 1, world, { directory }), await Person.make('bob', 2, world)];
  t.after(() => [alice, bob].forEach((person) => person.close()));
  const lists = new Announcer();
  await lists.rotation(1, 'fresh', [alice]);
  await alice.keys.start();
  const frames = [];
  for (const epoch of [2, 3]) {
    const event = await lists.rotation(epoch, 'fresh', [alice, bob]);
    await Promise.all([bob.keys.rotate(event), alice.keys.rotate({ ...event, deliver: [bob.withKeys()] })]);
    await until(() => alice.requests.some(({ path, body }) => path === 'keys' && body.epoch === epoch));
    await bob.keys.envelope(alice.sent()[0]);
    for (const person of [alice, bob]) await person.keys.switchTo({ epoch });
    frames.push(await bob.frames.seal(1, new Uint8Array(20), 0), await bob.frames.seal(1, new Uint8Array(20), 0));
  }
  assert.deepEqual([await alice.hears(frames[0]), await alice.hears(frames[2])], [true, true]);
  const { user, device, fingerprint } = bob.entry();
  revokes.push({ ...(await makeStatement('revoke', bob.identity, { device, fingerprint }, Date.now())), user, by: device, byFingerprint: fingerprint });
  await directory.devicesOf(['bob']);
  await alice.keys.reconsider();
  assert.deepEqual([await alice.hears(frames[1]), await alice.hears(frames[3])], [false, false]);
});

test('while silent, nothing is sealed under any key', async () => {
  const keys = new FrameKeys();
  keys.identify({ call: 'c', participant: 1, fingerprint: new Uint8Array(32), joinId: new Uint8Array(16) });
  const secret = await crypto.subtle.importKey('raw', new Uint8Array(32), 'HKDF', false, ['deriveBits']);
  keys.install({ epoch: 1, listHash: new Uint8Array(32), secret, senders: [] });
  keys.switchTo(1);
  keys.isSilent = true;
  assert.equal(await keys.seal(1, new Uint8Array(20), 0), undefined);
  assert.equal(await keys.sealMessage(new Uint8Array(20)), undefined);
  keys.isSilent = false;
  assert.notEqual(await keys.seal(1, new Uint8Array(20), 0), undefined);
});

test('a new device of a known person is reported, a stranger’s devices are not', async () => {
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

test('a new device of one’s own is reported', async () => {
  const world = [];
  const other = await Person.make('alice', 2, world, { device: 'phone' });
  const [{ isNew }] = await directoryFor('alice', new MemoryStore(), world).examine([other.entry()]);
  assert.equal(isNew, true);
});

test('a key is verified, not a name: a changed key is not', async () => {
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

test('when two keys of a device are looked up at once, only one counts as its first', async () => {
  const [one, other] = await Promise.all([1, 2].map(() => Identity.open(new MemoryStore(), 'bob', 'd')));
  const entry = ({ keys, fingerprint }) => ({ user: 'bob', device: 'd', keys, fingerprint: toBase64(fingerprint), participant: 2 });
  const directory = new Directory({ store: new MemoryStore(), owner: 'alice', fetchDevices: async () => ({ devices: [] }) });
  const looked = await Promise.all([one, other].map(async (identity) => (await directory.examine([entry(identity)]))[0]));
  assert.deepEqual(looked.map(({ problem, keys }) => [problem, Boolean(keys)]), [[undefined, true], ['changed-key', false]]);
  const again = await directory.examine([entry(one), entry(other)]);
  assert.deepEqual(again.map(({ problem }) => problem), [undefined, 'changed-key']);
});

test('a revocation that arrives while statements are judged is remembered, and the earlier judgement does not undo it', async () => {
  const [laptop, phone] = await Promise.all(['laptop', 'phone'].map((device) => Identity.open(new MemoryStore(), 'bob', device)));
  const of = ({ user, device, keys, fingerprint }) => ({ user, device, keys, fingerprint: toBase64(fingerprint), participant: 2, vouches: [] });
  const store = new MemoryStore();
  let revokes = [];
  const directory = new Directory({ store, owner: 'alice', fetchDevices: async () => ({ devices: [of(laptop), of(phone)], revokes }) });
  await directory.devicesOf(['bob']);
  await directory.verify([of(laptop)]);
  const { device: _, ...statement } = await makeStatement('revoke', laptop, { device: 'phone', fingerprint: of(phone).fingerprint }, Date.now());
  // One write is slow: the judgement without the revocation is still being written when the revocation arrives.
  const { put } = store;
  let write;
  store.put = (table, name, value) => {
    if (table !== 'statements') return put.call(store, table, name, value);
    store.put = put;
    return new Promise((resolve) => (write = () => resolve(put.call(store, table, name, value))));
  };
  const before = directory.devicesOf(['bob']);
  await until(() => write);
  revokes = [{ user: 'bob', device: 'phone', by: 'laptop', byFingerprint: of(laptop).fingerprint, ...statement }];
  const after = directory.devicesOf(['bob']);
  await aside(20);
  write();
  await before;
  const phoneIn = (devices) => devices.find(({ entry }) => entry.device === 'phone');
  assert.equal(phoneIn(await after).level, 'revoked');
  // The server hides it from now on, but it stays in effect.
  revokes = [];
  assert.equal(phoneIn(await directory.devicesOf(['bob'])).level, 'revoked');
});

test('a new device accepts its user’s older devices as known, and reports those that come later', async (t) => {
  const world = [];
  const laptop = await Person.make('alice', 1, world, { device: 'laptop' });
  const directory = new Directory({
    store: new MemoryStore(),
    owner: 'alice',
    own: { device: 'phone', fingerprint: '', keys: [] },
    fetchDevices: async () => ({ devices: world.map((other) => other.asDevice()), revokes: [] }),
  });
  directory.acquaint();
  assert.deepEqual((await directory.examine([laptop.entry()])).map(({ isNew, level }) => [isNew, level]), [[false, 'known']]);
  const tablet = await Person.make('alice', 2, world, { device: 'tablet' });
  t.after(() => [laptop, tablet].forEach((person) => person.close()));
  await directory.acquaint();
  assert.deepEqual((await directory.examine([tablet.entry()])).map(({ isNew, isOfVerified }) => [isNew, isOfVerified]), [[true, true]], 'this device is verified by being here');
});

test('a new device causes a warning unless a verified device vouches for it', async (t) => {
  const world = [];
  const [laptop, phone, tablet] = [await Person.make('bob', 1, world, { device: 'laptop' }), await Person.make('bob', 2, world, { device: 'phone' }), await Person.make('bob', 3, world, { device: 'tablet' })];
  t.after(() => [laptop, phone, tablet].forEach((person) => person.close()));
  const entry = phone.entry();
  const { device: _, ...statement } = await makeStatement('vouch', laptop.identity, { device: 'phone', fingerprint: entry.fingerprint }, Date.now());
  const vouch = { user: 'bob', device: 'phone', by: 'laptop', byFingerprint: laptop.entry().fingerprint, ...statement };
  const devices = () => world.map((other) => (other === phone ? { ...other.asDevice(), vouches: [vouch] } : other.asDevice()));
  const directory = new Directory({ store: new MemoryStore(), owner: 'alice', own: { device: 'phone', fingerprint: '', keys: [] }, fetchDevices: async () => ({ devices: devices(), revokes: [] }) });
  await directory.examine([laptop.entry()]);
  await directory.verify([laptop.entry()]);
  const found = await directory.devicesOf(['bob']);
  const newsOf = (name) => found.filter((one) => one.entry.device === name).map(({ isNew, isOfVerified }) => [isNew, isOfVerified])[0];
  assert.deepEqual([newsOf('phone'), newsOf('tablet')], [[true, false], [true, true]]);
});

test('if looking up older devices fails, it is repeated on the next connection', async () => {
  let failures = 1;
  let asked = 0;
  const fetchDevices = async () => {
    asked += 1;
    if (failures-- > 0) throw new Error('connection-lost');
    return { devices: [], revokes: [] };
  };
  const directory = new Directory({ store: new MemoryStore(), owner: 'alice', own: { device: 'd', fingerprint: '', keys: [] }, fetchDevices });
  await directory.acquaint();
  await directory.acquaint();
  await directory.acquaint();
  assert.equal(asked, 2);
});
