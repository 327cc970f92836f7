// Lasting links in a world of real clients: made without a call, and serving one call after the other. Lies about them are in the table of lies (429 to 435).

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { load } from './web.mjs';
import { settled } from './world/lying.mjs';
import { inWorld } from './world/world.mjs';

console.warn = () => {};
const { LastingLinks } = await load('devices/lasting-links.js');
const { Identity } = await load('trust/identity.js');
const { MemoryStore } = await load('devices/store.js');
const { LinkSecret } = await load('trust/words.js');

/** The result of a promise that needs the world's time. */
async function result(world, promise) {
  let settledAs;
  promise.then(
    (value) => (settledAs = { value }),
    (error) => (settledAs = { error }),
  );
  await world.until(() => settledAs);
  if (settledAs.error) throw settledAs.error;
  return settledAs.value;
}

/** Alice has a link, Bob and Carol know its secret. */
const withLink = (action, options = {}, more = []) =>
  inWorld(['alice', 'bob', 'carol', ...more], async (world, alice, bob, carol, ...others) => {
    const link = await result(world, alice.lastingLinks.make({ expiresIn: 86_400, name: 'Office hours', ...options }));
    await action({ world, alice, bob, carol, others, link });
  });

const callOf = (world, client) => world.server.calls.get(client.call.id);

test('one link serves one call after the other, and each who comes knows who started it', () =>
  withLink(async ({ world, alice, bob, link }) => {
    const seen = new Set();
    for (let turn = 0; turn < 2; turn += 1) {
      void bob.comeByLasting(link.secret);
      assert.ok(await world.until(() => bob.waited.length === turn + 1));
      void alice.startLasting(link.id);
      assert.ok(await world.until(() => bob.call?.participant));
      const call = callOf(world, bob);
      seen.add(call.id);
      await settled(world, call, [alice, bob]);
      assert.equal(bob.call.root, 'alice');
      assert.deepEqual(alice.call.devices.find(({ user }) => user === 'bob').admission, { how: 'link', by: 'alice' });
      await world.assertAllHear();
      void bob.call.leave();
      void alice.call.leave();
      await world.run(1_000);
      world.server.lasting.get(link.id).opening = undefined;
    }
    assert.equal(seen.size, 2);
    assert.deepEqual([alice.alarms, bob.alarms, bob.joinError], [[], [], undefined]);
    assert.deepEqual(alice.awaited, [link.id, link.id]);
    assert.equal(bob.waited[0].name, 'alice');
  }));

test('guests of a link that waits knock in each of its calls', () =>
  withLink(async ({ world, alice, others: [zed], link }) => {
    void alice.startLasting(link.id);
    await world.until(() => world.server.lasting.get(link.id).opening);
    void zed.comeByLasting(link.secret);
    assert.ok(await world.until(() => alice.call.waitingGuests.length === 1));
    void alice.call.admitGuest('guest~zed');
    assert.ok(await world.until(() => zed.call?.participant));
    assert.ok(await world.until(() => zed.call.root === 'alice'));
  }, { guestsWait: true }, ['guest~zed']));

test('the server never gets a secret or a name', () =>
  withLink(async ({ world, alice, bob, link }) => {
    const sent = [];
    world.server.lie.reply = (to, path, body) => void sent.push(JSON.stringify([path, body]));
    const other = await result(world, alice.lastingLinks.make({ expiresIn: 3_600, name: 'Choir' }));
    void alice.startLasting(other.id);
    void bob.comeByLasting(other.secret);
    await world.until(() => bob.call?.participant);
    const secret = other.secret.slice(0, 20);
    assert.ok(sent.length > 4 && !sent.some((each) => each.includes(secret) || each.includes('Choir') || each.includes(link.secret.slice(0, 20))));
  }));

test('the list has names and secrets of what this device has made, and only the ids of others', () =>
  withLink(async ({ world, alice, link }) => {
    const tablet = await world.add('alice', { device: 'tablet' });
    const theirs = await result(world, tablet.lastingLinks.make({ expiresIn: 3_600 }));
    const { links, days } = await result(world, alice.lastingLinks.list());
    assert.equal(days, 30);
    assert.deepEqual(links.map(({ id, device, name, secret }) => [id, device, name, secret]), [[link.id, 'd', 'Office hours', link.secret], [theirs.id, 'tablet', undefined, undefined]]);
    await alice.lastingLinks.rename(link.id, 'Surgery');
    assert.equal((await result(world, alice.lastingLinks.list())).links[0].name, 'Surgery');
    await alice.lastingLinks.rename(theirs.id, 'mine');
    assert.equal((await result(world, alice.lastingLinks.list())).links[1].name, undefined);
  }));

