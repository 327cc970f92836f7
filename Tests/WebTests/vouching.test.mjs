import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { load } from './web.mjs';

const { fromBase64, toBase64 } = await load('wire/bytes.js');
const { Directory } = await load('trust/directory.js');
const { Identity, isSignedBy } = await load('trust/identity.js');
const { MemoryStore } = await load('devices/store.js');
const { judge, makeStatement, statementBytes } = await load('trust/vouching.js');

const vectors = JSON.parse(readFileSync(new URL('../Vectors/keys.json', import.meta.url), 'utf8'));
const NOW = 1_800_000_000_000;
const DAY_MS = 86_400_000;

/** A device of `user` and what is known about it. */
async function deviceOf(user, device) {
  const identity = await Identity.open(new MemoryStore(), user, device);
  return { user, device, identity, keys: identity.keys, fingerprint: toBase64(identity.fingerprint) };
}

/** A statement of `by` about `about`, as `devices/list` has it. */
async function statement(kind, by, about, { at = NOW, user = by.user } = {}) {
  const made = await makeStatement(kind, by.identity, about, at);
  return { ...made, user, by: by.device, byFingerprint: by.fingerprint };
}

const pin = (device, isVerified = false) => ({ device: device.device, fingerprint: device.fingerprint, keys: device.keys, isVerified });

/** Bob's laptop, which the viewer has verified, and his phone and tablet, which it only knows. */
async function bobs() {
  const [laptop, phone, tablet] = await Promise.all(['laptop', 'phone', 'tablet'].map((device) => deviceOf('bob', device)));
  const levels = async ({ verified = [laptop], listed = [laptop, phone, tablet], ...statements }) => {
    const pins = [laptop, phone, tablet].map((device) => pin(device, verified.includes(device)));
    const judged = await judge({ user: 'bob', pins, listed, now: NOW, ...statements });
    return { ...judged, of: (device) => judged.levels.get(device.fingerprint) };
  };
  return { laptop, phone, tablet, levels };
}

for (const kind of ['vouch', 'revoke']) {
  test(`the bytes and the signature of a ${kind} are those of the shared vectors`, async () => {
    const { user, byFingerprint, fingerprint, at, bytes, sigAlg, signature, signKey, flipped } = vectors[kind];
    const data = statementBytes(kind, { user, by: fromBase64(byFingerprint), about: fromBase64(fingerprint), at });
    assert.equal(toBase64(data), bytes);
    const keys = [{ use: 'sign', alg: sigAlg, publicKey: signKey }];
    assert.equal(await isSignedBy(keys, sigAlg, fromBase64(signature), data), true);
    assert.equal(await isSignedBy(keys, sigAlg, fromBase64(flipped.signature), data), false);
    assert.equal(await isSignedBy(keys, sigAlg, fromBase64(signature), fromBase64(flipped.bytes)), false);
    const other = statementBytes(kind, { user, by: fromBase64(byFingerprint), about: fromBase64(flipped.fingerprint), at });
    assert.equal(await isSignedBy(keys, sigAlg, fromBase64(signature), other), false);
  });
}

test('the shared vector of a vouch is valid, and none of its copies with a flipped bit is', async () => {
  const { user, by, byFingerprint, device, fingerprint, at, sigAlg, signature, signKey, flipped } = vectors.vouch;
  const voucher = { device: by, fingerprint: byFingerprint, keys: [{ use: 'sign', alg: sigAlg, publicKey: signKey }], isVerified: true };
  const level = async (change, about = fingerprint) => {
    const pins = [voucher, { device, fingerprint: about, keys: [], isVerified: false }];
    const vouch = { device, fingerprint: about, by, byFingerprint, at, sigAlg, signature, ...change };
    const { levels } = await judge({ user, pins, listed: [voucher], vouches: [vouch], now: NOW });
    return levels.get(about);
  };
  assert.equal(await level({}), 'vouched');
  assert.equal(await level({ signature: flipped.signature }), 'known');
  assert.equal(await level({}, flipped.fingerprint), 'known');
  assert.equal(await level({ at: at + 1 }), 'known');
});

