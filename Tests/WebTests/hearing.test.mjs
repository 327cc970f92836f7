// People see correctly who can hear, whatever the server does (protocol section 5.12).

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { page } from './fake-page.mjs';
import { Announcer, Person } from './person.mjs';
import { load, loadPage, until } from './web.mjs';

page();
const { toBase64, utf8 } = await load('wire/bytes.js');
const { rosterOf, stopOf } = await load('keys/call-trust.js');
const { Directory } = await load('trust/directory.js');
const { Members } = await load('call/members.js');
const { RosterWatch, exactName } = await load('keys/roster-watch.js');
const { MemoryStore } = await load('devices/store.js');
const { tilesOf } = await load('call/tiles.js');
const { tagOf } = await load('wire/transcript.js');
const { makeStatement } = await load('trust/vouching.js');
const { wordsForStop } = await loadPage('notices.js');

console.warn = () => {};

/** Alice distrusts Bob's phone, which was stolen. Carol does not know that; she leads the epoch and gives the phone its key. `distrust(scene)` makes Alice's directory distrust it. */
async function distrusting(distrust, { verified = false } = {}) {
  const world = [];
  const store = new MemoryStore();
  const told = { revokes: [] };
  const listed = () => world.map((each) => each.asDevice());
  const directory = new Directory({ store, owner: 'alice', fetchDevices: async () => ({ devices: listed(), revokes: told.revokes }) });
  const thief = await Person.make('bob', 3, world, { device: 'phone' });
  await distrust({ world, thief, directory, told });
  const alice = await Person.make('alice', 1, world, { store, directory });
  const carol = await Person.make('carol', 2, world);
  const lists = new Announcer();
  await lists.rotation(1, 'fresh', [alice]);
  await alice.keys.start();
  const event = await lists.rotation(2, 'fresh', [alice, carol, thief], { leader: 2 });
  await alice.keys.rotate(event);
  await carol.keys.rotate({ ...event, deliver: [alice.withKeys(), thief.withKeys()] });
  await thief.keys.rotate(event);
  for (const person of [alice, thief]) await person.keys.envelope(carol.sent().find(({ to }) => to.user === person.identity.user));
  for (const person of [alice, carol, thief]) await person.keys.switchTo({ epoch: 2 });
  await until(() => alice.keys.record(2).isLookedUp(thief.entry()) && thief.keys.hasKey);
  const close = () => [alice, carol, thief].forEach((person) => person.close());
  return { alice, thief, carol, directory, close, verified };
}

/** The statement of `by` about `about`, as the server lists it. */
async function revocation(by, about) {
  const fingerprint = toBase64(about.identity.fingerprint);
  const statement = await makeStatement('revoke', by.identity, { device: about.identity.device, fingerprint }, Date.now());
  return { ...statement, user: 'bob', by: by.identity.device, byFingerprint: toBase64(by.identity.fingerprint) };
}

const ways = {
  'has revoked itself': async ({ thief, directory, told }) => {
    await directory.examine([thief.entry()]);
    told.revokes = [await revocation(thief, thief)];
    await directory.devicesOf(['bob']);
    told.revokes = []; // hidden by the server later
  },
  'was revoked by a device that Alice has verified': async ({ world, thief, directory, told }) => {
    const laptop = await Person.make('bob', 9, world, { device: 'laptop' });
    await directory.examine([laptop.entry()]);
    await directory.verify([laptop.entry()]);
    await directory.examine([thief.entry()]);
    told.revokes = [await revocation(laptop, thief)];
    await directory.devicesOf(['bob']);
    laptop.close();
  },
  'has another key than the one that Alice knows': async ({ directory }) => {
    const real = await Person.make('bob', 3, [], { device: 'phone' });
    await directory.examine([{ ...real.entry(), keys: real.identity.keys }]);
    real.close();
  },
};

