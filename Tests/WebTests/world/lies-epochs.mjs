// The table of lies, rows about envelopes, switches, confirmations and rings.

import assert from 'node:assert/strict';
import { load } from '../web.mjs';
import { comes, entryOf, envelopeBy, epochOf, inCall, isSilent, requestsOf, tell, warns } from './lying.mjs';
import { inWorld } from './world.mjs';

const { fromBase64, random, toBase64 } = await load('wire/bytes.js');
const { RosterWatch } = await load('keys/roster-watch.js');

export const rows = new Map();
const row = (n, run) => rows.set(n, run);

/** Epoch 3 is fresh. Bob gets the envelopes that `made(genuine, scene)` makes from his own; none of them may give him the key. */
const refusesEnvelopes = (made, ...problems) =>
  inCall(async (scene) => {
    const { world, call, bob, alice, carol } = scene;
    let genuine;
    world.server.lie.event = (to, name, body) => {
      if (name === 'keys.request') return undefined;
      if (to !== bob || name !== 'keys.envelope') return body;
      genuine = body;
      return undefined;
    };
    call.rotate();
    await world.until(() => genuine && call.epoch === 3);
    for (const envelope of await made(genuine, scene)) await tell(world, bob, 'keys.envelope', envelope);
    await world.run(1_000);
    assert.equal(bob.secrets.some(({ epoch }) => epoch === 3), false);
    await isSilent(bob);
    if (problems.length > 0) warns(bob, ...problems);
    await world.assertAllHear([alice, carol]);
  });

row(27, () =>
  refusesEnvelopes(async (genuine, { call, alice, bob, carol }) => {
    const own = entryOf(call, bob);
    const options = { to: own, target: own.joinKey, secret: random(32) };
    return [
      await envelopeBy(alice, call, { ...options, id: '7d1f0d6c-5a3e-4c0b-9b0e-2f64c1a8e3d4' }),
      { ...(await envelopeBy(alice, call, { ...options, epoch: 2 })), epoch: 3 },
      { ...(await envelopeBy(alice, call, { ...options, to: entryOf(call, carol) })), to: genuine.to },
      await envelopeBy(alice, call, { ...options, listHash: toBase64(new Uint8Array(32)) }),
    ];
  }));

row(28, () =>
  refusesEnvelopes(async (genuine, { world, call, bob }) => {
    const own = entryOf(call, bob);
    const zed = await world.add('zed');
    const options = { to: own, target: own.joinKey, secret: random(32) };
    const byZed = await envelopeBy(zed, call, options);
    return [{ ...genuine, signature: undefined }, { ...genuine, ciphertext: byZed.ciphertext }, byZed, { ...byZed, from: genuine.from }, { ...byZed, from: { user: 'bob', device: 'd' } }];
  }));

row(29, () =>
  inCall(async ({ world, call, alice, bob }) => {
    const own = entryOf(call, bob);
    await tell(world, bob, 'keys.envelope', await envelopeBy(alice, call, { to: own, target: own.joinKey, secret: random(32) }));
    await world.assertAllHear();
  }));

row(30, () =>
  inCall(async ({ world, call, alice, bob, carol }) => {
    const lie = (body) => envelopeBy(alice, call, { to: entryOf(call, carol), target: call.stayOf(carol).refresh ?? entryOf(call, carol).joinKey, secret: random(32), epoch: body.epoch });
    world.server.lie.event = (to, name, body) => (to === carol && name === 'keys.envelope' ? lie(body) : body);
    call.rotate();
    await world.run(15_000);
    for (const client of [alice, bob]) {
      warns(client, 'unconfirmed');
      assert.ok(client.warnings.some(({ problem, user }) => problem === 'wrong-confirmation' && user === 'carol'), 'named');
      assert.ok(client.call.confirmation.missing.some(({ user }) => user === 'carol'));
    }
    await world.assertAllHear([alice, bob]);
  }));

row(31, () =>
  refusesEnvelopes(
    async (genuine, { call, alice, bob }) => [await envelopeBy(alice, call, { to: entryOf(call, bob), target: bob.identity.keys[0], secret: random(32) })],
    'refused-envelope',
  ));

