// The table of lies, rows about showing who can hear (protocol section 5.12).

import assert from 'node:assert/strict';
import { load, loadPage } from '../web.mjs';
import { comes, entryOf, ghostEntry, inCall, isSilent, requestsOf, tell, warns } from './lying.mjs';
import { inWorld } from './world.mjs';

const { acceptName, beginNames, labelFor, learnNames, newNameOf } = await loadPage('names.js');
const { random, toBase64 } = await load('wire/bytes.js');
const { makeStatement } = await load('trust/vouching.js');

export const rows = new Map();
const row = (n, run) => rows.set(n, run);

const tilesOf = (client, user) => client.call.tiles().filter(({ member }) => member?.user === user);
const isListed = (client, user) => client.call.devices.some((device) => device.user === user);

/** The server tells `victims` nothing of `users`, as if they had never joined. */
function hide(world, victims, ...users) {
  const without = (members) => members.filter(({ user }) => !users.includes(user));
  world.server.lie.event = (to, name, body) => {
    if (!victims.includes(to)) return body;
    if (name === 'call.state') return { ...body, members: without(body.members) };
    return name === 'call.member' && users.includes(body.user) ? undefined : body;
  };
  world.server.lie.reply = (to, path, body, reply) => (victims.includes(to) && path.endsWith('/state') ? { ...reply, members: without(reply.members) } : undefined);
}

row(330, () =>
  inWorld(['alice', 'bob', 'zed'], async (world, alice, bob, zed) => {
    const call = await world.call(alice, bob);
    const without = (members) => members.filter(({ user }) => user !== 'zed');
    world.server.lie.event = (to, name, body) => {
      if (to === zed) return body;
      if (name === 'call.state') return { ...body, members: without(body.members) };
      if (name !== 'call.member' || body.user !== 'zed') return body;
      if (body.participants.length === 0) return undefined;
      // It is named only for an instant: the state without it follows at once.
      queueMicrotask(() => world.server.tell(to, 'call.state', { call: call.id, ...call.state() }));
      return { ...body, cause: 'x' };
    };
    world.server.lie.reply = (to, path, body, reply) => (to !== zed && path.endsWith('/state') ? { ...reply, members: without(reply.members) } : undefined);
    comes(call, zed);
    await world.until(() => isListed(alice, 'zed'));
    const stops = new Set();
    for (let ms = 0; ms < 30_000; ms += 20) {
      if (ms % 2_500 === 0) void zed.call?.rejoin();
      await world.run(20);
      if (isListed(alice, 'zed')) assert.equal(tilesOf(alice, 'zed').length, 1, `drawn after ${ms} ms`);
      if (alice.call.stop) stops.add(alice.call.stop.cause);
    }
    warns(alice, 'stranger', 'stopped');
    assert.deepEqual([...stops], ['stranger']);
  }));

row(331, async () => {
  await inCall(async ({ world, call, alice, bob, others: [dave] }) => {
    hide(world, [alice], 'dave');
    comes(call, dave);
    await world.until(() => isListed(alice, 'dave'));
    const { reply } = world.server.lie;
    world.server.lie.reply = (to, path, ...rest) => (to === alice && /state$|keys\/list$/.test(path) ? new Promise(() => {}) : reply(to, path, ...rest));
    await world.run(12_000);
    warns(alice, 'stranger');
    assert.equal(alice.call.stop?.cause, 'stranger', 'a withheld answer counts as one');
    await isSilent(alice);
    assert.ok(await bob.say());
  }, ['dave']);
  await inCall(async ({ world, call, alice, others: [dave] }) => {
    hide(world, [alice], 'dave');
    comes(call, dave);
    await world.until(() => isListed(alice, 'dave'));
    for (let round = 0; round < 5; round += 1) {
      await world.run(3_700);
      alice.disconnect();
      await world.run(300);
      alice.reconnect();
    }
    warns(alice, 'stranger');
    assert.equal(alice.call.stop?.cause, 'stranger', 'times add up across connections');
  }, ['dave']);
});

