// The table of lies, rows about lists and numbers.

import assert from 'node:assert/strict';
import { load } from '../web.mjs';
import { announcement, comes, entryOf, envelopeBy, ghostEntry, inCall, isSilent, requestsOf, settled, slotOf, tell, warns } from './lying.mjs';
import { inWorld } from './world.mjs';

const { fromBase64, toBase64, concat, sha256 } = await load('wire/bytes.js');
const { JoinKeys } = await load('keys/join-keys.js');

export const rows = new Map();
const row = (n, run) => rows.set(n, run);

const swapped = (entries, mutate) => entries.map((entry) => mutate(entry) ?? entry);

/** Sends Bob a list that he must refuse: nothing changes, and he warns. */
const refused = (mutate, problem = 'refused-list') =>
  inCall(async (scene) => {
    const { world, call, bob } = scene;
    await tell(world, bob, 'keys.rotate', await mutate(scene));
    assert.deepEqual([bob.call.epoch, call.epoch], [2, 2]);
    if (problem) warns(bob, problem);
    await world.assertAllHear();
  }, ['dave']);

/** Sends Bob something that breaks his history: he warns and rejoins by himself, once; after that he waits for the person. */
const breaks = (mutate) =>
  inCall(async (scene) => {
    const { world, call, alice, bob, carol } = scene;
    for (const isFirst of [true, false]) {
      const { participant } = entryOf(call, bob);
      world.server.lie = {};
      await mutate(scene);
      world.server.lie = {};
      warns(bob, 'broken-history');
      if (isFirst) {
        await settled(world, call, [alice, bob, carol]);
        assert.ok(entryOf(call, bob).participant > participant, 'joined anew');
        await world.assertAllHear();
      } else {
        await world.run(5_000);
        assert.equal(entryOf(call, bob).participant, participant, 'not again by itself');
        assert.deepEqual([bob.call.stop.cause, bob.call.stop.needsPerson], ['broken-history', true]);
        await isSilent(bob);
      }
    }
  }, ['dave']);

row(1, async () => {
  const told = (reply, number, isShifted) => {
    const members = reply.call.members.map((member) => ({ ...member, participants: member.participants.map((seat) => ({ ...seat, participant: member.user === 'bob' ? number : seat.participant, tracks: [] })) }));
    return { ...reply, participant: number, call: { ...reply.call, members: isShifted ? members : reply.call.members } };
  };
  for (const [number, isShifted] of [[1, false], [3, false], [7, true]]) {
    await inWorld(['alice', 'bob'], async (world, alice, bob) => {
      world.server.lie.reply = (to, path, body, reply) => (to === bob && /accept|rejoin/.test(path) ? told(reply, number, isShifted) : undefined);
      alice.start(['bob']);
      await world.until(() => bob.rung.length > 0);
      bob.accept();
      for (let s = 0; s < 8; s += 1) {
        await bob.say();
        await alice.say();
        await world.run(1_000);
      }
      if (isShifted) warns(bob, 'refused-list');
      else assert.deepEqual([bob.joinError?.code, bob.call], ['reply.refused', undefined], 'the error says so');
    });
  }
});

row(2, () => refused(({ call, others: [dave] }) => ghostEntry(dave, call, 1).then(({ entry }) => announcement(call, { entries: [...call.newest.list, entry] }))));

row(3, () =>
  inCall(async ({ world, call, alice, bob, carol, others: [dave] }) => {
    const lie = (body) => {
      const [a, c] = [alice, carol].map((client) => entryOf(call, client).participant);
      const numbers = { [a]: c, [c]: a };
      const entries = swapped(body.list, (entry) => numbers[entry.participant] && { ...entry, participant: numbers[entry.participant] });
      return announcement(call, { epoch: 3, mode: 'ratchet', entries, previous: body.previous });
    };
    world.server.lie.event = (to, name, body) => (to === dave && name === 'keys.rotate' ? lie(body) : body);
    world.server.lie.reply = (to, path, body, reply) => (to === dave && path.endsWith('keys/list') ? lie(reply).then((list) => ({ ...reply, ...list })) : undefined);
    comes(call, dave);
    await world.run(16_000);
    warns(dave, 'no-key');
    warns(alice, 'unconfirmed');
    assert.equal(alice.call.confirmation.state, 'not-confirmed');
    assert.deepEqual(alice.call.confirmation.missing.map(({ user }) => user), ['dave']);
    await isSilent(dave);
    await world.assertAllHear([alice, bob, carol]);
  }, ['dave']));