row(32, () =>
  inCall(async ({ world, call, alice, bob, carol }) => {
    world.server.lie.event = (to, name, body) => (to === bob && name === 'keys.envelope' ? undefined : body);
    const requests = requestsOf(bob);
    call.rotate();
    await world.run(12_000);
    assert.equal(requests.filter(({ path }) => path === 'keys/request').length, 3);
    warns(bob, 'no-key');
    assert.equal(bob.call.stop.cause, 'no-key');
    await isSilent(bob);
    await world.assertAllHear([alice, carol]);
  }));

row(33, () =>
  inCall(async ({ world, call, alice, bob, carol }) => {
    world.server.lie.event = (to, name, body) => (name === 'keys.switch' ? undefined : body);
    world.server.lie.reply = (to, path, body, reply) => (path.endsWith('/state') ? { ...reply, epoch: 2 } : undefined);
    carol.call.leave();
    await world.until(() => call.newest.epoch === 3 && epochOf(bob, 3));
    await world.run(3_100);
    assert.deepEqual([alice.call.epoch, bob.call.epoch], [3, 3]);
    await world.assertAllHear([alice, bob]);
    // Under a list that only grew, it also uses a later one after ten seconds.
    comes(call, carol);
    await world.until(() => call.newest.epoch === 4 && epochOf(bob, 4));
    await world.run(10_100);
    assert.deepEqual([alice.call.epoch, bob.call.epoch, carol.call.epoch], [4, 4, 4]);
  }));

row(34, () =>
  inCall(async ({ world, call, bob }) => {
    const { posted } = bob.worker;
    const count = () => posted.filter(({ type }) => type === 'switch' || type === 'silence').length;
    const before = count();
    for (const epoch of [99, 1, 2, 2, 0, 2 ** 32 + 3, '3', undefined]) await tell(world, bob, 'keys.switch', { call: call.id, epoch });
    await tell(world, bob, 'call.state', { call: call.id, ...call.state(), epoch: 1 });
    assert.deepEqual([bob.call.epoch, count()], [2, before]);
    await world.assertAllHear();
  }));

row(73, () =>
  inCall(async ({ world, call, bob, others: [dave] }) => {
    // It is from before Dave joined. Bob is not in it, so he would rejoin.
    const old = call.state();
    old.members = old.members.filter(({ user }) => user !== 'bob');
    comes(call, dave);
    await world.until(() => call.newest.epoch === 3 && epochOf(bob, 3));
    const before = bob.call.participant;
    await tell(world, bob, 'call.state', { call: call.id, ...old });
    for (const rev of [-1, 1.5, '9']) await tell(world, bob, 'call.state', { call: call.id, ...old, rev });
    await world.run(3_000);
    assert.equal(bob.call.participant, before);
    assert.ok(bob.call.members.has('dave'));
    await world.assertAllHear();
  }, ['dave']));

row(35, () =>
  inCall(async ({ world, call, alice, bob, carol }) => {
    world.server.lie.event = (to, name, body) => (name === 'keys.rotate' ? undefined : body);
    await world.run(19 * 60_000);
    assert.deepEqual(alice.alarms, []);
    await world.run(2 * 60_000);
    for (const client of [alice, bob, carol]) {
      warns(client, 'old-epoch');
      assert.equal(client.call.isKeyOld, true);
    }
    assert.ok(call);
  }));

row(36, () =>
  inWorld(['alice', 'bob'], async (world, alice, bob) => {
    world.server.lie.event = (to, name, body) => (name.startsWith('keys.') ? undefined : body);
    world.server.lie.reply = (to, path) => (path.endsWith('keys/list') ? {} : undefined);
    alice.start(['bob']);
    await world.until(() => bob.rung.length > 0);
    bob.accept();
    await world.run(3_000);
    await world.assertAllHear(undefined, 'at first');
    await world.run(9_000);
    for (const client of [alice, bob]) {
      assert.equal(client.call.stop.cause, 'epoch-1');
      await isSilent(client);
    }
  }));

