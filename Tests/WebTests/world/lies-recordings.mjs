// The table of lies, rows about a call's recording (protocol section 13.7).

import assert from 'node:assert/strict';
import { load } from '../web.mjs';
import { announcement, comes, entryOf, ghostEntry, inCall, isSilent, requestsOf, settled, tell, warns } from './lying.mjs';
import { capture, captured, readable, speakersOf } from './readers.mjs';

const { makeRecordingKey } = await load('consent/grants.js');
const { makeStatement } = await load('consent/statement.js');
const { random, toBase64 } = await load('wire/bytes.js');

export const rows = new Map();
const row = (n, run) => rows.set(n, run);

/** Lets time go by until `promise` is settled, and returns what it brought, or the error. */
async function wait(world, promise) {
  let result;
  promise.then((value) => (result = { value }), (error) => (result = { error }));
  await world.until(() => result, 5_000);
  return result ?? {};
}

const isAsked = ({ call }) => Boolean(call?.recording) && !call.recording.isOwn && call.recording.answer === undefined;
const agree = (world, client, media = ['audio']) => wait(world, client.call.answerRecording(client.call.recording.id, media));
const isRecorded = (client) => client.call.exported.length > 0;
const keysOf = (requests) => requests.filter(({ path }) => path === 'record/keys').map(({ body }) => body);

/** Alice records, and Bob and Carol are asked. */
const recorded = (action, more) =>
  inCall(async (scene) => {
    const { world, alice, bob, carol } = scene;
    await wait(world, alice.call.record({ media: ['audio'], readers: ['bob'] }));
    await world.until(() => isAsked(bob) && isAsked(carol));
    await action(scene);
  }, more);

/** The same once Bob has agreed, and his key of the epoch in use is handed out. */
const agreed = (action, more) =>
  recorded(async (scene) => {
    const { world, call, alice, bob, carol } = scene;
    await agree(world, bob);
    await world.until(() => isRecorded(bob) && call.epoch === call.newest.epoch);
    await settled(world, call, [alice, bob, carol]);
    await action(scene);
  }, more);

/** Starts the next epoch, and waits until all of `clients` use it. */
async function rotate({ world, call }, clients) {
  call.rotate();
  await world.run(300);
  await settled(world, call, clients);
}

/** A statement of `client` about a recording of `call`, as it would sign it. */
async function statementOf(client, call, options = {}) {
  const { publicKey } = await makeRecordingKey();
  const { statement } = await makeStatement(client.identity, { id: crypto.randomUUID(), kind: 'call', call: call.id, publicKey, media: ['audio'], readers: [client.user], at: Date.now(), ...options });
  return statement;
}

const startedBy = async (scene, to, statement) => tell(scene.world, to, 'recording.started', { call: scene.call.id, rev: scene.call.rev + 1, statement, since: Date.now() });

/** Bob is told of `statement`, is not asked, and is warned. */
async function isRefused(scene, statement) {
  await startedBy(scene, scene.bob, statement);
  await scene.world.run(4_000);
  assert.equal(scene.bob.call.recording, undefined, 'Bob is not asked');
  warns(scene.bob, 'refused-recording');
}

const changed = (change) =>
  inCall(async (scene) => {
    const statement = await statementOf(scene.alice, scene.call);
    await isRefused(scene, { ...statement, ...(await change(statement, scene)) });
  });

row(440, async () => {
  await changed(async () => ({ publicKey: toBase64((await makeRecordingKey()).publicKey) }));
  await changed((statement) => ({ readers: [...statement.readers, 'server'] }));
  await changed(() => ({ by: { user: 'carol', device: 'd' } }));
  await changed(() => ({ media: ['audio', 'video'] }));
  await changed(() => ({ at: Date.now() + 3_600_000 }));
  await changed(() => ({ id: crypto.randomUUID() }));
});