row(4, async () => {
  for (const participant of [0, -1, 1.5, '2', 2 ** 32, 2 ** 53]) {
    await refused(async ({ world, call, bob, carol, others: [dave] }) => {
      const member = { ...call.members.get('carol'), participants: [{ ...call.members.get('carol').participants[0], participant }] };
      await tell(world, bob, 'call.member', { call: call.id, ...member, cause: 'held' });
      assert.equal(bob.call.roster.find(({ user }) => user === 'carol').participant, entryOf(call, carol).participant);
      const { entry } = await ghostEntry(dave, call, participant);
      return announcement(call, { entries: [...call.newest.list, entry] });
    });
  }
});

row(5, () =>
  inWorld(['alice', 'bob'], async (world, alice, bob) => {
    const lieTo = (member) => (member.user === 'bob' ? { ...member, participants: member.participants.map((seat) => ({ ...seat, participant: 1, tracks: [] })) } : member);
    world.server.lie.event = (to, name, body) => {
      if (name.startsWith('keys.')) return undefined;
      return to === alice && name === 'call.member' ? lieTo(body) : body;
    };
    alice.start(['bob']);
    await world.until(() => bob.rung.length > 0);
    bob.accept();
    await world.run(2_000);
    assert.equal(alice.call.epoch, 1);
    await bob.say();
    await alice.say();
    await world.run(500);
    assert.deepEqual(alice.heard, []);
  }));

row(6, async () => {
  for (const track of ['1.257', '2.-255', '01.1', '1.1', '2.0', '2.1.1', 2.1, '2.01']) {
    await inWorld(['alice', 'bob'], async (world, alice, bob) => {
      world.server.lie.reply = (to, path, body, reply) => (to === bob && path.endsWith('/media') ? { ...reply, tracks: reply.tracks.map((each) => ({ ...each, track })) } : undefined);
      await world.call(alice, bob);
      await isSilent(bob);
      warns(bob, 'refused-track');
    });
  }
});

row(7, async () => {
  for (const epoch of [2 ** 32 + 2, 2 ** 33 + 2, 2.5, 0, -1, '3']) await refused(({ call }) => announcement(call, { epoch }));
});

row(8, () =>
  inCall(async ({ world, call, alice, bob, carol }) => {
    const recorded = { ...call.newest };
    call.rotate();
    await world.until(() => call.epoch === 3 && bob.call.epoch === 3);
    await tell(world, bob, 'keys.rotate', { call: call.id, leader: 1, ...recorded });
    await tell(world, bob, 'keys.switch', { call: call.id, epoch: 2 });
    assert.equal(bob.call.epoch, 3);
    await world.assertAllHear([alice, bob, carol]);
    assert.deepEqual(bob.alarms, []);
  }));

row(9, () => breaks(async ({ world, call, bob, others: [dave] }) => {
  const { entry } = await ghostEntry(dave, call, 50);
  await tell(world, bob, 'keys.rotate', await announcement(call, { epoch: call.newest.epoch, previous: call.newest.previous, entries: [...call.newest.list, entry] }));
}));

row(10, () =>
  inCall(async ({ world, call, bob }) => {
    await world.assertAllHear();
    for (let i = 0; i < 3; i += 1) {
      await tell(world, bob, 'keys.rotate', { call: call.id, leader: 1, ...call.newest });
      await tell(world, bob, 'keys.switch', { call: call.id, epoch: call.epoch });
      await world.assertAllHear(undefined, `the ${i}. time`);
    }
    assert.deepEqual(bob.alarms, []);
  }));

row(11, () => breaks(async ({ world, call, bob }) => tell(world, bob, 'keys.rotate', await announcement(call, { previous: toBase64(new Uint8Array(32).fill(5)) }))));

row(12, () =>
  inCall(async ({ world, call, alice, bob, carol, others: [dave] }) => {
    const previous = toBase64(new Uint8Array(32).fill(5));
    const lie = (body) => announcement(call, { epoch: 3, mode: 'ratchet', entries: body.list, previous });
    world.server.lie.event = (to, name, body) => (to === dave && name === 'keys.rotate' ? lie(body) : body);
    comes(call, dave);
    await world.run(12_000);
    warns(dave, 'refused-envelope', 'no-key');
    await isSilent(dave);
    await world.assertAllHear([alice, bob, carol]);
  }, ['dave']));