test('a device for which a verified one vouches is vouched, another one only known', async () => {
  const { laptop, phone, tablet, levels } = await bobs();
  const { of } = await levels({ vouches: [await statement('vouch', laptop, phone)] });
  assert.deepEqual([laptop, phone, tablet].map(of), ['verified', 'vouched', 'known']);
});

test('a vouch by a device that is unknown, only known, only vouched, removed or revoked does not count', async () => {
  const { laptop, phone, tablet, levels } = await bobs();
  const stranger = await deviceOf('bob', 'stranger');
  const byLaptop = await statement('vouch', laptop, phone);
  const unknown = await levels({ vouches: [await statement('vouch', stranger, phone)] });
  assert.equal(unknown.of(phone), 'known');
  const known = await levels({ verified: [], vouches: [byLaptop] });
  assert.equal(known.of(phone), 'known');
  const vouched = await levels({ vouches: [byLaptop, await statement('vouch', phone, tablet)] });
  assert.deepEqual([vouched.of(phone), vouched.of(tablet)], ['vouched', 'known']);
  const removed = await levels({ vouches: [byLaptop], listed: [phone, tablet] });
  assert.equal(removed.of(phone), 'known');
  const revoked = await levels({ vouches: [byLaptop], revokes: [await statement('revoke', laptop, laptop)] });
  assert.deepEqual([revoked.of(laptop), revoked.of(phone)], ['revoked', 'known']);
});

test('a vouch by another user’s device does not count, whatever name it uses', async () => {
  const { laptop, phone, levels } = await bobs();
  const mallory = await deviceOf('mallory', 'laptop');
  const honest = await statement('vouch', mallory, phone);
  for (const vouch of [honest, { ...honest, by: laptop.device, byFingerprint: laptop.fingerprint }, { ...honest, byFingerprint: laptop.fingerprint }]) {
    assert.equal((await levels({ vouches: [vouch] })).of(phone), 'known');
  }
  // Bob's own signature, but over another user's name.
  const data = statementBytes('vouch', { user: 'alice', by: laptop.identity.fingerprint, about: phone.identity.fingerprint, at: NOW });
  const { sigAlg, signature } = await laptop.identity.sign(data);
  const foreign = { ...(await statement('vouch', laptop, phone)), sigAlg, signature: toBase64(signature) };
  assert.equal((await levels({ vouches: [foreign] })).of(phone), 'known');
});

test('a vouch is not a revocation, and a revocation is not a vouch', async () => {
  const { laptop, phone, levels } = await bobs();
  const swapped = await levels({ vouches: [await statement('revoke', laptop, phone)], revokes: [await statement('vouch', laptop, phone)] });
  assert.equal(swapped.of(phone), 'known');
});

test('a vouch for a device’s former key does not apply to its new one', async () => {
  const { laptop, phone, tablet, levels } = await bobs();
  const before = await deviceOf('bob', 'phone');
  const old = await statement('vouch', laptop, before);
  assert.equal((await levels({ vouches: [old, { ...old, fingerprint: phone.fingerprint }] })).of(phone), 'known');
  assert.equal((await levels({ vouches: [{ ...(await statement('vouch', laptop, phone)), device: 'tablet', fingerprint: tablet.fingerprint }] })).of(tablet), 'known');
});

test('a statement from more than a day in the future, or with an invalid time, is ignored', async () => {
  const { laptop, phone, levels } = await bobs();
  const at = async (time) => (await levels({ vouches: [await statement('vouch', laptop, phone, { at: time })] })).of(phone);
  assert.equal(await at(NOW + DAY_MS), 'vouched');
  assert.equal(await at(NOW + DAY_MS + 1), 'known');
  for (const time of ['1', 1.5, -1, null, 2 ** 53, undefined]) {
    const vouch = { ...(await statement('vouch', laptop, phone)), at: time };
    assert.equal((await levels({ vouches: [vouch] })).of(phone), 'known', String(time));
  }
  const revokes = [await statement('revoke', laptop, phone, { at: NOW + DAY_MS + 1 })];
  assert.equal((await levels({ revokes })).of(phone), 'known');
});