row(441, async () => {
  await inCall(async (scene) => {
    const [stranger] = scene.others;
    await isRefused(scene, await statementOf(stranger, scene.call));
  }, ['stranger']);
  await inCall(async (scene) => {
    const { world } = scene;
    // A device of Alice that the server made up signs with other keys than those that Bob has pinned.
    const ghost = await world.add('alice', { generation: 7 });
    world.clients.splice(world.clients.indexOf(ghost), 1);
    await isRefused(scene, await statementOf(ghost, scene.call));
  });
  await inCall(async (scene) => {
    // A ghost on the list whom nobody let in.
    const { world, call, bob, others: [ghost] } = scene;
    const { entry } = await ghostEntry(ghost, call, 66);
    await settled(world, call, [scene.alice, bob, scene.carol]);
    const told = await announcement(call, { entries: [...call.newest.list, entry] });
    await tell(world, bob, 'keys.rotate', told);
    await tell(world, bob, 'keys.switch', { call: call.id, rev: call.rev + 1, epoch: told.epoch });
    assert.ok(bob.call.devices.some(({ user }) => user === 'ghost'), 'it is on the list in use');
    await isRefused(scene, await statementOf(ghost, call));
  }, ['ghost']);
});

row(442, async () => {
  await inCall(async (scene) => isRefused(scene, await statementOf(scene.alice, { id: crypto.randomUUID() })));
  await agreed(async ({ world, call, alice, bob }) => {
    const { statement } = call.recording;
    await wait(world, alice.call.stopRecording());
    await world.until(() => !bob.call.recording);
    await startedBy({ world, call }, bob, statement);
    assert.equal(bob.call.recording, undefined, 'one that has ended is not asked for again');
    warns(bob, 'refused-recording');
  });
  // A newcomer cannot know that it has ended: it is asked, and hands out nothing.
  await agreed(async (scene) => {
    const { world, call, alice, bob, carol, others: [dave] } = scene;
    const { statement, state } = { statement: call.recording.statement, state: call.recording.state };
    await wait(world, alice.call.stopRecording());
    world.server.lie.reply = (to, path, body, reply) => {
      if (to !== dave) return undefined;
      if (path.endsWith('/join')) return { ...reply, call: { ...reply.call, recording: state } };
      return path.includes('/record/') ? { epoch: call.newest.epoch } : undefined;
    };
    const requests = requestsOf(dave);
    comes(call, dave);
    await world.until(() => isAsked(dave));
    assert.equal(dave.call.recording.id, statement.id);
    await agree(world, dave);
    for (let epoch = 0; epoch < 2; epoch += 1) await rotate(scene, [alice, bob, carol, dave]);
    await world.run(16_000);
    assert.equal(dave.call.recording.lack, 'no-word');
    assert.deepEqual(keysOf(requests), []);
  }, ['dave']);
});

row(443, () =>
  inCall(async (scene) => {
    const { world, call, alice, bob, carol } = scene;
    world.server.lie.event = (to, name, body) => (to === carol && name.startsWith('recording.') ? undefined : body);
    await wait(world, alice.call.record({ media: ['audio'], readers: ['bob'] }));
    await world.until(() => isAsked(bob));
    await agree(world, bob);
    await settled(world, call, [alice, bob, carol]);
    await world.until(() => isRecorded(bob));
    const frames = capture(world);
    for (const client of [alice, bob, carol]) await client.say();
    assert.equal(carol.call.recording, undefined);
    const entries = call.newest.list.map((entry) => ({ ...entry, keys: world.server.client(entry.user).identity.keys }));
    assert.deepEqual(speakersOf(await readable(captured(call), frames, { reader: bob, starter: alice, entries })), ['alice/d', 'bob/d']);
  }));

row(444, () =>
  recorded(async (scene) => {
    const { world, call, alice, bob, carol } = scene;
    const requests = requestsOf(carol);
    await tell(world, alice, 'recording.consent', { call: call.id, rev: call.rev + 1, recording: call.recording.statement.id, participant: entryOf(call, carol).participant, media: ['audio'] });
    assert.equal(alice.call.recordedOf(entryOf(call, carol).participant), 'told', 'it is the server’s word, and not shown as more');
    await rotate(scene, [alice, bob, carol]);
    assert.deepEqual(keysOf(requests), []);
    assert.deepEqual(carol.call.exported, []);
  }));