row(13, () => breaks(async ({ world, call, bob }) => {
  const { epoch, listHash } = call.newest;
  world.server.lie.event = (to, name, body) => (to === bob && name.startsWith('keys.') ? undefined : body);
  call.rotate();
  await world.until(() => call.newest.epoch === epoch + 1);
  await world.run(100);
  const list = await announcement(call, { epoch: epoch + 2, previous: listHash });
  world.server.lie.reply = (to, path, body, reply) => (to === bob && path.endsWith('keys/list') ? { ...list, links: [...reply.links, { epoch: epoch + 2, roster: reply.links.at(-1).roster }], confirmed: [] } : undefined);
  await tell(world, bob, 'keys.rotate', list);
}));

row(14, async () => {
  await breaks(async ({ world, call, bob }) => {
    const list = await announcement(call, { epoch: call.newest.epoch + 3 });
    const links = [1, 2, 3].map((step) => ({ epoch: call.newest.epoch + step, roster: toBase64(new Uint8Array(32).fill(step)) }));
    world.server.lie.reply = (to, path) => (to === bob && path.endsWith('keys/list') ? { ...list, links, confirmed: [] } : undefined);
    await tell(world, bob, 'keys.rotate', list);
  });
  await breaks(async ({ world, call, bob }) => {
    const list = await announcement(call, { epoch: call.newest.epoch + 1_001 });
    world.server.lie.reply = (to, path) => (to === bob && path.endsWith('keys/list') ? { ...list, links: [], confirmed: [] } : undefined);
    await tell(world, bob, 'keys.rotate', list);
  });
});

/** Epoch 3 is a ratchet, since Eve has joined. The leader also sees Dave, whom the server hides from Bob and Carol. */
async function split({ world, call, bob, carol, others: [dave, eve] }) {
  const isVictim = (to) => to === bob || to === carol;
  const hidden = ({ newest: { list, previous } }) => announcement(call, { epoch: 3, mode: 'ratchet', entries: list.filter(({ user }) => user !== 'dave'), previous });
  world.server.lie.event = (to, name, body) => {
    if (!isVictim(to)) return body;
    if (name === 'call.member' && body.user === 'dave') return undefined;
    if (name === 'media.slots' || name === 'track.added') return undefined;
    return name === 'keys.rotate' && body.epoch === 3 ? hidden(call) : body;
  };
  comes(call, dave);
  comes(call, eve);
  await world.until(() => call.epoch === 3 && dave.call?.epoch === 3);
}

row(15, () =>
  inCall(async (scene) => {
    const { world, alice, bob, carol, others: [dave, eve] } = scene;
    await split(scene);
    for (let s = 0; s < 15; s += 1) {
      for (const client of [alice, bob, carol, dave, eve]) await client.say();
      await world.run(1_000);
    }
    for (const client of [alice, bob, carol]) warns(client, 'unconfirmed');
    assert.deepEqual(bob.call.confirmation.missing.map(({ user }) => user), ['alice', 'eve']);
    assert.ok(!dave.heard.some(({ said, at }) => /^(bob|carol)/.test(said) && at > 0), 'the ghost hears only those who see it');
  }, ['dave', 'eve']));

row(16, () =>
  inCall(async (scene) => {
    const { world, call, bob, carol } = scene;
    await split(scene);
    world.server.lie = {};
    call.rotate();
    await world.run(3_000);
    for (const client of [bob, carol]) warns(client, 'broken-history');
  }, ['dave', 'eve']));

row(17, () =>
  inCall(async ({ world, call, alice, bob, carol, others: [dave, eve] }) => {
    world.server.lie.event = (to, name, body) => (to === bob && name.startsWith('keys.') ? undefined : body);
    comes(call, dave);
    await world.until(() => call.epoch === 3 && dave.call?.epoch === 3);
    const requests = requestsOf(bob);
    world.server.lie = {};
    comes(call, eve);
    await settled(world, call, [alice, bob, carol, dave, eve]);
    assert.equal(call.newest.mode, 'ratchet');
    assert.ok(requests.some(({ path }) => path === 'keys/list') && requests.some(({ path }) => path === 'keys/request'), 'asked, not ratcheted');
    await world.run(2_000);
    assert.deepEqual(bob.alarms.filter((problem) => problem !== 'unconfirmed'), []);
  }, ['dave', 'eve']));