test('only a revocation by a verified device or by the device itself counts', async () => {
  const { laptop, phone, tablet, levels } = await bobs();
  const vouches = [await statement('vouch', laptop, phone)];
  const of = async (by, about = phone) => (await levels({ vouches, revokes: [await statement('revoke', by, about)] })).of(about);
  assert.equal(await of(laptop), 'revoked');
  assert.equal(await of(phone), 'revoked');
  assert.equal(await of(tablet), 'vouched');
  const mallory = await deviceOf('mallory', 'laptop');
  const foreign = { ...(await statement('revoke', mallory, phone)), user: 'bob', by: laptop.device, byFingerprint: laptop.fingerprint };
  assert.equal((await levels({ vouches, revokes: [foreign] })).of(phone), 'vouched');
});

test('a revocation that was seen once stays in effect, even if the server hides it and the person verifies that key', async () => {
  const { laptop, phone, levels } = await bobs();
  const { remembered } = await levels({ revokes: [await statement('revoke', laptop, phone)] });
  const later = await levels({ remembered, verified: [laptop, phone], vouches: [await statement('vouch', laptop, phone)] });
  assert.equal(later.of(phone), 'revoked');
  const kept = JSON.parse(JSON.stringify(later.remembered));
  assert.equal((await levels({ remembered: kept, verified: [] })).of(phone), 'revoked');
});

test('a revocation by a device that is verified later counts from then on, even if it is hidden by then', async () => {
  const { laptop, phone, levels } = await bobs();
  const first = await levels({ verified: [], revokes: [await statement('revoke', laptop, phone)] });
  assert.equal(first.of(phone), 'known');
  assert.equal((await levels({ remembered: first.remembered })).of(phone), 'revoked');
});

test('a stolen vouched device that revokes the verified one changes nothing, and the devices disagree', async () => {
  const { laptop, phone, levels } = await bobs();
  const vouches = [await statement('vouch', laptop, phone)];
  const judged = await levels({ vouches, revokes: [await statement('revoke', phone, laptop)] });
  assert.deepEqual([judged.of(laptop), judged.of(phone)], ['verified', 'vouched']);
  assert.deepEqual(judged.disagreements.map(({ device, by }) => [device, by]), [['laptop', 'phone']]);
  const quiet = await levels({ vouches });
  assert.deepEqual(quiet.disagreements, []);
});

test('a revoked device can no longer revoke others', async () => {
  const { laptop, phone, levels } = await bobs();
  const both = [laptop, phone];
  const { remembered } = await levels({ verified: both, revokes: [await statement('revoke', laptop, phone)] });
  const later = await levels({ verified: both, remembered, revokes: [await statement('revoke', phone, laptop)] });
  assert.deepEqual([later.of(laptop), later.of(phone)], ['verified', 'revoked']);
});

test('when a voucher loses its level its devices become known, unless there is another voucher', async () => {
  const { laptop, phone, tablet, levels } = await bobs();
  const both = [laptop, tablet];
  const one = [await statement('vouch', laptop, phone)];
  const two = [...one, await statement('vouch', tablet, phone)];
  const revokes = [await statement('revoke', laptop, laptop)];
  const before = await levels({ verified: both, vouches: two });
  assert.equal((await levels({ verified: both, vouches: two, revokes, remembered: before.remembered })).of(phone), 'vouched');
  const after = await levels({ verified: both, vouches: one, revokes, remembered: before.remembered });
  assert.equal(after.of(phone), 'known');
  assert.deepEqual(after.fallen.map(({ device }) => device), ['phone']);
  assert.deepEqual((await levels({ vouches: [], remembered: after.remembered })).fallen, [], 'told once');
});

