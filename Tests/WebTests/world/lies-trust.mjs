// The table of lies, rows about people and their devices.

import assert from 'node:assert/strict';
import { aside, load, loadPage } from '../web.mjs';
import { announcement, comes, entryOf, ghostEntry, inCall, isSilent, requestsOf, tell, warns } from './lying.mjs';

const { toBase64 } = await load('wire/bytes.js');
const { Conclave } = await load('conclave.js');
const { Directory } = await load('trust/directory.js');
const { Identity } = await load('trust/identity.js');
const { learnNames, beginNames, labelFor, nameFor, namesakeOf } = await loadPage('names.js');
const { Pairing } = await load('devices/pairing.js');
const { MemoryStore } = await load('devices/store.js');
const { encodeFrame } = await load('connection/stomp.js');
const { judge, makeStatement } = await load('trust/vouching.js');

export const rows = new Map();
const row = (n, run) => rows.set(n, run);

row(48, async () => {
  const sent = [];
  class Socket {
    static OPEN = 1;
    static last;
    readyState = 1;

    constructor() {
      Socket.last = this;
      queueMicrotask(() => this.onopen?.());
    }

    send(text) {
      sent.push(text.split('\n')[0]);
    }

    close() {
      this.isClosed = true;
    }
  }
  const { WebSocket } = globalThis;
  globalThis.WebSocket = Socket;
  for (const headers of [{ 'user-name': 'Alice', device: 'd' }, { 'user-name': 'alice', device: 'e' }, { device: 'd' }, { 'user-name': 'alice' }]) {
    sent.length = 0;
    const conclave = new Conclave({ url: 'ws://h/', device: 'd', credentials: async () => ({ token: 't', user: 'alice' }) });
    conclave.connect();
    await aside(1);
    Socket.last.onmessage({ data: encodeFrame('CONNECTED', { version: '1.2', ...headers }) });
    await aside(1);
    assert.deepEqual([conclave.status, conclave.identity, conclave.directory, Socket.last.isClosed], ['refused', undefined, undefined, true]);
    assert.deepEqual(sent.filter((command) => command === 'SEND' || command === 'SUBSCRIBE'), [], 'nothing was registered');
  }
  globalThis.WebSocket = WebSocket;
});

/** Bob comes back with another key for the same device. */
async function changed({ world, call, alice, bob }) {
  bob.call.leave();
  await world.until(() => call.epoch === 3 && alice.call.epoch === 3);
  const other = await world.add('bob', { generation: 1 });
  comes(call, other);
  await world.run(3_000);
  return other;
}

row(50, () =>
  inCall(async (scene) => {
    const { world, call, alice } = scene;
    const other = await changed(scene);
    const told = alice.warnings.find(({ problem }) => problem === 'changed-key');
    assert.deepEqual([told.user, told.device, told.fingerprint], ['bob', 'd', other.fingerprint]);
    await isSilent(other);
    assert.equal(other.secrets.length, 0, 'no key from members who knew the old one');
    // When he leads the next epoch, his envelope is kept, not refused, and used once Alice trusts the shown key.
    const waits = requestsOf(alice);
    world.server.lie.event = (to, name, body) => (to !== other && body.deliver ? { ...body, deliver: undefined } : body);
    call.rotate();
    await world.run(12_000);
    assert.ok(waits.some(({ path }) => path === 'keys/wait'));
    assert.equal(waits.filter(({ path }) => path === 'keys/wait').length, new Set(waits.filter(({ path }) => path === 'keys/wait').map(({ body }) => body.epoch)).size, 'once an epoch');
    assert.ok(other.problems.includes('waiting'), 'the signer is told why');
    await alice.directory.trust('bob', 'd', told.fingerprint);
    alice.calls.reconsiderKeys();
    await world.run(2_000);
    assert.ok(alice.secrets.some(({ epoch }) => epoch === call.newest.epoch), 'opened at once');
    assert.equal(alice.call.stop, undefined);
  }));

row(51, async () => {
  const identity = () => Identity.open(new MemoryStore(), 'bob', 'd');
  const [known, shown, later] = await Promise.all([identity(), identity(), identity()]);
  const entry = ({ keys, fingerprint }) => ({ user: 'bob', device: 'd', keys, fingerprint: toBase64(fingerprint), participant: 2 });
  const directory = new Directory({ store: new MemoryStore(), owner: 'alice', fetchDevices: async () => ({ devices: [] }) });
  await directory.examine([entry(known)]);
  await directory.examine([entry(shown)]); // the key in the warning
  await directory.examine([entry(later)]); // the key that the server offers before the click
  await directory.trust('bob', 'd', toBase64(shown.fingerprint));
  const problemOf = async (each) => (await directory.examine([entry(each)]))[0].problem;
  assert.deepEqual([await problemOf(later), await problemOf(shown)], ['changed-key', undefined]);
  // The dialog shows Bob's device; before the click a ghost of Bob is listed.
  const ghost = { ...entry(await Identity.open(new MemoryStore(), 'bob', 'ghost')), device: 'ghost' };
  await directory.examine([ghost]);
  await directory.verify([entry(shown)]);
  const results = await directory.examine([entry(shown), ghost]);
  assert.deepEqual(results.map(({ isVerified }) => isVerified), [true, false]);
  assert.deepEqual(await directory.verify([entry(later)]), [], 'another key than the one that is known');
});

row(52, () => {
  beginNames('alice', [], () => {});
  learnNames([{ user: 'bob', name: 'Bob' }, { user: 'b0b', name: 'Bob' }]);
  assert.equal(namesakeOf('b0b'), 'bob');
  assert.match(labelFor('b0b'), /b0b/);
  assert.match(labelFor('bob'), /\(bob\)|bob/);
});