row(37, () => {
  // This tests only the rules: a world would add nothing.
  const watch = new RosterWatch();
  const alice = { user: 'alice', device: 'd', participant: 1, fingerprint: 'a' };
  const zed = { user: 'zed', device: 'd', participant: 9, fingerprint: 'z' };
  const member = ({ user, device, participant }) => ({ user, state: 'joined', participants: [{ device, participant }] });
  let warned = 0;
  const look = (now, isMember) => {
    const members = [member(alice), ...(isMember ? [member(zed)] : [])];
    watch.update(now, { isConnected: true, participant: 1, epoch: 2, list: [alice, zed], members, rotateMinutes: 10 });
    if (watch.tick(now) === 'ask') watch.asked(now);
    warned += watch.takeNews().length;
  };
  let now = 0;
  let flaps = 0;
  let stopped;
  for (let flap = 0; flap < 6 && !stopped; flap += 1) {
    for (let s = 0; s < 4; s += 1) look((now += 1_000), false);
    stopped = watch.stopped;
    look((now += 1_000), true);
    flaps += 1;
  }
  assert.ok(flaps > 2 && warned === flaps, `each time: ${warned} of ${flaps}`);
  assert.deepEqual([stopped?.cause, stopped?.needsPerson], ['gone', false], 'the durations of the flaps add up');
  assert.equal(watch.stopped, undefined);
  for (let s = 0; s < 4; s += 1) look((now += 1_000), false);
  look((now += 1_000), true);
  assert.equal(watch.stopped?.needsPerson, true, 'the second stop within a minute lasts');
  watch.sendAnyway(now, watch.stopped.people);
  assert.equal(watch.stopped, undefined);
});

/** Dave joins, but the server tells the others that he does not. */
const hide = (world, user) => {
  world.server.lie.event = (to, name, body) => (to.user !== user && name === 'call.member' && body.user === user ? undefined : body);
  world.server.lie.reply = (to, path, body, reply) => (to.user !== user && path.endsWith('/state') ? { ...reply, members: reply.members.filter((member) => member.user !== user) } : undefined);
};

row(38, () =>
  inCall(async ({ world, call, alice, bob, carol, others: [dave] }) => {
    hide(world, 'dave');
    comes(call, dave);
    await world.until(() => alice.call.epoch === 3);
    await world.run(600);
    const requests = requestsOf(alice);
    for (const client of [alice, bob, carol]) {
      warns(client, 'stranger');
      assert.equal(client.call.roster.find(({ user }) => user === 'dave').state, 'stranger');
      assert.equal(client.call.stop, undefined, 'not yet');
    }
    await world.run(6_000);
    assert.deepEqual(requests.map(({ path }) => path).filter((path) => ['state', 'keys/list'].includes(path)), ['state', 'keys/list']);
    for (const client of [alice, bob, carol]) {
      assert.deepEqual([client.call.stop.cause, client.call.stop.devices[0].user], ['stranger', 'dave']);
      await isSilent(client);
    }
    alice.call.sendAnyway(alice.call.stop.devices);
    await world.run(1_000);
    assert.ok(await alice.say());
    await isSilent(bob);
    world.server.lie = {};
    await tell(world, bob, 'call.state', { call: call.id, ...call.state() });
    assert.equal(bob.call.stop, undefined, 'starts again when the cause is gone');
  }, ['dave']));

row(39, () =>
  inCall(async ({ world, alice, bob, carol }) => {
    world.server.lie.event = (to, name, body) => (name === 'keys.rotate' ? undefined : body);
    world.server.lie.reply = (to, path) => (path.endsWith('keys/list') ? {} : undefined);
    carol.call.leave();
    await world.run(500);
    const tileOf = (client) => client.call.tiles().find(({ member }) => member.user === 'carol');
    for (const client of [alice, bob]) assert.equal(tileOf(client)?.doubt, 'gone', 'its tile stays');
    await world.run(1_500);
    assert.deepEqual(alice.alarms, []);
    await world.run(2_000);
    for (const client of [alice, bob]) {
      warns(client, 'gone');
      assert.equal(client.call.roster.find(({ user }) => user === 'carol').state, 'gone');
    }
    await world.run(8_000);
    assert.equal(alice.call.stop, undefined);
    await world.run(5_000);
    for (const client of [alice, bob]) {
      assert.deepEqual([client.call.stop.cause, client.call.stop.devices[0].user], ['gone', 'carol']);
      await isSilent(client);
    }
  }));