test('at most eight vouches of a device are considered', async () => {
  const { laptop, phone, levels } = await bobs();
  const good = await statement('vouch', laptop, phone);
  const bad = { ...good, by: 'tablet' };
  assert.equal((await levels({ vouches: [...Array(7).fill(bad), good] })).of(phone), 'vouched');
  assert.equal((await levels({ vouches: [...Array(8).fill(bad), good] })).of(phone), 'known');
});

// The directory

/** Alice's directory over a server whose answers a test can change. */
function directory({ owner = 'alice', own, store = new MemoryStore(), devices, revokes = [] }) {
  const server = { devices, revokes, asked: 0 };
  const made = new Directory({
    store,
    owner,
    own,
    fetchDevices: async (users) => {
      server.asked += 1;
      if (server.error) throw server.error;
      const wire = server.devices.filter(({ user }) => users.includes(user));
      return { devices: wire.map(({ identity, ...rest }) => rest), revokes: server.revokes };
    },
  });
  made.warnings = [];
  made.addEventListener('warning', ({ detail }) => made.warnings.push(detail));
  return { directory: made, server };
}

const entryOf = ({ user, device, fingerprint }) => ({ user, device, fingerprint, participant: 1 });
const levelsIn = (examined) => examined.map(({ level, problem }) => [level, problem]);

async function withLaptopVerified({ devices, ...more }) {
  const made = directory({ devices, ...more });
  await made.directory.examine(devices.map(entryOf));
  await made.directory.verify([devices[0]]);
  return made;
}

test('with “verified only” a vouched device gets keys and one that is only known does not', async () => {
  const { laptop, phone, tablet } = await bobs();
  phone.vouches = [await statement('vouch', laptop, phone, { at: Date.now() })];
  const { directory: alices } = await withLaptopVerified({ devices: [laptop, phone, tablet] });
  alices.verifiedOnly = true;
  const examined = await alices.examine([laptop, phone, tablet].map(entryOf));
  assert.deepEqual(levelsIn(examined), [['verified', undefined], ['vouched', undefined], ['known', 'unverified']]);
});

test('this device’s own statements count without verification', async () => {
  const [laptop, phone] = [await deviceOf('alice', 'laptop'), await deviceOf('alice', 'phone')];
  phone.vouches = [await statement('vouch', laptop, phone, { at: Date.now() })];
  const { directory: alices } = directory({ own: laptop, devices: [laptop, phone] });
  alices.verifiedOnly = true;
  assert.deepEqual(levelsIn(await alices.examine([entryOf(phone)])), [['vouched', undefined]]);
});

test('a look-up that fails leaves a vouched device untrusted, and the next one asks again', async () => {
  const { laptop, phone } = await bobs();
  phone.vouches = [await statement('vouch', laptop, phone, { at: Date.now() })];
  const store = new MemoryStore();
  await withLaptopVerified({ devices: [laptop, phone], store });
  const { directory: later, server } = directory({ devices: [laptop, phone], store });
  later.verifiedOnly = true;
  server.error = new Error('away');
  assert.deepEqual(levelsIn(await later.examine([entryOf(phone)])), [['known', 'unverified']]);
  const stranger = await deviceOf('carol', 'phone');
  assert.deepEqual(levelsIn(await later.examine([entryOf(stranger)])), [['new', 'unknown-keys']]);
  server.error = undefined;
  assert.deepEqual(levelsIn(await later.examine([entryOf(phone)])), [['vouched', undefined]]);
});

test('answers that are not lists of devices trust nobody and do no harm', async () => {
  const { laptop, phone } = await bobs();
  for (const reply of [{}, { devices: null }, { devices: [null, 1, { user: 'bob' }], revokes: [null] }, { devices: [{ ...laptop, vouches: [null, {}] }], revokes: 'x' }]) {
    const alices = new Directory({ store: new MemoryStore(), owner: 'alice', fetchDevices: async () => reply });
    alices.verifiedOnly = true;
    const [examined] = await alices.examine([entryOf(phone)]);
    assert.equal(examined.problem, 'unknown-keys', JSON.stringify(reply));
  }
});