row(71, async () => {
  for (const [made, shown] of [['guest~zed', 'zed'], ['zed', 'guest~zed']]) {
    await inCall(async ({ world, call, alice }) => {
      const zed = await world.add(made);
      const { entry, keys } = await ghostEntry(zed, call, 50);
      const listed = { ...entry, user: shown };
      const requests = requestsOf(alice);
      await tell(world, alice, 'keys.rotate', { ...(await announcement(call, { entries: [...call.newest.list, listed] })), leader: entryOf(call, alice).participant, deliver: [{ ...listed, keys }] });
      await world.run(1_000);
      warns(alice, 'unknown-keys');
      const given = requests.filter(({ path }) => path === 'keys').flatMap(({ body }) => body.envelopes);
      assert.deepEqual(given.filter(({ to }) => to.user === shown), []);
    });
  }
});

row(72, () => {
  beginNames('alice', [], () => {});
  learnNames([{ user: 'bob', name: 'Bob', link: true }, { user: 'guest~1', name: 'Bob', link: undefined }]);
  assert.doesNotMatch(nameFor('bob'), /guest/);
  assert.equal(nameFor('guest~1'), 'Bob (guest)');
  assert.equal(labelFor('guest~1'), 'Bob (guest) (guest~1)');
});

async function device(user, name) {
  const identity = await Identity.open(new MemoryStore(), user, name);
  return { user, device: name, identity, keys: identity.keys, fingerprint: toBase64(identity.fingerprint) };
}

const NOW = 1_800_000_000_000;
const statement = async (kind, by, about, user = by.user) => ({ ...(await makeStatement(kind, by.identity, about, NOW)), user, by: by.device, byFingerprint: by.fingerprint });
const pin = (each, isVerified = false) => ({ device: each.device, fingerprint: each.fingerprint, keys: each.keys, isVerified });

row(53, async () => {
  const [laptop, phone, tablet, stranger] = await Promise.all(['laptop', 'phone', 'tablet', 'stranger'].map((name) => device('bob', name)));
  const foreign = await device('carol', 'laptop');
  const pins = [pin(laptop, true), pin(phone), pin(tablet)];
  const level = async (vouches, rest = {}) => (await judge({ user: 'bob', pins, listed: [laptop, phone, tablet], vouches, now: NOW, ...rest })).levels.get(phone.fingerprint);
  const good = await statement('vouch', laptop, phone);
  assert.equal(await level([good]), 'vouched');
  assert.equal(await level([{ ...(await statement('vouch', foreign, phone)), user: 'bob', by: 'laptop' }]), 'known', 'of another user');
  assert.equal(await level([await statement('vouch', stranger, phone)]), 'known', 'by an unknown device');
  assert.equal(await level([await statement('vouch', tablet, phone)]), 'known', 'by a device that is only known');
  assert.equal(await level([await statement('vouch', laptop, tablet), await statement('vouch', tablet, phone)]), 'known', 'by a vouched device');
  assert.equal(await level([good], { listed: [phone, tablet] }), 'known', 'by a removed device');
  const revoke = await statement('revoke', laptop, laptop);
  const { remembered } = await judge({ user: 'bob', pins, listed: [laptop, phone, tablet], vouches: [good], revokes: [revoke], now: NOW });
  assert.equal(await level([good], { remembered }), 'known', 'a revocation that is hidden later');
});

row(54, async () => {
  const [laptop, phone] = await Promise.all(['laptop', 'phone'].map((name) => device('bob', name)));
  const judged = await judge({
    user: 'bob',
    pins: [pin(laptop, true), pin(phone)],
    listed: [laptop, phone],
    vouches: [await statement('vouch', laptop, phone)],
    revokes: [await statement('revoke', phone, laptop)],
    now: NOW,
  });
  assert.equal(judged.levels.get(laptop.fingerprint), 'verified');
  assert.deepEqual(judged.disagreements.map(({ device: name }) => name), ['laptop']);
});

row(55, async () => {
  const random = (count) => crypto.getRandomValues(new Uint8Array(count));
  const pairing = () => new Pairing({ user: 'alice', fingerprint: random(32), random });
  const arrives = ({ body }, from) => ({ from, body });
  const content = (message) => JSON.parse(Buffer.from(message.body, 'base64').toString());
  const change = (message, changes) => ({ ...message, body: Buffer.from(JSON.stringify({ ...content(message), ...changes })).toString('base64') });
  for (const swap of ['fingerprint', 'nonce']) {
    const [theNew, existing] = [pairing(), pairing()];
    existing.open(0);
    const commit = await theNew.begin('phone', 0);
    const open = await existing.take(arrives(commit, 'laptop'), 0);
    const reveal = await theNew.take(arrives(change(open, { [swap]: toBase64(random(32)) }), 'phone'), 0);
    await existing.take(arrives(reveal, 'laptop'), 0);
    assert.equal(existing.enter(theNew.code, 1), false, `another ${swap} of the existing device: another code`);
    const [n, e] = [pairing(), pairing()];
    e.open(0);
    const answer = await e.take(arrives(await n.begin('phone', 0), 'laptop'), 0);
    await e.take(arrives(change(await n.take(arrives(answer, 'phone'), 0), { [swap]: toBase64(random(32)) }), 'laptop'), 0);
    assert.equal(e.state, 'failed', `a ${swap} that was not committed to ends the session`);
    assert.equal(e.enter(n.code, 1), false);
  }
});