row(40, () =>
  inCall(async ({ world, call, alice, bob, carol, others: [dave] }) => {
    world.server.lie.event = (to, name, body) => (name === 'keys.rotate' ? undefined : body);
    comes(call, dave);
    await world.run(8_000);
    for (const client of [alice, bob, carol]) {
      assert.equal(client.call.roster.find(({ user }) => user === 'dave').state, 'unlisted');
      assert.equal(client.call.stop, undefined);
    }
    await world.assertAllHear([alice, bob, carol]);
    await isSilent(dave);
  }, ['dave']));

row(41, async () => {
  const flip = (text) => toBase64(fromBase64(text).map((byte, i) => (i === 0 ? byte ^ 1 : byte)));
  const lies = {
    'a false tag': (bucket) => ({ ...bucket, tag: flip(bucket.tag) }),
    'a bit beyond the list': (bucket) => ({ ...bucket, who: toBase64(fromBase64(bucket.who).map((byte, i) => (i === 7 ? 1 : byte))) }),
    'a bucket beyond the list': (bucket) => ({ ...bucket, index: 3 }),
  };
  for (const [name, lie] of Object.entries(lies)) {
    await inCall(async ({ world, call, alice }) => {
      const requests = requestsOf(alice);
      world.server.lie.event = (to, event, body) => (to === alice && event === 'keys.confirmed' ? { ...body, buckets: body.buckets.map(lie) } : body);
      call.rotate();
      await world.run(4_000);
      warns(alice, 'false-confirmation');
      if (!name.startsWith('a bucket')) assert.ok(requests.some(({ path }) => path === 'keys/confirmations'), name);
      await world.assertAllHear();
    });
  }
  await inCall(async ({ world, call, alice }) => {
    await tell(world, alice, 'keys.confirmed', { call: call.id, epoch: 2, buckets: [{ index: 0, who: toBase64(new Uint8Array(8)), tag: toBase64(new Uint8Array(16)) }] });
    warns(alice, 'false-confirmation');
    assert.equal(alice.call.confirmation.state, 'confirmed', 'confirmed devices stay confirmed');
  });
});

row(42, () =>
  inCall(async ({ world, call, alice, bob, carol }) => {
    world.server.lie.event = (to, name, body) => (name === 'keys.confirmed' ? undefined : body);
    call.rotate();
    await world.run(5_000);
    assert.equal(alice.call.confirmation.state, 'confirming');
    await world.run(8_000);
    for (const client of [alice, bob, carol]) assert.equal(client.call.confirmation.state, 'not-confirmed');
    await world.assertAllHear();
    for (let i = 0; i < 130; i += 1) {
      call.rotate();
      await world.run(1_000);
    }
    assert.equal(alice.call.confirmation.state, 'not-confirmed', 'no epoch was ever confirmed');
    await world.assertAllHear();
  }));

row(43, () =>
  inCall(async ({ world, call, alice, bob, carol }) => {
    const { request } = carol;
    carol.request = (path, body) => request.call(carol, path, path.endsWith('keys/confirm') ? { ...body, tag: toBase64(random(16)) } : body);
    call.rotate();
    await world.run(4_000);
    for (const client of [alice, bob]) {
      assert.deepEqual(client.warnings.filter(({ problem }) => problem === 'wrong-confirmation').map(({ user }) => user), ['carol']);
      assert.deepEqual(client.call.confirmation.missing.map(({ user }) => user), ['carol']);
    }
    await world.assertAllHear();
  }));

/** Bob accepts `ring`, and the server simulates the call: does he send in epoch 1? */
async function answers(world, bob, ring) {
  bob.rung.push(ring);
  let joinId;
  const member = { user: 'alice', state: 'joined', participants: [{ participant: 1, device: 'd', connected: true, held: false, tracks: [] }] };
  world.server.lie.reply = (to, path, body, reply) => {
    if (to !== bob || !path.includes(ring.call)) return undefined;
    if (body.joinId) ({ joinId } = body);
    const own = { user: 'bob', state: 'joined', participants: [{ participant: 2, device: 'd', joinId, connected: true, held: false, tracks: [] }] };
    if (/accept|state/.test(path)) return { call: { id: ring.call, state: 'active', epoch: 1, policy: {}, members: [member, own], initiator: 'alice' }, ...own, participant: 2, ice: {} };
    return path.endsWith('/media') ? { sdp: '', tracks: body.tracks.map(({ mid }) => ({ mid, track: '2.1' })), receive: [], rev: 1 } : {};
  };
  bob.accept();
  await world.run(3_000);
  const epoch = bob.call?.epoch ?? 0;
  await isSilentUnless(bob, epoch === 1);
  bob.call?.giveUp();
  return epoch;
}

