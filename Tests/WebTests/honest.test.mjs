// An honest server under bad conditions: none of them may stop a client, make it refuse something, or break its history (keys-v2, section 4).

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { load } from './web.mjs';
import { inWorld } from './world/world.mjs';

const { Identity } = await load('trust/identity.js');
const { JoinKeys } = await load('keys/join-keys.js');
const { MemoryStore } = await load('devices/store.js');
const { toBase64 } = await load('wire/bytes.js');

console.warn = process.env.LOUD ? console.log : () => {};

/** Runs in the world and watches for false alarms: which client was stopped, and why. */
function honest(name, users, action, { alarms = [] } = {}) {
  test(name, async () => {
    await inWorld(users, async (world, ...clients) => {
      await action(world, ...clients);
      for (const client of world.clients) {
        assert.deepEqual(client.alarms.filter((problem) => !alarms.includes(problem)), [], client.name);
        assert.equal(client.call?.stop, undefined, client.name);
      }
    });
  });
}

honest('a call continues through a join, a leave and a rotation', ['alice', 'bob', 'carol', 'dave'], async (world, alice, bob, carol, dave) => {
  const call = await world.call(alice, bob, carol);
  call.missed('dave');
  dave.join(call.id);
  await world.until(() => call.epoch === 3 && dave.call?.confirmation.state === 'confirmed');
  assert.equal(call.newest.mode, 'ratchet');
  await world.assertAllHear(undefined, 'after the join');
  bob.call.leave();
  await world.until(() => call.epoch === 4 && dave.call.confirmation.state === 'confirmed');
  assert.equal(call.newest.mode, 'fresh');
  await world.assertAllHear([alice, carol, dave], 'after the leave');
  await world.run(600_000);
  assert.equal(call.epoch, 5);
  await world.assertAllHear([alice, carol, dave], 'after the rotation');
});

honest('the server dies between announcement and switch', ['alice', 'bob', 'carol'], async (world, alice, bob, carol) => {
  const call = await world.call(alice, bob);
  call.missed('carol');
  let isDead = false;
  world.server.lie.event = (to, name, body) => {
    if (name !== 'keys.rotate' || isDead) return isDead ? undefined : body;
    if (to !== bob) return body;
    isDead = true;
    return undefined;
  };
  carol.join(call.id);
  await world.until(() => isDead);
  for (const client of world.clients) client.disconnect();
  for (const client of world.clients) client.forget();
  await world.run(2_000);
  world.server.lie = {};
  call.restarted();
  for (const client of world.clients) client.reconnect();
  await world.until(() => call.epoch >= 4 && world.clients.every((client) => client.call?.confirmation.state === 'confirmed'), 40_000);
  await world.assertAllHear(undefined, 'after the restart');
});

honest('the leader dies twice', ['alice', 'bob', 'carol', 'dave'], async (world, alice, bob, carol, dave) => {
  const call = await world.call(alice, bob, carol, dave);
  world.server.lie.reply = (to, path) => (path.endsWith('/keys') && to !== carol ? new Promise(() => {}) : undefined);
  const { keys } = world.server.lie;
  assert.equal(keys, undefined);
  const dead = [alice, bob];
  world.server.lie.event = (to, name, body) => (name === 'keys.rotate' && body.deliver && dead.includes(to) ? { ...body, deliver: undefined } : body);
  dave.call.leave();
  await world.until(() => call.epoch === 3, 30_000);
  world.server.lie = {};
  await world.run(3_000);
  await world.assertAllHear([alice, bob, carol], 'led by the third');
}, { alarms: ['unconfirmed', 'gone'] });

honest('200 devices join in 10 s', ['alice', 'bob', 'carol'], async (world, alice, bob, carol) => {
  const call = await world.call(alice, bob, carol);
  // Devices that join but run no client: they only have keys.
  for (let i = 0; i < 197; i += 1) {
    const identity = await Identity.open(new MemoryStore(), `u${i}`, 'd');
    const join = await JoinKeys.make(identity, call.id);
    const { user, device, keys, fingerprint } = identity;
    const silent = { user, device, identity, name: `${user}/d`, isConnected: true, queue() {}, asDevice: () => ({ user, device, keys, fingerprint: toBase64(fingerprint) }) };
    world.server.register(silent);
    call.missed(user);
    await call.answer(silent, 'join', join.wire);
    await world.run(50);
  }
  await world.until(() => call.newest.list.length === 200 && call.epoch === call.newest.epoch, 30_000);
  await world.run(3_000);
  assert.deepEqual([alice, bob, carol].map((client) => client.call.roster.length), [200, 200, 200]);
  await world.assertAllHear(undefined, 'in the crowd');
}, { alarms: ['unconfirmed'] });