row(18, () => refused(({ call, carol }) => announcement(call, { mode: 'ratchet', entries: call.newest.list.filter(({ user }) => user !== carol.user) })));

row(19, () =>
  inWorld(['alice', 'bob'], async (world, alice, bob) => {
    world.server.lie.event = (to, name, body) => (name === 'keys.rotate' ? { ...body, mode: 'ratchet' } : body);
    alice.start(['bob']);
    await world.until(() => bob.rung.length > 0);
    bob.accept();
    await world.run(3_000);
    for (const client of [alice, bob]) {
      assert.equal(client.call.epoch, 1);
      warns(client, 'refused-list');
    }
  }));

row(20, async () => {
  await refused(({ call, carol }) => announcement(call, { entries: [...call.newest.list, { ...entryOf(call, carol), participant: 50 }] }));
  await refused(async ({ call, others: [dave] }) => {
    const { entry } = await ghostEntry(dave, call, 50);
    return announcement(call, { entries: [...call.newest.list, { ...entry, user: 'bob', device: 'd' }] });
  });
  await refused(async ({ call, bob, others: [dave] }) => {
    const { entry } = await ghostEntry(dave, call, entryOf(call, bob).participant);
    return announcement(call, { entries: swapped(call.newest.list, ({ user }) => user === 'bob' && { ...entry, user: 'bob', device: 'd' }) });
  });
});

row(21, () => refused(async ({ call, carol, others: [dave] }) => {
  const own = entryOf(call, carol);
  const { entry } = await ghostEntry(dave, call, 50);
  const long = concat(fromBase64(own.joinId), await sha256(fromBase64(own.joinKey.publicKey)), fromBase64(entry.fingerprint), fromBase64(entry.joinId));
  return announcement(call, { entries: swapped(call.newest.list, ({ user }) => user === 'carol' && { ...own, joinId: toBase64(long) }) });
}));

row(22, async () => {
  await refused(({ call }) => announcement(call, { entries: call.newest.list.filter(({ user }) => user !== 'bob') }), 'removed-from-list');
  await refused(({ call, carol }) => announcement(call, { entries: swapped(call.newest.list, (entry) => entry.user === 'bob' && { ...entry, joinKey: entryOf(call, carol).joinKey }) }));
  await inCall(async ({ world, call, alice, bob, carol }) => {
    const before = entryOf(call, bob).participant;
    const bobs = structuredClone(call.members.get('bob'));
    world.server.lie.reply = (to, path, body, reply) =>
      to === bob && path.endsWith('/state') ? { ...reply, members: reply.members.map((member) => (member.user === 'bob' ? { ...bobs, participants: [] } : member)) } : undefined;
    await tell(world, bob, 'keys.rotate', await announcement(call, { entries: call.newest.list.filter(({ user }) => user !== 'bob') }));
    await world.until(() => entryOf(call, bob).participant > before);
    world.server.lie = {};
    await settled(world, call, [alice, bob, carol]);
    await world.assertAllHear(undefined, 'joined anew');
  });
});

row(23, async () => {
  await refused(async ({ call, others: [dave] }) => {
    const { entry } = await ghostEntry(dave, call, 50);
    return announcement(call, { entries: [...call.newest.list, { ...entry, joinKey: undefined }] });
  });
  for (const another of ['7d1f0d6c-5a3e-4c0b-9b0e-2f64c1a8e3d4', undefined]) {
    await inCall(async ({ world, call, alice, others: [dave] }) => {
      const { entry, keys } = await ghostEntry(dave, call, 50);
      const join = await JoinKeys.make(dave.identity, another ?? call.id);
      const bad = { ...entry, joinKey: join.wire.joinKey };
      const requests = requestsOf(alice);
      await tell(world, alice, 'keys.rotate', { ...(await announcement(call, { entries: [...call.newest.list, bad] })), deliver: [{ ...bad, keys }] });
      warns(alice, 'bad-join-key');
      assert.deepEqual(requests.filter(({ path }) => path === 'keys').flatMap(({ body }) => body.envelopes), []);
    }, ['dave']);
  }
});