row(445, () =>
  recorded(async (scene) => {
    const { world, call, alice, bob, carol } = scene;
    await settled(world, call, [alice, bob, carol]);
    await world.run(1_000);
    const requests = requestsOf(bob);
    const before = bob.call.epoch;
    // The server says that only an epoch from long before had been announced.
    world.server.lie.reply = (to, path, body, reply) => (to === bob && path.endsWith('/record/consent') ? { epoch: 1 } : undefined);
    await tell(world, bob, 'recording.running', { call: call.id, rev: call.rev + 1, ...call.recording.word });
    assert.equal(call.recording.word.epoch, before, 'the starter has given its word for the epoch in use');
    await agree(world, bob);
    await rotate(scene, [alice, bob, carol]);
    await world.until(() => isRecorded(bob));
    assert.ok(keysOf(requests).length > 0);
    assert.ok(keysOf(requests).every(({ epoch }) => epoch > before), 'nothing of an epoch from before the consent');
    assert.ok(keysOf(requests).every(({ tracks }) => tracks.length === 1 && tracks[0] !== 0), 'only the microphone');
  }));

row(446, () =>
  recorded(async ({ world, call, alice, bob, carol }) => {
    await settled(world, call, [alice, bob, carol]);
    await world.run(1_000);
    const requests = requestsOf(bob);
    call.rotate = () => {};
    await agree(world, bob);
    await world.run(6_000);
    assert.equal(bob.call.recording.lack, 'no-epoch');
    assert.deepEqual(keysOf(requests), []);
  }));

row(447, async () => {
  // An old word of the starter is told as one for the new epoch.
  await agreed(async (scene) => {
    const { world, call, alice, bob, carol } = scene;
    const old = { ...call.recording.word };
    world.server.lie.event = (to, name, body) => (to === bob && name === 'recording.running' ? { ...body, ...old, epoch: body.epoch } : body);
    await rotate(scene, [alice, bob, carol]);
    await world.run(3_000);
    assert.deepEqual(bob.call.exported, []);
    warns(bob, 'refused-recording');
  });
  // The starter has left, and the server says that it is there.
  await agreed(async (scene) => {
    const { world, call, alice, bob, carol } = scene;
    const requests = requestsOf(bob);
    world.server.lie.event = (to, name, body) => (name === 'recording.stopped' ? undefined : body);
    alice.call.leave();
    await world.run(2_000);
    await settled(world, call, [bob, carol]);
    await rotate(scene, [bob, carol]);
    assert.deepEqual(keysOf(requests), []);
    assert.deepEqual(bob.call.exported, []);
  });
  // Another member gives the word.
  await agreed(async (scene) => {
    const { world, call, alice, bob, carol } = scene;
    world.server.lie.event = (to, name, body) => {
      if (to !== bob || name !== 'recording.running') return body;
      return carol.identity.sign(random(32)).then(({ sigAlg, signature }) => ({ ...body, sigAlg, signature: toBase64(signature) }));
    };
    await rotate(scene, [alice, bob, carol]);
    await world.run(3_000);
    assert.deepEqual(bob.call.exported, []);
  });
});

row(448, () =>
  agreed(async (scene) => {
    const { world, alice, bob, carol } = scene;
    world.server.lie.event = (to, name, body) => (name === 'recording.stopped' ? undefined : body);
    await wait(world, alice.call.stopRecording());
    assert.equal(alice.call.recording, undefined);
    await rotate(scene, [alice, bob, carol]);
    await world.run(3_000);
    assert.deepEqual([alice.call.exported, bob.call.exported], [[], []], 'without the starter’s word nothing is handed out');
  }));

row(449, () =>
  agreed(async (scene) => {
    const { world, call, alice, bob, carol } = scene;
    const { rotate: next } = call;
    call.rotate = () => {};
    await agree(world, bob, []);
    await world.run(5_000);
    assert.ok(await bob.say(), 'the server has some time');
    await world.run(6_000);
    assert.equal(bob.call.stop?.cause, 'withdrawn');
    await isSilent(bob);
    assert.ok(await alice.say());
    assert.deepEqual(bob.call.exported, ['audio'], 'the own mark stays while the key is in use');
    call.rotate = next;
    await rotate(scene, [alice, carol]);
    await world.until(() => !bob.call.stop);
    assert.ok(await bob.say(), 'with another key it goes on by itself');
  }));