honest('a device comes back within 100 ms of its leaving', ['alice', 'bob', 'carol'], async (world, alice, bob, carol) => {
  const call = await world.call(alice, bob, carol);
  for (let i = 0; i < 3; i += 1) {
    bob.call.rejoin();
    await world.run(i * 40 + 10);
  }
  await world.until(() => [alice, bob, carol].every((client) => client.call.confirmation.state === 'confirmed' && client.call.devices.length === 3), 30_000);
  bob.call.leave();
  await world.run(60);
  bob.join(call.id, 'rejoin');
  await world.until(() => call.newest.list.length === 3 && call.epoch === call.newest.epoch, 30_000);
  await world.run(3_000);
  await world.assertAllHear(undefined, 'back again');
});

honest('the call moves to another device', ['alice', 'bob'], async (world, alice, bob) => {
  const call = await world.call(alice, bob);
  const phone = await world.add('bob', { device: 'phone' });
  phone.join(call.id, 'transfer');
  await world.until(() => call.newest.list.some(({ device }) => device === 'phone') && call.epoch === call.newest.epoch && phone.call?.confirmation.state === 'confirmed', 30_000);
  await world.assertAllHear([alice, phone], 'on the phone');
});

honest('signaling is gone for 60 s while somebody leaves and another comes', ['alice', 'bob', 'carol', 'dave'], async (world, alice, bob, carol, dave) => {
  const call = await world.call(alice, bob, carol);
  call.missed('dave');
  bob.disconnect();
  await world.run(10_000);
  carol.call.leave();
  await world.run(10_000);
  dave.join(call.id);
  await world.run(40_000);
  bob.reconnect();
  await world.until(() => bob.call.epoch === call.epoch && call.epoch === call.newest.epoch && bob.call.confirmation.state === 'confirmed', 30_000);
  await world.assertAllHear([alice, bob, dave], 'after the gap');
}, { alarms: ['unconfirmed'] });

for (const queue of ['event', 'reply']) {
  honest(`${queue === 'event' ? 'events' : 'replies'} come 3 s late`, ['alice', 'bob', 'carol', 'dave'], async (world, alice, bob, carol, dave) => {
    const call = await world.call(alice, bob, carol);
    call.missed('dave');
    world.server.delays[queue] = 3_000;
    dave.join(call.id);
    await world.run(20_000);
    carol.call.leave();
    await world.run(30_000);
    world.server.delays[queue] = 20;
    await world.run(20_000);
    await world.assertAllHear([alice, bob, dave], 'after the delays');
  }, { alarms: ['unconfirmed', 'gone'] });
}

honest('clocks are an hour apart', ['alice', 'bob'], async (world, alice, bob) => {
  const { now } = Date;
  Date.now = () => now() + 3_600_000;
  alice.start(['bob']);
  await world.until(() => bob.rung.length > 0);
  Date.now = now;
  bob.accept();
  await world.until(() => bob.call?.confirmation.state === 'confirmed');
  await world.assertAllHear();
});

honest('a device sleeps through 50 epochs', ['alice', 'bob', 'carol'], async (world, alice, bob, carol) => {
  const call = await world.call(alice, bob, carol);
  bob.disconnect();
  for (let i = 0; i < 25; i += 1) {
    carol.call.rejoin();
    await world.run(1_500);
    alice.call.rejoin();
    await world.run(1_500);
  }
  assert.ok(call.epoch > 40, `epoch ${call.epoch}`);
  bob.forget();
  bob.reconnect();
  await world.until(() => bob.call.epoch === call.epoch && call.epoch === call.newest.epoch && bob.call.confirmation.state === 'confirmed', 30_000);
  await world.assertAllHear(undefined, 'awake');
}, { alarms: ['unconfirmed'] });