row(332, () =>
  inCall(async ({ world, call, alice, bob, others: [dave] }) => {
    let told = 0;
    world.server.lie.event = (to, name, body) => {
      if (to !== alice || name !== 'call.member' || body.user !== 'dave') return body;
      told += 1;
      return { ...body, name: 5 };
    };
    const named = (members) => members.map((member) => (member.user === 'dave' ? { ...member, name: ['Dave'] } : member));
    world.server.lie.reply = (to, path, body, reply) => (to === alice && path.endsWith('/state') ? { ...reply, members: named(reply.members) } : undefined);
    const before = alice.call.members;
    comes(call, dave);
    await world.until(() => isListed(alice, 'dave'));
    await world.run(8_000);
    assert.ok(told > 0);
    assert.deepEqual([...alice.call.members.keys()], [...before.keys()], 'nothing of it is accepted');
    assert.deepEqual(tilesOf(alice, 'dave').map(({ doubt }) => doubt), ['stranger'], 'the list is drawn nevertheless');
    warns(alice, 'stranger');
    await isSilent(alice);
    assert.ok(await bob.say());
  }, ['dave']));

row(333, () =>
  inCall(async ({ world, call, alice, others: [dave] }) => {
    // Alice has seen another key of Dave's device, the others have not.
    const known = await world.add('dave', { generation: 1 });
    await alice.directory.examine([known.asDevice()]);
    world.server.register(dave);
    comes(call, dave);
    await world.until(() => isListed(alice, 'dave') && dave.call?.hasKey);
    await world.run(1_000);
    warns(alice, 'changed-key');
    assert.deepEqual([alice.call.stop?.cause, alice.call.stop?.needsPerson], ['changed-key', true]);
    await isSilent(alice);
    const [{ doubt }] = tilesOf(alice, 'dave');
    assert.match(doubt, /^untrusted/, 'and no tile says that it cannot hear');
    alice.call.sendAnyway(alice.call.stop.devices);
    const said = await alice.say();
    await world.run(300);
    assert.ok(dave.hasHeard(said), 'the person has continued: another member gave it the key');
  }, ['dave']));

row(334, () =>
  inCall(async ({ world, call, alice, others: [dave] }) => {
    hide(world, [alice], 'dave');
    comes(call, dave);
    await world.until(() => isListed(alice, 'dave'));
    const { participant, joinId } = entryOf(call, dave);
    const member = { user: 'dave', name: 'Dave', state: 'joined', cause: 'joined', participants: [{ participant, device: 'other', joinId, connected: true, held: false, tracks: [] }] };
    await tell(world, alice, 'call.member', { call: call.id, rev: call.rev, ...member });
    assert.deepEqual(tilesOf(alice, 'dave').map(({ device, doubt }) => [device, doubt]), [['d', 'stranger']]);
    warns(alice, 'stranger');
  }, ['dave']));

row(335, () =>
  inCall(async ({ world, call, alice, others: [dave, erin] }) => {
    hide(world, [alice], 'dave', 'erin');
    comes(call, dave);
    await world.until(() => alice.call.stop?.cause === 'stranger');
    const shown = alice.call.stop.devices;
    assert.deepEqual(shown.map(({ user }) => user), ['dave']);
    comes(call, erin);
    await world.until(() => isListed(alice, 'erin'));
    alice.call.sendAnyway(shown);
    assert.ok(await alice.say());
    await world.run(8_000);
    assert.deepEqual(alice.call.stop?.devices.map(({ user }) => user), ['erin'], 'a device that was not named stops it again');
    await isSilent(alice);
  }, ['dave', 'erin']));

row(336, () => {
  beginNames('alice', [['bob', 'Bob'], ['carol', 'Carol']], () => {});
  for (const name of ['Carol', 'Cаrol', 'Carol\u200b', 'Robert']) {
    learnNames([{ user: 'bob', name }]);
    assert.deepEqual([labelFor('bob'), newNameOf('bob')], ['Bob (bob)', name]);
    acceptName('bob', 'Eve');
    assert.equal(labelFor('bob'), 'Bob (bob)', 'only the shown name is accepted');
  }
});