row(450, () =>
  agreed(async (scene) => {
    const { world, call, alice, bob, carol } = scene;
    await tell(world, bob, 'recording.consent', { call: call.id, rev: call.rev + 1, recording: call.recording.statement.id, participant: entryOf(call, bob).participant, media: [] });
    assert.equal(bob.call.recordedOf(bob.call.participant), 'exported', 'the own mark is what this device hands out');
    assert.ok(isRecorded(bob));
    // The word is kept from Carol, who agrees.
    world.server.lie.event = (to, name, body) => (to === carol && name === 'recording.running' ? undefined : body);
    await agree(world, carol);
    await rotate(scene, [alice, bob, carol]);
    await world.run(3_000);
    assert.deepEqual(carol.call.exported, []);
  }));

row(451, () =>
  agreed(async (scene) => {
    // The statement under which Bob agreed is replaced by one with other readers and the same id, which Alice has signed, too.
    const { world, call, alice, bob, carol } = scene;
    const { id } = call.recording.statement;
    const swapped = await statementOf(alice, call, { id, readers: ['alice', 'server'] });
    const requests = requestsOf(bob);
    await startedBy(scene, bob, swapped);
    warns(bob, 'refused-recording');
    assert.deepEqual(bob.call.recording.readers, ['alice', 'bob'], 'what the person agreed to stays');
    await rotate(scene, [alice, bob, carol]);
    await world.run(1_000);
    assert.ok(keysOf(requests).length > 0, 'and goes on, for these readers');
    // One with another id is another question: nothing is handed out for it before the answer.
    const other = await statementOf(alice, call, { readers: ['alice', 'server'] });
    await startedBy(scene, bob, other);
    await world.until(() => bob.call.recording?.id === other.id);
    assert.ok(isAsked(bob), 'it is asked again');
    const count = keysOf(requests).length;
    await rotate(scene, [alice, bob, carol]);
    await world.run(1_000);
    assert.equal(keysOf(requests).length, count);
  }));

row(452, () =>
  recorded(async (scene) => {
    const { world, call, bob } = scene;
    await agree(world, bob, []);
    const warned = bob.warnings.length;
    for (let time = 0; time < 20; time += 1) await startedBy(scene, bob, call.recording.statement);
    assert.deepEqual(bob.call.recording.answer, [], 'a request that was answered is not made again');
    assert.equal(bob.warnings.length, warned);
  }));

row(453, () =>
  recorded(async (scene) => {
    // Alice's own statement comes to her as one that runs, after she has stopped it, or since before her page was loaded.
    const { world, call, alice, bob, carol } = scene;
    const { statement } = call.recording;
    await wait(world, alice.call.stopRecording());
    const requests = requestsOf(alice);
    await startedBy(scene, alice, statement);
    await startedBy(scene, alice, await statementOf(alice, call));
    await rotate(scene, [alice, bob, carol]);
    await world.run(3_000);
    assert.equal(alice.call.recording, undefined);
    assert.deepEqual(keysOf(requests), [], 'no word for it');
    assert.ok(requests.some(({ path }) => path === 'record/stop'));
  }));

row(454, () =>
  agreed(async (scene) => {
    // The state says again and again that Bob has not agreed: his device says it again, but not without end.
    const { world, call, bob } = scene;
    const requests = requestsOf(bob);
    for (let time = 0; time < 50; time += 1) {
      const { state } = call.recording;
      await tell(world, bob, 'call.state', { ...call.state(), rev: call.rev + 1 + time, recording: { ...state, consents: [] } });
    }
    assert.ok(requests.filter(({ path }) => path === 'record/consent').length <= 15_000 / 2_000 + 1, `${requests.length} requests`);
    assert.ok(isRecorded(bob));
  }));