for (const [name, distrust] of Object.entries(ways)) {
  test(`while a device is listed that ${name}, and another member gave it the key, nothing is sent until the person decides`, async () => {
    const { alice, thief, close } = await distrusting(distrust);
    const cause = name.includes('key') ? 'changed-key' : 'revoked';
    assert.equal(await alice.frames.seal(1, utf8('Alice speaks'), 0), undefined);
    assert.ok(alice.problems.includes(cause));
    const stop = stopOf(undefined, alice.keys, false);
    assert.deepEqual([stop.cause, stop.needsPerson, stop.devices.map(({ device }) => device)], [cause, true, ['phone']]);
    const words = wordsForStop(stop, 'Bob (phone)');
    assert.match(words, name.includes('itself') ? /Signed out for good/ : cause === 'revoked' ? /Removed for good/ : /in another way than before/);
    // Once it has confirmed the key, Alice's client shows that it can hear.
    const tag = await tagOf(thief.keys.record(2).confirmationKey, thief.entry());
    const { list } = alice.keys.record(2);
    const who = new Uint8Array(8);
    new DataView(who.buffer).setBigUint64(0, 1n << BigInt(63 - list.findIndex(({ user }) => user === 'bob')));
    alice.keys.confirmed({ epoch: 2, buckets: [{ index: 0, who: toBase64(who), tag: toBase64(tag) }] });
    const phoneOf = () => alice.keys.devices.find(({ user }) => user === 'bob');
    await until(() => phoneOf().isConfirmed);
    const phone = phoneOf();
    const call = { participant: 1, numberOwner: () => undefined, recordedOf: () => undefined, members: membersOf(list), local: () => ({}), hasKey: true, confirmation: { state: 'confirmed', missing: [] }, roster: alice.keys.devices.map((device) => ({ ...device, state: 'member' })) };
    assert.equal(tilesOf(call, noVideo).find(({ member }) => member.user === 'bob').doubt, 'untrusted-hears');
    // The person continues, with exactly this device.
    alice.keys.allowed = new Set([exactName({ ...phone, joinId: 'another' })]);
    assert.equal(await alice.frames.seal(1, utf8('Alice speaks'), 0), undefined, 'only another join was allowed');
    alice.keys.allowed = new Set([exactName(phone)]);
    assert.ok(await thief.hears(await alice.frames.seal(1, utf8('Alice speaks'), 0)));
    assert.equal(stopOf(undefined, alice.keys, false), undefined);
    close();
  });
}

test('trusting a changed key ends the stop', async () => {
  const { alice, thief, directory, close } = await distrusting(ways['has another key than the one that Alice knows']);
  assert.equal(alice.keys.silence, 'changed-key');
  assert.ok(await directory.trust('bob', 'phone', toBase64(thief.identity.fingerprint)));
  await alice.keys.reconsider();
  assert.equal(alice.keys.silence, undefined);
  close();
});

const noVideo = { videoOf: () => undefined, pictureOf: () => undefined };
const membersOf = (list) => new Members(list.map(({ user, device, participant }) => ({ user, name: user, state: 'joined', participants: [{ participant, device, tracks: [], connected: true }] })));

test('a state that gives a listed number to another device does not mark the listed device as unable to hear', () => {
  const device = (user, id, participant) => ({ user, device: id, participant, fingerprint: `f-${user}` });
  const list = [device('alice', 'd', 1), device('bob', 'd', 2), device('eve', 'x', 9)];
  const members = membersOf([...list.slice(0, 2), device('eve', 'other', 9)]);
  const watch = new RosterWatch();
  watch.update(0, { isConnected: true, isAsking: false, participant: 1, epoch: 2, list, members: [...members.values()], rotateMinutes: 10 });
  const call = { members, participant: 1, numberOwner: () => undefined, recordedOf: () => undefined, local: () => ({ isOn: true }), hasKey: true, roster: rosterOf(watch.people, list), confirmation: { state: 'confirmed', missing: [] } };
  const ofEve = tilesOf(call, noVideo).filter(({ member }) => member.user === 'eve');
  assert.deepEqual(ofEve.map(({ device: id, doubt }) => [id, doubt]), [['x', 'stranger']]);
});

test('a listed device that has not been compared yet is shown as a stranger', () => {
  const zed = { user: 'zed', device: 'd', participant: 3, fingerprint: 'z', joinId: 'j' };
  assert.deepEqual(rosterOf([], [zed]).map(({ state }) => state), ['stranger']);
  const looked = [{ ...zed, fingerprint: 'another', listed: true }];
  assert.deepEqual(rosterOf(looked, [zed]).map(({ state }) => state), ['stranger'], 'another key was compared');
});
