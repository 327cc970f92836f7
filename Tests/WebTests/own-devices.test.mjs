import assert from 'node:assert/strict';
import { test } from 'node:test';
import { load } from './web.mjs';

const { toBase64 } = await load('wire/bytes.js');
const { Directory } = await load('trust/directory.js');
const { Identity } = await load('trust/identity.js');
const { OwnDevices } = await load('devices/own-devices.js');
const { deviceText } = await load('devices/pairing.js');
const { MemoryStore } = await load('devices/store.js');

/** A server for the devices of users, with what it lists, stores and forwards. `change(message)` may change what it forwards. */
class Server {
  devices = [];
  statements = { vouches: [], revokes: [] };
  change = (message) => message;

  list(users) {
    const listed = this.devices.filter(({ identity: { user } }) => users.includes(user));
    const devices = listed.map(({ identity: { user, device, keys, fingerprint }, isGone }) => ({
      user,
      device,
      keys,
      name: device,
      registeredAt: 1,
      fingerprint: toBase64(fingerprint),
      vouches: this.statements.vouches.filter((vouch) => vouch.user === user && vouch.device === device),
    }));
    return { devices, revokes: this.statements.revokes };
  }

  async take(sender, path, body) {
    const { user, device, fingerprint } = sender.identity;
    const signed = { user, by: device, byFingerprint: toBase64(fingerprint) };
    if (path === 'vouch') this.statements.vouches.push({ ...body, ...signed });
    if (path === 'remove') {
      this.statements.revokes.push({ device: body.device, ...body.revoke, ...signed });
      this.devices = this.devices.filter(({ identity }) => identity.user !== user || identity.device !== body.device);
    }
    if (path !== 'pair') return {};
    const to = this.devices.find(({ identity }) => identity.user === user && identity.device === body.to);
    if (!to) throw Object.assign(new Error('not there'), { code: 'device.not-found' });
    const message = this.change({ from: device, body: body.body });
    if (message) await to.own.take(message);
    return {};
  }
}

async function device(server, user, name) {
  const made = { store: new MemoryStore() };
  made.identity = await Identity.open(made.store, user, name);
  const own = { device: name, fingerprint: toBase64(made.identity.fingerprint), keys: made.identity.keys };
  made.directory = new Directory({ store: made.store, owner: user, own, fetchDevices: async (users) => server.list(users) });
  made.own = new OwnDevices({ identity: made.identity, directory: made.directory, request: (path, body) => server.take(made, path, body) });
  made.asked = [];
  made.own.addEventListener('asked', ({ detail }) => made.asked.push(detail));
  made.entry = { user, device: name, fingerprint: own.fingerprint, keys: made.identity.keys };
  server.devices.push(made);
  return made;
}

async function alices() {
  const server = new Server();
  const [laptop, phone] = [await device(server, 'alice', 'laptop'), await device(server, 'alice', 'phone')];
  return { server, laptop, phone };
}

test('all other devices are removed at once, and devices that trust this one no longer give them keys', async () => {
  const { server, laptop, phone } = await alices();
  const tablet = await device(server, 'alice', 'tablet');
  const bob = await device(server, 'bob', 'phone');
  await bob.directory.devicesOf(['alice']);
  await bob.directory.verify([laptop.entry]);
  // Somebody else removes the tablet at the same time.
  const { take } = server;
  server.take = async (sender, path, body) => {
    await take.call(server, sender, path, body);
    if (path === 'remove' && body.device === 'tablet') throw Object.assign(new Error('gone'), { code: 'device.not-found' });
    return {};
  };
  await laptop.own.removeOthers();
  assert.deepEqual((await laptop.own.list()).map((own) => own.device), ['laptop']);
  assert.deepEqual(server.list(['bob']).devices.map((listed) => listed.device), ['phone'], 'those of other users stay');
  await bob.directory.devicesOf(['alice']);
  assert.deepEqual([await levelOf(bob, laptop), await levelOf(bob, phone), await levelOf(bob, tablet)], ['verified', 'revoked', 'revoked']);
});

test('devices that could not be removed are reported', async () => {
  const { server, laptop } = await alices();
  server.take = async () => {
    throw Object.assign(new Error('away'), { code: 'connection-lost' });
  };
  await assert.rejects(laptop.own.removeOthers(), { code: 'connection-lost' });
});

const levelOf = async (viewer, { entry }) => (await viewer.directory.examine([entry]))[0].level;