test('a revocation denies a device keys, causes one warning, and outlives the page', async () => {
  const { laptop, phone } = await bobs();
  const store = new MemoryStore();
  const { directory: alices, server } = await withLaptopVerified({ devices: [laptop, phone], store });
  server.revokes = [await statement('revoke', laptop, phone, { at: Date.now() })];
  await alices.devicesOf(['bob']);
  await alices.devicesOf(['bob']);
  assert.deepEqual(alices.warnings.map(({ problem, device }) => [problem, device]), [['revoked', 'phone']]);
  const [examined] = await alices.examine([entryOf(phone)]);
  assert.deepEqual([examined.keys, examined.problem], [undefined, 'revoked']);
  const { directory: later } = directory({ devices: [laptop, phone], store });
  assert.deepEqual(levelsIn(await later.examine([entryOf(phone)])), [['revoked', 'revoked']]);
  await later.verify([phone]);
  assert.equal((await later.examine([entryOf(phone)]))[0].problem, 'revoked', 'verifying does not bring it back');
});

test('statements are requested in the background, and their changes are reported', async () => {
  const { laptop, phone } = await bobs();
  const store = new MemoryStore();
  const { directory: alices } = await withLaptopVerified({ devices: [laptop, phone], store });
  assert.equal((await alices.examine([entryOf(phone)]))[0].level, 'known');
  const listed = [laptop, { ...phone, vouches: [await statement('vouch', laptop, phone, { at: Date.now() })] }];
  const { directory: later } = directory({ devices: listed, store });
  const changed = new Promise((resolve) => later.addEventListener('change', resolve));
  assert.equal((await later.examine([entryOf(phone)]))[0].level, 'known');
  await changed;
  assert.equal((await later.examine([entryOf(phone)]))[0].level, 'vouched');
});

test('after a new connection the statements are requested once more', async () => {
  const { laptop, phone } = await bobs();
  const { directory: alices, server } = await withLaptopVerified({ devices: [laptop, phone] });
  await alices.examine([entryOf(laptop)]);
  const { asked } = server;
  alices.connected();
  server.revokes = [await statement('revoke', laptop, phone, { at: Date.now() })];
  const changed = new Promise((resolve) => alices.addEventListener('change', resolve));
  await alices.examine([entryOf(laptop)]);
  await changed;
  await alices.examine([entryOf(laptop)]);
  assert.equal(server.asked, asked + 1);
});

test('trusting a changed key accepts the shown key, and no newer one', async () => {
  const [first, shown, newer] = await Promise.all(Array.from({ length: 3 }, () => deviceOf('bob', 'phone')));
  const { directory: alices, server } = directory({ devices: [first] });
  await alices.examine([entryOf(first)]);
  for (const changed of [shown, newer]) {
    server.devices = [changed];
    assert.equal((await alices.examine([entryOf(changed)]))[0].problem, 'changed-key');
  }
  assert.equal(await alices.trust('bob', 'phone', 'A'.repeat(43) + '='), false, 'a key that was never offered');
  assert.equal(await alices.trust('bob', 'phone', shown.fingerprint), true);
  assert.equal((await alices.examine([entryOf(shown)]))[0].level, 'known');
  assert.equal((await alices.examine([entryOf(newer)]))[0].problem, 'changed-key');
});

test('verifying applies to the shown keys: a key that has changed meanwhile is not verified', async () => {
  const [shown, newer] = [await deviceOf('bob', 'phone'), await deviceOf('bob', 'phone')];
  const { directory: alices, server } = directory({ devices: [shown] });
  await alices.examine([entryOf(shown)]);
  assert.deepEqual(await alices.verify([{ ...newer }]), []);
  assert.equal((await alices.verify([shown])).length, 1);
  server.devices = [newer];
  assert.deepEqual(levelsIn(await alices.examine([entryOf(newer)])), [['new', 'changed-key']]);
});