const isSilentUnless = async (client, speaks) => assert.equal((await client.say()) !== undefined, speaks);

/** A ring of Alice, as recorded by the server. */
async function recordedRing(world, alice, bob) {
  alice.start(['bob']);
  await world.until(() => bob.rung.length > 0);
  const ring = bob.rung.pop();
  alice.call.giveUp();
  return ring;
}

row(44, async () => {
  await inWorld(['alice', 'bob'], async (world, alice, bob) => {
    const ring = await recordedRing(world, alice, bob);
    assert.equal(await answers(world, bob, { ...ring, call: '7d1f0d6c-5a3e-4c0b-9b0e-2f64c1a8e3d4' }), 0, 'another call');
    assert.equal(await answers(world, bob, ring), 1, 'the good one');
    assert.equal(await answers(world, bob, ring), 0, 'used before');
  });
  await inWorld(['alice', 'bob'], async (world, alice, bob) => {
    const ring = await recordedRing(world, alice, bob);
    await world.run(24 * 3_600_000);
    assert.equal(await answers(world, bob, ring), 0, 'a day old');
  });
});

row(45, () =>
  inWorld(['alice', 'bob', 'carol'], async (world, alice, bob, carol) => {
    const ring = await recordedRing(world, alice, bob);
    assert.equal(await answers(world, bob, { ...ring, from: 'carol' }), 0);
    warns(bob, 'refused-ring');
    bob.warnings.length = 0;
    const { joinId, joinKey } = ring.list.find(({ user }) => user === 'alice');
    const list = ring.list.map((entry) => (entry.user === 'bob' ? { ...entry, participant: 2, joinId: toBase64(random(16)), joinKey } : entry));
    assert.equal(await answers(world, bob, { ...ring, list }), 0);
    warns(bob, 'refused-ring');
    assert.ok(joinId && carol);
  }));

row(46, () =>
  inWorld(['alice', 'bob'], async (world, alice, bob) => {
    world.server.lie.reply = (to, path, body, reply) =>
      path.endsWith('/start') ? { ...reply, call: { ...reply.call, id: '7d1f0d6c-5a3e-4c0b-9b0e-2f64c1a8e3d4' } } : undefined;
    alice.start(['bob']);
    await world.run(2_000);
    assert.deepEqual([alice.joinError?.code, alice.call, bob.ended], ['reply.refused', undefined, []]);
  }));

row(47, () =>
  inCall(async ({ world, call, bob, others: [dave] }) => {
    const rung = bob.rung.length;
    const { randomUUID } = crypto;
    crypto.randomUUID = () => call.id;
    dave.start(['bob']);
    await world.run(2_000);
    crypto.randomUUID = randomUUID;
    assert.equal(dave.joinError?.code, 'call.exists');
    assert.equal(bob.rung.length, rung);
    assert.match(randomUUID.call(crypto), /^[0-9a-f-]{36}$/);
  }, ['dave']));

row(49, async () => {
  for (const answer of [() => Promise.reject(Object.assign(new Error('no'), { code: 'internal' })), () => new Promise(() => {})]) {
    await inCall(async ({ world, call, alice, bob, carol, others: [dave] }) => {
      await alice.directory.verify([bob, carol].map((client) => entryOf(call, client)));
      alice.directory.verifiedOnly = true;
      alice.calls.reconsiderKeys();
      await world.run(500);
      await world.assertAllHear([alice, bob, carol]);
      world.server.lie.reply = (to, path) => (to === alice && path === 'devices/list' ? answer() : undefined);
      comes(call, dave);
      await world.run(4_000);
      for (let i = 0; i < 3; i += 1) {
        alice.calls.reconsiderKeys();
        await tell(world, alice, 'keys.switch', { call: call.id, epoch: call.epoch });
      }
      assert.equal(alice.call.stop?.cause, 'unverified');
      await isSilent(alice);
    }, ['dave']);
  }
});