row(337, () =>
  inCall(async ({ world, call, alice, bob, others: [dave] }) => {
    comes(call, dave);
    await world.until(() => isListed(alice, 'dave') && dave.call?.confirmation.state === 'confirmed');
    const { device, fingerprint } = dave.asDevice();
    const statement = { ...(await makeStatement('revoke', dave.identity, { device, fingerprint }, Date.now())), user: 'dave', by: device, byFingerprint: fingerprint };
    world.server.lie.reply = (to, path, body, reply) => (to === alice && path === 'devices/list' && body.users.includes('dave') ? { ...reply, revokes: [statement] } : undefined);
    void alice.directory.devicesOf(['dave']);
    await world.run(500);
    alice.calls.reconsiderKeys();
    await world.run(1_000);
    const { stop } = alice.call;
    assert.deepEqual([stop?.cause, stop?.needsPerson, stop?.devices.map(({ user, isSelfRevoked }) => [user, isSelfRevoked])], ['revoked', true, [['dave', true]]]);
    await isSilent(alice);
    assert.ok(await bob.say(), 'it mutes only those whom it was told to mute');
    alice.call.sendAnyway(stop.devices);
    assert.ok(await alice.say(), 'one press continues');
    await world.run(60_000);
    assert.ok(await alice.say(), 'and it is not asked again');
  }, ['dave']));

row(338, () =>
  inCall(async ({ world, call, alice, carol }) => {
    const { participant } = entryOf(call, carol);
    const later = [];
    world.server.lie.event = (to, name, body) => (to === alice && name === 'message' ? void later.push(body) : body);
    void carol.call.send({ text: 'carol/d writes a last word' });
    await world.until(() => later.length > 0);
    void carol.call.leave();
    await world.until(() => alice.call.epoch === 3 && call.epoch === 3);
    // The state gives Carol's number to a second device of Bob's.
    const device = { participant, device: 'tablet', joinId: toBase64(random(16)), connected: true, held: false, tracks: [] };
    const { state, participants } = call.members.get('bob');
    await tell(world, alice, 'call.member', { call: call.id, rev: call.rev, user: 'bob', state, cause: 'joined', participants: [...participants, device] });
    await tell(world, alice, 'message', later[0]);
    await world.until(() => alice.messages.length > 0);
    assert.deepEqual(alice.messages.map(({ text }) => text), ['carol/d writes a last word'], 'frames sealed before still open for a moment');
    assert.equal(alice.call.ownerOf(participant).user, 'carol', 'and is Carol’s');
    assert.deepEqual(alice.call.tiles().filter((tile) => tile.participant === participant).map(({ member }) => member.user), ['carol']);
  }));

row(339, async () => {
  for (const answer of ['none', 'one without the device']) {
    await inCall(async ({ world, call, alice, others: [dave] }) => {
      const known = await world.add('dave', { generation: 1 });
      await alice.directory.examine([known.asDevice()]);
      world.server.register(dave);
      let asked = 0;
      world.server.lie.reply = (to, path, body) => {
        if (to !== alice || path !== 'devices/list' || !body.users.includes('dave')) return undefined;
        asked += 1;
        return answer === 'none' ? new Promise(() => {}) : { devices: [], revokes: [] };
      };
      comes(call, dave);
      await world.until(() => isListed(alice, 'dave') && dave.call?.hasKey);
      await world.run(500);
      assert.ok(asked > 0);
      warns(alice, 'changed-key');
      assert.equal(alice.call.stop?.cause, 'changed-key', `with ${answer}`);
      await isSilent(alice);
    }, ['dave']);
  }
});

row(340, () =>
  inCall(async ({ world, call, alice, bob, carol }) => {
    await alice.directory.verify([bob.asDevice()]);
    world.server.lie.reply = (to, path) => (to === alice && path === 'devices/list' ? new Promise(() => {}) : undefined);
    assert.ok(await alice.say());
    alice.directory.verifiedOnly = true;
    alice.calls.reconsiderKeys();
    await isSilent(alice);
    assert.equal(alice.call.stop?.cause, 'unverified');
    // It does not give the key to Carol either, whom it has looked up before.
    const requests = requestsOf(alice);
    for (const client of [bob, carol]) {
      await tell(world, alice, 'keys.request', { call: call.id, epoch: call.epoch, to: { ...entryOf(call, client), keys: client.identity.keys } });
    }
    await world.run(500);
    const given = requests.filter(({ path }) => path === 'keys').flatMap(({ body }) => body.envelopes.map(({ to }) => to.user));
    assert.deepEqual(given, ['bob']);
  }));