test('a link that another device has deleted is forgotten here', () =>
  withLink(async ({ world, alice, link }) => {
    const tablet = await world.add('alice', { device: 'tablet' });
    await result(world, tablet.lastingLinks.delete(link.id));
    assert.deepEqual((await result(world, alice.lastingLinks.list())).links, []);
    await assert.rejects(alice.lastingLinks.startable(link.id), { code: 'link.elsewhere' });
  }));

test('a link that the server does not take leaves nothing', () =>
  inWorld(['alice'], async (world, alice) => {
    world.server.lie.reply = (to, path, body, reply) => (path === 'links/make' ? { ...reply, device: 'tablet' } : undefined);
    await assert.rejects(result(world, alice.lastingLinks.make({ expiresIn: 3_600 })), { code: 'reply.refused' });
    assert.deepEqual(await alice.store.entries('links', ''), []);
  }));

test('a client that waits asks again on a new connection, and once a minute', () =>
  withLink(async ({ world, alice, bob, link }) => {
    let asked = 0;
    world.server.lie.reply = (to, path) => void (path === 'links/open' && (asked += 1));
    void bob.comeByLasting(link.secret);
    await world.until(() => bob.waited.length === 1);
    bob.disconnect();
    await world.run(1_500);
    bob.reconnect();
    await world.run(500);
    assert.equal(asked, 2);
    await world.run(61_000);
    assert.equal(asked, 3);
    void alice.startLasting(link.id);
    assert.ok(await world.until(() => bob.call?.participant));
  }));

test('a server that says that the link has changed makes nobody ask more than once a second', () =>
  withLink(async ({ world, bob, link }) => {
    let asked = 0;
    world.server.lie.reply = (to, path) => {
      if (path !== 'links/open') return;
      asked += 1;
      for (let each = 0; each < 20; each += 1) world.server.tell(bob, 'link.changed', { link: link.id });
    };
    void bob.comeByLasting(link.secret);
    await world.run(10_500);
    assert.ok(asked >= 8 && asked <= 12, `${asked} times`);
  }));

test('waiting ends with the link, and when the person has had enough', () =>
  withLink(async ({ world, alice, bob, carol, link }) => {
    void bob.comeByLasting(link.secret);
    const enough = new AbortController();
    const waiting = result(world, carol.lastingLinks.wait(link.secret, { signal: enough.signal }));
    waiting.catch(() => {});
    await world.until(() => world.server.lasting.get(link.id).waiting.size === 2);
    enough.abort();
    await assert.rejects(waiting, { name: 'AbortError' });
    await result(world, alice.lastingLinks.delete(link.id));
    await world.until(() => bob.joinError);
    assert.equal(bob.joinError.code, 'call.link-invalid');
    assert.equal(bob.call, undefined);
  }));

test('a refusal that passes does not end the waiting', () =>
  withLink(async ({ world, alice, bob, link }) => {
    let isBusy = true;
    world.server.lie.reply = (to, path) => (isBusy && path === 'links/open' ? Promise.reject(Object.assign(new Error('busy'), { code: 'server.busy' })) : undefined);
    void bob.comeByLasting(link.secret);
    await world.run(2_000);
    isBusy = false;
    void alice.startLasting(link.id);
    assert.ok(await world.until(() => bob.call?.participant, 70_000));
  }));

test('the id is made from the secret and the device that made the link', async () => {
  const identity = await Identity.open(new MemoryStore(), 'alice', 'phone');
  const secret = LinkSecret.make(identity);
  const id = await secret.id();
  assert.match(id, /^[\w-]{21}[AQgw]$/);
  assert.equal(await LinkSecret.from(secret.text).id(), id);
  const other = `${secret.text.slice(0, -1)}${secret.text.endsWith('A') ? 'B' : 'A'}`;
  assert.notEqual(await LinkSecret.from(other).id(), id, 'of another device');
  assert.ok(!(await secret.link('6f0c2f6e-4d5e-4b52-9f0c-1f2a3b4c5d6e').then((key) => Buffer.from(key).toString('base64url'))).includes(id));
});

test('each device has its own links in the store', async () => {
  const store = new MemoryStore();
  const request = async (path, { link, expiresIn } = {}) => (path === 'make' ? { link, device: 'phone', expiresAt: Date.now() + expiresIn * 1_000 } : { links: [], days: 1 });
  const [phone, tablet] = await Promise.all(['phone', 'tablet'].map(async (device) => new LastingLinks({ identity: await Identity.open(new MemoryStore(), 'alice', device), store, request })));
  const { id } = await phone.make({ expiresIn: 60 });
  await assert.rejects(tablet.startable(id), { code: 'link.elsewhere' });
  await tablet.list();
  assert.equal((await phone.startable(id)).guestsWait, false, 'the other list has not touched it');
});