row(24, async () => {
  await refused(({ call }) => announcement(call, { entries: swapped(call.newest.list, (entry) => entry.user === 'alice' && { ...entry, participant: 50 }) }));
  await refused(async ({ call, alice }) => {
    const { wire } = await JoinKeys.make(alice.identity, call.id);
    return announcement(call, { entries: swapped(call.newest.list, (entry) => entry.user === 'alice' && { ...entry, joinKey: wire.joinKey }) });
  });
  await inCall(async ({ world, call, alice, bob, carol }) => {
    const gone = entryOf(call, carol);
    carol.call.leave();
    await settled(world, call, [alice, bob]);
    await tell(world, bob, 'keys.rotate', await announcement(call, { entries: [...call.newest.list, gone] }));
    warns(bob, 'refused-list');
    await world.assertAllHear([alice, bob]);
  });
});

/** Waits for epochs until Bob's join key has been refreshed and the leader has sealed to it. */
async function refreshed({ world, call, alice, bob, carol }) {
  await world.run(250_000);
  call.rotate();
  await settled(world, call, [alice, bob, carol]);
  await world.run(3_000);
  call.rotate();
  await settled(world, call, [alice, bob, carol]);
  assert.ok(call.stayOf(bob).refresh?.generation >= 1, 'refreshed');
}

row(25, () =>
  inCall(async (scene) => {
    const { world, call, alice, bob } = scene;
    await refreshed(scene);
    const lies = [({ refresh, ...entry }) => entry, (entry) => ({ ...entry, refresh: { ...entry.refresh, publicKey: bob.identity.keys[0].publicKey } })];
    for (const lie of lies) {
      const requests = requestsOf(alice);
      alice.warnings.length = 0;
      const isBobs = ({ user }) => user === 'bob';
      world.server.lie.event = (to, name, body) => (to === alice && body.deliver ? { ...body, deliver: body.deliver.map((entry) => (isBobs(entry) ? lie(entry) : entry)) } : name === 'keys.request' ? undefined : body);
      call.rotate();
      await world.run(3_000);
      assert.ok(!requests.filter(({ path }) => path === 'keys').flatMap(({ body }) => body.envelopes).some(({ to }) => isBobs(to)), 'sealed nothing');
      delete alice.request;
    }
  }));

row(26, () =>
  inCall(async (scene) => {
    const { world, alice, bob, carol } = scene;
    await refreshed(scene);
    // Bob leads next, and has not seen Carol's newer key: only the server could tell him.
    alice.call.leave();
    world.server.lie.event = (to, name, body) => {
      const strip = ({ refresh, ...entry }) => entry;
      return { ...body, ...(body.deliver ? { deliver: body.deliver.map(strip) } : {}), ...(body.to ? { to: strip(body.to) } : {}) };
    };
    await world.run(10_000);
    warns(carol, 'withheld-join-key', 'refused-envelope', 'no-key');
    await isSilent(carol);
    assert.ok(await bob.say());
  }));

row(67, () =>
  inWorld(['alice', 'bob'], async (world, alice, bob) => {
    world.server.lie.reply = (to, path, body, reply) => (path.endsWith('/start') ? { ...reply, participant: 2 } : undefined);
    alice.start(['bob']);
    await world.run(2_000);
    assert.equal(alice.joinError?.code, 'reply.refused');
    assert.equal(alice.call, undefined);
    assert.ok(bob);
  }));

row(68, () => refused(({ call }) => announcement(call, { entries: [...call.newest.list].reverse(), isSorted: false })));

row(69, async () => {
  await refused(async ({ call }) => ({ ...(await announcement(call)), list: undefined, added: [], removed: [99] }));
  await refused(async ({ call, carol }) => ({ ...(await announcement(call)), list: undefined, added: [entryOf(call, carol)], removed: [] }));
});

row(70, () =>
  inCall(async ({ world, call, alice, bob, others: [dave] }) => {
    const { entry, keys } = await ghostEntry(dave, call, 50);
    const requests = requestsOf(alice);
    const sealed = () => requests.filter(({ path }) => path === 'keys').flatMap(({ body }) => body.envelopes);
    await tell(world, alice, 'keys.request', { call: call.id, epoch: 2, to: { ...entry, keys } });
    const other = { ...entryOf(call, bob), joinKey: entry.joinKey, keys: bob.identity.keys };
    await tell(world, alice, 'keys.request', { call: call.id, epoch: 2, to: other });
    await tell(world, alice, 'keys.rotate', { ...(await announcement(call)), deliver: [{ ...entry, keys }] });
    assert.deepEqual(sealed(), []);
    assert.ok(slotOf(call, alice, bob) && envelopeBy);
  }, ['dave']));