test('paired devices trust each other, and whoever verified one trusts both', async () => {
  const { server, laptop, phone } = await alices();
  const bob = await device(server, 'bob', 'phone');
  await phone.own.type();
  await laptop.own.show('phone');
  assert.equal(laptop.own.pairing.state, 'showing');
  assert.equal(await phone.own.enter(laptop.own.pairing.code), true);
  assert.equal(laptop.own.pairing.state, 'asking');
  assert.equal(await laptop.own.confirm(), true);
  assert.deepEqual([await levelOf(laptop, phone), await levelOf(phone, laptop)], ['verified', 'verified']);
  await bob.directory.devicesOf(['alice']);
  await bob.directory.verify([laptop.entry]);
  bob.directory.verifiedOnly = true;
  await bob.directory.devicesOf(['alice']);
  assert.deepEqual([await levelOf(bob, laptop), await levelOf(bob, phone)], ['verified', 'vouched']);
});

test('either of the two may begin', async () => {
  const { laptop, phone } = await alices();
  await laptop.own.show('phone');
  assert.deepEqual(phone.asked, ['laptop']);
  assert.equal(laptop.own.pairing.state, 'committed');
  await phone.own.type();
  assert.equal(await phone.own.enter(laptop.own.pairing.code), true);
});

test('three devices: each new one is paired only with the first, and whoever verified the first trusts all', async () => {
  const { server, laptop, phone } = await alices();
  const tablet = await device(server, 'alice', 'tablet');
  for (const other of [phone, tablet]) {
    await laptop.own.type();
    await other.own.show('laptop');
    await laptop.own.enter(other.own.pairing.code);
    await other.own.confirm();
  }
  assert.deepEqual([await levelOf(laptop, phone), await levelOf(laptop, tablet)], ['verified', 'verified']);
  await tablet.directory.devicesOf(['alice']);
  assert.equal(await levelOf(tablet, phone), 'vouched', 'by the laptop');
});

test('a device whose key at the server differs from the proven one is not vouched for, and the other device is told', async () => {
  const { server, laptop, phone } = await alices();
  await phone.own.type();
  await laptop.own.show('phone');
  const { code } = laptop.own.pairing;
  const other = await Identity.open(new MemoryStore(), 'alice', 'laptop');
  server.devices[0] = { ...laptop, identity: other };
  assert.equal(await phone.own.enter(code), false);
  assert.deepEqual([phone.own.pairing.reason, server.statements.vouches], ['refused', []]);
});

test('the new device vouches for the other device’s key only if the server lists it', async () => {
  const { server, laptop, phone } = await alices();
  await phone.own.type();
  await laptop.own.show('phone');
  await phone.own.enter(laptop.own.pairing.code);
  const other = await Identity.open(new MemoryStore(), 'alice', 'phone');
  server.devices[1] = { ...phone, identity: other };
  assert.equal(await laptop.own.confirm(), false);
  assert.deepEqual(server.statements.vouches.map(({ by }) => by), ['phone']);
});

test('a copied text confirms the device that it names, and no other', async () => {
  const { server, laptop, phone } = await alices();
  assert.equal((await phone.own.confirmText(laptop.own.text)).device, 'laptop');
  assert.equal(await levelOf(phone, laptop), 'verified');
  const stranger = await device(server, 'mallory', 'laptop');
  for (const text of [stranger.own.text, phone.own.text, deviceText(new Uint8Array(32)), 'hello']) assert.equal(await phone.own.confirmText(text), undefined);
  assert.equal(server.statements.vouches.length, 1);
});

test('a device that is not connected is an error, and the session is over', async () => {
  const { laptop } = await alices();
  await assert.rejects(laptop.own.show('nowhere'), { code: 'device.not-found' });
  assert.equal(laptop.own.pairing.isRunning, false);
});

test('a removed device is revoked: devices that trust the one that removed it give it nothing, even when the server lists it again', async () => {
  const { server, laptop, phone } = await alices();
  const bob = await device(server, 'bob', 'phone');
  await bob.directory.devicesOf(['alice']);
  await bob.directory.verify([laptop.entry, phone.entry]);
  await laptop.own.remove(phone.entry);
  assert.deepEqual((await laptop.own.list()).map(({ device: name }) => name), ['laptop']);
  await bob.directory.devicesOf(['alice']);
  server.devices.push(phone);
  server.statements.revokes = [];
  await bob.directory.devicesOf(['alice']);
  assert.equal((await bob.directory.examine([phone.entry]))[0].problem, 'revoked');
});

test('one’s own devices are listed, this one first, with what is known about them', async () => {
  const { phone } = await alices();
  const listed = await phone.own.list();
  assert.deepEqual(listed.map(({ device: name, name: told, isThis }) => [name, told, isThis]), [['phone', 'phone', true], ['laptop', 'laptop', false]]);
});
