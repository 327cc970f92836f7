// The table of lies, rows about who lets whom in (protocol section 5.13).

import assert from 'node:assert/strict';
import { load } from '../web.mjs';
import { comes, entryOf, envelopeBy, inCall, isSilent, requestsOf, settled, tell, warns } from './lying.mjs';
import { inWorld } from './world.mjs';

const { fromBase64, random, toBase64 } = await load('wire/bytes.js');
const { Refusal } = await load('wire/checks.js');
const { makeStatement } = await load('trust/vouching.js');
const { LinkSecret, admitWord, makeLinkWord, makeWord } = await load('trust/words.js');

export const rows = new Map();
const row = (n, run) => rows.set(n, run);

const isListed = (client, user) => client.call.devices.some((device) => device.user === user);
const tileOf = (client, user, device = 'd') => client.call.tiles().find((tile) => tile.member?.user === user && tile.device === device);
const admissionOf = (client, user) => client.call.devices.find((device) => device.user === user)?.admission;
const signerOf = (client) => client.asDevice();
const flipped = (text) => {
  const bytes = fromBase64(text);
  bytes[5] ^= 1;
  return toBase64(bytes);
};

/** From now on the server sends `word`, and says that `client` has signed it. */
const says = (call, word, client) => call.words.set(word.user ?? word.link, { word, signer: client && signerOf(client) });

/** `ghost` is listed, and as far as `victim` knows nobody has let it in: the victim shows that, gives it no key, and stops. */
async function isUninvited({ world, victim, ghost, requests, device = 'd' }) {
  assert.ok(await world.until(() => isListed(victim, ghost)), 'the ghost is listed');
  await world.run(300);
  assert.equal(tileOf(victim, ghost, device)?.doubt, 'uninvited');
  assert.equal(tileOf(victim, ghost, device)?.admission, undefined);
  warns(victim, 'uninvited');
  assert.ok(await victim.say(), 'for five seconds it may be a delay');
  await world.until(() => victim.call.stop, 8_000);
  assert.equal(victim.call.stop?.cause, 'uninvited');
  await isSilent(victim);
  const given = requests.filter(({ path }) => path === 'keys').flatMap(({ body }) => body.envelopes.map(({ to }) => `${to.user}/${to.device}`));
  assert.ok(!given.includes(`${ghost}/${device}`), 'it gets no key');
}

/** Dave joins with the words that `lie(scene)` makes, and Alice considers him uninvited. */
const withWords = (lie, more = []) =>
  inCall(async (scene) => {
    const { world, call, alice, others: [dave] } = scene;
    const requests = requestsOf(alice);
    await lie(scene);
    comes(call, dave, { isUninvited: true });
    await isUninvited({ world, victim: alice, ghost: 'dave', requests });
  }, ['dave', ...more]);

row(400, () => withWords(() => {}));

row(401, async () => {
  await withWords(async ({ call, bob }) => says(call, await makeWord(bob.identity, crypto.randomUUID(), 'dave'), bob));
  await withWords(async ({ call, bob }) => says(call, { ...(await makeWord(bob.identity, call.id, 'zoe')), user: 'dave' }, bob));
  await withWords(async ({ call, bob }) => {
    const word = await makeWord(bob.identity, call.id, 'dave');
    says(call, { ...word, signature: flipped(word.signature) }, bob);
  });
});

/** One client gets no words. */
function withhold(world, victim, isWithheld = (_word) => true) {
  const without = (body) => ({ ...body, admissions: body.admissions?.filter((word) => !isWithheld(word)) });
  world.server.lie.event = (to, name, body) => (to === victim && ['keys.rotate', 'call.ring'].includes(name) ? without(body) : body);
  world.server.lie.reply = (to, path, body, reply) => (to === victim && path.endsWith('keys/list') ? without(reply) : undefined);
}

row(402, () =>
  inCall(async ({ world, call, alice, bob, others: [dave] }) => {
    const requests = requestsOf(alice);
    withhold(world, alice);
    comes(call, dave);
    await isUninvited({ world, victim: alice, ghost: 'dave', requests });
    assert.deepEqual(admissionOf(bob, 'dave'), { how: 'member', by: 'alice' }, 'the others were told');
    assert.ok(await bob.say());
    world.server.lie = {};
    await alice.call.sendAnyway(alice.call.stop.devices);
    assert.ok(await alice.say(), 'the person may continue');
  }, ['dave']));

row(403, () =>
  withWords(async ({ call, others: [, mallory] }) => {
    says(call, await makeWord(mallory.identity, call.id, 'dave'), mallory);
    says(call, await makeWord(mallory.identity, call.id, 'mallory'), mallory);
  }, ['mallory']));

row(404, async () => {
  await withWords(async ({ call, others: [dave, erin] }) => {
    says(call, await makeWord(erin.identity, call.id, 'dave'), erin);
    says(call, await makeWord(dave.identity, call.id, 'erin'), dave);
    comes(call, erin, { isUninvited: true });
  }, ['erin']);
  await withWords(async ({ call, others: [, ...links] }) => {
    for (const [at, link] of links.entries()) says(call, await makeWord(link.identity, call.id, ['dave', ...links.map(({ user }) => user)][at]), link);
  }, ['u1', 'u2', 'u3', 'u4']);
});

row(405, () =>
  withWords(async ({ world, call }) => {
    const tablet = await world.add('bob', { device: 'tablet' });
    says(call, await makeWord(tablet.identity, call.id, 'dave'), tablet);
  }));

row(406, async () => {
  await withWords(async ({ world, call, bob }) => {
    const other = await world.add('bob', { generation: 1 });
    world.server.register(bob);
    says(call, await makeWord(other.identity, call.id, 'dave'), other);
  });
  await withWords(async ({ call, bob, others: [dave] }) => {
    const word = { ...(await makeWord(dave.identity, call.id, 'dave')), fingerprint: signerOf(bob).fingerprint };
    call.words.set('dave', { word, signer: { ...signerOf(bob), keys: dave.identity.keys } });
  });
});

row(407, () =>
  inCall(async ({ world, call, alice, bob, others: [dave, erin] }) => {
    await call.letIn('dave', bob);
    comes(call, dave, { isUninvited: true });
    await world.until(() => isListed(alice, 'dave'));
    assert.deepEqual(admissionOf(alice, 'dave'), { how: 'member', by: 'bob' });
    void bob.call.leave();
    await world.until(() => !isListed(alice, 'bob'));
    const { device, fingerprint } = bob.asDevice();
    const statement = { ...(await makeStatement('revoke', bob.identity, { device, fingerprint }, Date.now())), user: 'bob', by: device, byFingerprint: fingerprint };
    world.server.lie.reply = (to, path, body, reply) => (to === alice && path === 'devices/list' && body.users.includes('bob') ? { ...reply, revokes: [statement] } : undefined);
    void alice.directory.devicesOf(['bob']);
    await world.run(500);
    const requests = requestsOf(alice);
    await call.letIn('erin', bob);
    comes(call, erin, { isUninvited: true });
    await isUninvited({ world, victim: alice, ghost: 'erin', requests });
    assert.deepEqual(alice.call.stop.devices.map(({ user }) => user), ['erin'], 'Dave was let in before');
  }, ['dave', 'erin']));

/** Alice rings Bob, who answers; `change(body)` changes his ring. */
const rings = (users, change, action) =>
  inWorld(['alice', 'bob', ...users], async (world, alice, bob, ...others) => {
    world.server.lie.event = async (to, name, body) => (to === bob && name === 'call.ring' ? change(body, { alice, bob, others }) : body);
    alice.start(['bob']);
    await world.until(() => bob.rung.length > 0);
    const ringLie = world.server.lie.event;
    bob.accept();
    await action({ world, alice, bob, others, call: [...world.server.calls.values()][0], ringLie });
  });

row(408, async () => {
  const bySomebodyElse = async (body, { others: [carol] }) => ({
    ...body, admissions: [await makeWord(carol.identity, body.call, 'bob'), await makeWord(carol.identity, body.call, 'carol')], signers: [signerOf(carol)],
  });
  for (const change of [(body) => ({ ...body, admissions: undefined }), bySomebodyElse]) {
    await rings(['carol'], change, async ({ world, bob }) => {
      world.server.lie.event = (to, name, body) => (to === bob && name === 'keys.rotate' ? { ...body, admissions: undefined } : body);
      world.server.lie.reply = (to, path, body, reply) => (to === bob && path.endsWith('keys/list') ? { ...reply, admissions: undefined } : undefined);
      await world.until(() => bob.call?.epoch === 2);
      assert.ok(!bob.secrets.some(({ epoch }) => epoch === 1), 'the envelope of the ring is not used');
      await world.until(() => bob.call.isByService);
      warns(bob, 'refused-ring', 'by-service');
    });
  }
});

row(409, () =>
  inWorld(['alice', 'bob', 'dave'], async (world, alice, bob, dave) => {
    withhold(world, bob, ({ user }) => user === 'bob');
    alice.start(['bob']);
    await world.until(() => bob.rung.length > 0);
    bob.accept();
    await world.until(() => bob.call?.epoch === 2);
    const [call] = world.server.calls.values();
    comes(call, dave, { isUninvited: true });
    await world.run(20_000);
    assert.ok(bob.call.isByService);
    warns(bob, 'by-service');
    assert.ok(!bob.problems.includes('uninvited'), 'it considers nobody uninvited');
    assert.ok(await bob.say());
  }));

row(410, () =>
  inCall(async ({ world, call, bob, others: [dave, mallory] }) => {
    const requests = requestsOf(bob);
    for (const user of ['bob', 'mallory', 'dave']) says(call, await makeWord(mallory.identity, call.id, user), mallory);
    const all = async (body) => ({ ...body, ...call.wordsFor(['bob', 'dave'], call.newest.list) });
    world.server.lie.event = (to, name, body) => (to === bob && name === 'keys.rotate' ? all(body) : body);
    comes(call, dave, { isUninvited: true });
    await isUninvited({ world, victim: bob, ghost: 'dave', requests });
    assert.deepEqual(admissionOf(bob, 'bob'), { how: 'member', by: 'alice' });
  }, ['dave', 'mallory']));

row(411, () =>
  inCall(async ({ world, call, alice, others: [dave] }) => {
    const requests = requestsOf(alice);
    comes(call, dave, { isUninvited: true });
    await world.until(() => isListed(alice, 'dave') && call.epoch === 3);
    await tell(world, alice, 'keys.request', { call: call.id, epoch: 3, to: { ...entryOf(call, dave), keys: dave.identity.keys } });
    world.server.lie.event = (to, name, body) => (to === alice && name === 'keys.envelope' ? undefined : name === 'keys.request' ? undefined : body);
    call.rotate();
    await world.until(() => call.newest.epoch === 4);
    await world.run(100);
    const own = entryOf(call, alice);
    const target = call.stayOf(alice).refresh ?? own.joinKey;
    // Alice leads this epoch herself, but not the next one.
    world.server.lie.reply = (to, path) => (to === alice && path.endsWith('/keys') ? Promise.reject(Object.assign(new Error('internal'), { code: 'internal' })) : undefined);
    const secret = random(32);
    await tell(world, alice, 'keys.envelope', await envelopeBy(dave, call, { to: own, target, secret }));
    assert.ok(requests.some(({ path, body }) => path === 'keys/wait' && body.epoch === 4) || alice.secrets.some(({ epoch }) => epoch === 4), 'kept closed, or useless');
    await isUninvited({ world, victim: alice, ghost: 'dave', requests });
  }, ['dave']));

/** Alice makes a link; returns it with its secret. */
async function linkOf(world, client) {
  let made;
  void client.call.makeLink().then((link) => (made = link));
  await world.until(() => made);
  return made;
}

row(412, async () => {
  await inCall(async ({ world, call, alice, others: [guest] }) => {
    const requests = requestsOf(alice);
    comes(call, guest, { isUninvited: true });
    await isUninvited({ world, victim: alice, ghost: 'guest~zed', requests });
  }, ['guest~zed']);
  await inCall(async ({ world, call, alice, others: [guest, mallory] }) => {
    const requests = requestsOf(alice);
    const secret = LinkSecret.make(mallory.identity);
    says(call, await makeLinkWord(mallory.identity, call.id, await secret.link(call.id)), mallory);
    guest.comeBy(call.id, { link: 'token', secret: secret.text });
    await isUninvited({ world, victim: alice, ghost: 'guest~zed', requests });
  }, ['guest~zed', 'mallory']);
});

row(413, () =>
  inCall(async ({ world, call, alice, others: [guest] }) => {
    const link = await linkOf(world, alice);
    guest.comeBy(call.id, link);
    await world.until(() => isListed(alice, 'guest~zed'));
    await settled(world, call, [alice]);
    assert.deepEqual(admissionOf(alice, 'guest~zed'), { how: 'link', by: 'alice' });
    assert.deepEqual(admissionOf(guest, 'alice'), { how: 'start' });
    await world.assertAllHear();
    const requests = requestsOf(alice);
    const other = await world.add('guest~zed', { device: 'e' });
    other.join(call.id);
    await world.until(() => alice.call.devices.some(({ user, device }) => user === 'guest~zed' && device === 'e'));
    await isUninvited({ world, victim: alice, ghost: 'guest~zed', requests, device: 'e' });
  }, ['guest~zed']));

row(414, async () => {
  const lies = [
    async ({ call, secret, dave }) => secret.join(dave.identity, crypto.randomUUID()).then(async (word) => ({ ...word, link: toBase64(await secret.link(call.id)) })),
    async ({ call, secret, erin }) => ({ ...(await secret.join(erin.identity, call.id)), user: 'dave' }),
    async ({ call, secret, dave, erin }) => ({ ...(await secret.join(dave.identity, call.id)), fingerprint: erin.fingerprint }),
    async ({ call, other, secret, dave }) => ({ ...(await other.join(dave.identity, call.id)), link: toBase64(await secret.link(call.id)) }),
  ];
  for (const lie of lies) {
    await withWords(async ({ world, call, alice, others: [dave, erin] }) => {
      const [secret, other] = [LinkSecret.from((await linkOf(world, alice)).secret), LinkSecret.make(alice.identity)];
      says(call, await lie({ call, secret, other, dave, erin }));
    }, ['erin']);
  }
});

row(415, () =>
  inCall(async ({ world, call, alice, others: [dave, mallory] }) => {
    const link = await linkOf(world, alice);
    const key = await LinkSecret.from(link.secret).link(call.id);
    says(call, await makeLinkWord(mallory.identity, call.id, key), mallory);
    says(call, await makeWord(mallory.identity, call.id, 'mallory'), mallory);
    dave.comeBy(call.id, link);
    await world.until(() => dave.call?.isByService);
    warns(dave, 'by-service');
  }, ['dave', 'mallory']));

row(416, () =>
  inCall(async ({ world, call, alice, others: [dave] }) => {
    const requests = requestsOf(alice);
    const link = await linkOf(world, alice);
    withhold(world, alice, (word) => word.link && !word.user);
    dave.comeBy(call.id, link);
    await isUninvited({ world, victim: alice, ghost: 'dave', requests });
    world.server.lie = {};
    alice.call.connectionReady();
    await world.until(() => !alice.call.stop);
    assert.deepEqual(admissionOf(alice, 'dave'), { how: 'link', by: 'alice' });
    assert.equal(tileOf(alice, 'dave').doubt, undefined);
    await world.assertAllHear();
  }, ['dave']));

row(417, () =>
  inCall(async ({ world, call, alice, bob, others: [dave] }) => {
    const { fingerprint } = signerOf(bob);
    const noise = Array.from({ length: 10_000 }, (_, at) => ({ user: `u${at}`, fingerprint, sigAlg: 'ES256', signature: toBase64(new Uint8Array(64)) }));
    const odd = [null, 5, 'word', [], {}, { user: 5 }, { user: 'x', fingerprint: 7 }, { link: 'x' }, { user: 'dave', fingerprint, sigAlg: 9, signature: [] }];
    world.server.lie.event = (to, name, body) => (to === alice && name === 'keys.rotate' ? { ...body, admissions: [...odd, ...(body.admissions ?? []), ...noise], signers: [...odd, { user: 'x', device: 'd', fingerprint, keys: 'none' }] } : body);
    comes(call, dave);
    await world.until(() => isListed(alice, 'dave') && call.epoch === 3);
    await settled(world, call, [alice, bob]);
    assert.deepEqual(admissionOf(alice, 'dave'), { how: 'member', by: 'alice' });
    world.server.lie.event = (to, name, body) => (to === alice && name === 'keys.rotate' ? { ...body, admissions: 'all of them', signers: 7 } : body);
    call.rotate();
    await world.until(() => alice.call.epoch === 4);
    await world.assertAllHear();
    assert.deepEqual(alice.alarms, []);
  }, ['dave']));

row(418, () =>
  inCall(async ({ world, call, bob, others: [dave, erin] }) => {
    // Alice leads, and the server gives her the keys of newcomers; Bob looks them up.
    const requests = requestsOf(bob);
    world.server.lie.reply = (to, path, body) => (to === bob && path === 'devices/list' && body.users.includes('erin') ? new Promise(() => {}) : undefined);
    comes(call, erin);
    await world.until(() => isListed(bob, 'erin'));
    await call.letIn('dave', erin);
    comes(call, dave, { isUninvited: true });
    assert.ok(await world.until(() => isListed(bob, 'dave')));
    await world.run(2_000);
    assert.ok(!bob.problems.includes('uninvited'), 'it may be a matter of time');
    await world.run(8_000);
    warns(bob, 'uninvited');
    assert.deepEqual(bob.call.stop?.devices.map(({ user }) => user), ['dave']);
    await isSilent(bob);
    const given = requests.filter(({ path }) => path === 'keys').flatMap(({ body }) => body.envelopes.map(({ to }) => to.user));
    assert.ok(!given.includes('dave'));
  }, ['dave', 'erin']));

row(419, () =>
  inCall(async ({ world, call, carol, others: [dave] }) => {
    const requests = requestsOf(carol);
    const tablet = await world.add('bob', { device: 'tablet' });
    // Alice leads, and the server gives her the keys of newcomers; Carol looks them up. Carol is not warned about the tablet, since she gets no answer.
    world.server.lie.reply = (to, path, body) => (to === carol && path === 'devices/list' && body.users.includes('bob') ? new Promise(() => {}) : undefined);
    tablet.join(call.id);
    await world.until(() => call.newest.list.length === 4);
    tablet.call.leave();
    await world.until(() => call.newest.list.length === 3 && call.epoch === call.newest.epoch);
    await world.run(500);
    assert.ok(!carol.warnings.some(({ device }) => device === 'tablet'));
    says(call, await makeWord(tablet.identity, call.id, 'dave'), tablet);
    comes(call, dave, { isUninvited: true });
    await isUninvited({ world, victim: carol, ghost: 'dave', requests });
  }, ['dave']));

row(420, () =>
  inCall(async ({ world, call, carol, others: ghosts }) => {
    // While a question is pending the client delays its warnings. Each ghost is on the current list only for such a time.
    for (const ghost of ghosts) {
      comes(call, ghost, { isUninvited: true });
      await world.until(() => call.newest.list.some(({ user }) => user === ghost.user));
      let answer;
      world.server.lie.reply = (to, path, body, reply) => (to === carol && path.endsWith('/state') ? new Promise((resolve) => (answer = () => resolve(reply))) : undefined);
      void carol.call.connectionReady({ hasMissed: true });
      await world.until(() => isListed(carol, ghost.user));
      await world.run(1_000);
      ghost.call.leave();
      await world.until(() => !isListed(carol, ghost.user));
      world.server.lie.reply = undefined;
      answer();
      await world.run(1_000);
    }
    const told = carol.warnings.filter(({ problem }) => problem === 'uninvited').map(({ user }) => user);
    assert.deepEqual(told, ghosts.map(({ user }) => user), 'the person is told about each');
  }, ['ghost1', 'ghost2', 'ghost3']));

// Links whose guests wait

/** The secret of a link of Alice's whose guests wait. */
async function waitingLinkOf(world, client, guestsWait = true) {
  let made;
  void client.call.makeLink(3_600, { guestsWait }).then((link) => (made = link));
  await world.until(() => made);
  return LinkSecret.from(made.secret);
}

/** Zed, a guest, comes with whatever words `lie(scene)` makes, and Alice takes him for uninvited. `secret` is that of a link of hers whose guests wait. */
const withGuest = (lie, more = []) =>
  inCall(async (scene) => {
    const { world, call, alice, others: [zed] } = scene;
    const requests = requestsOf(alice);
    await lie({ ...scene, zed, secret: await waitingLinkOf(world, alice) });
    comes(call, zed, { isUninvited: true });
    await isUninvited({ world, victim: alice, ghost: 'guest~zed', requests });
  }, ['guest~zed', ...more]);

/** The server says that `member` has admitted Zed by `word`. */
const admits = (call, word, member) => call.words.set('guest~zed', { word, signer: signerOf(member) });

row(421, () => withGuest(async ({ call, zed, secret }) => says(call, await secret.join(zed.identity, call.id))));

row(422, async () => {
  await withGuest(async ({ call, zed, secret }) => {
    const link = toBase64(await secret.link(call.id));
    const { word, signer } = call.words.get(link);
    const { waits, ...bare } = word;
    assert.equal(waits, true);
    call.words.set(link, { word: bare, signer });
    says(call, await secret.join(zed.identity, call.id));
  });
  await inCall(async ({ world, call, alice, others: [zed] }) => {
    const requests = requestsOf(alice);
    const secret = await waitingLinkOf(world, alice, false);
    const link = toBase64(await secret.link(call.id));
    const { word, signer } = call.words.get(link);
    call.words.set(link, { word: { ...word, waits: true }, signer });
    says(call, await secret.join(zed.identity, call.id));
    comes(call, zed, { isUninvited: true });
    await isUninvited({ world, victim: alice, ghost: 'guest~zed', requests });
  }, ['guest~zed']);
});

row(423, async () => {
  const lies = [
    async ({ call, zed, secret, bob, erin }) => ({ ...(await secret.join(zed.identity, call.id)), admittedBy: (await admitWord(bob.identity, call.id, await secret.join(erin.identity, call.id))).admittedBy }),
    async ({ call, zed, secret, bob, other }) => ({ ...(await secret.join(zed.identity, call.id)), admittedBy: (await admitWord(bob.identity, call.id, await other.join(zed.identity, call.id))).admittedBy }),
    async ({ call, zed, secret, bob }) => ({ ...(await secret.join(zed.identity, call.id)), admittedBy: (await admitWord(bob.identity, crypto.randomUUID(), await secret.join(zed.identity, call.id))).admittedBy }),
    async ({ call, zed, secret, bob }) => {
      const word = await admitWord(bob.identity, call.id, await secret.join(zed.identity, call.id));
      return { ...word, admittedBy: { ...word.admittedBy, signature: flipped(word.admittedBy.signature) } };
    },
    async ({ call, zed, secret, bob }) => admitWord(bob.identity, call.id, { ...(await secret.join(zed.identity, call.id)), signature: toBase64(random(64)) }),
  ];
  for (const lie of lies) {
    await withGuest(async (scene) => {
      const { world, call, alice, bob, others: [, erin] } = scene;
      admits(call, await lie({ ...scene, erin, other: await waitingLinkOf(world, alice) }), bob);
    }, ['guest~erin']);
  }
  // Another device of the same guest.
  await withGuest(async ({ world, call, bob, secret }) => {
    const other = await world.add('guest~zed', { device: 'e' });
    admits(call, await admitWord(bob.identity, call.id, await secret.join(other.identity, call.id)), bob);
  });
});

row(424, async () => {
  await withGuest(async ({ call, zed, secret, others: [, mallory] }) => {
    admits(call, await admitWord(mallory.identity, call.id, await secret.join(zed.identity, call.id)), mallory);
    says(call, await makeWord(mallory.identity, call.id, 'mallory'), mallory);
  }, ['mallory']);
  await withGuest(async ({ world, call, zed, secret }) => {
    const tablet = await world.add('bob', { device: 'tablet' });
    admits(call, await admitWord(tablet.identity, call.id, await secret.join(zed.identity, call.id)), tablet);
  });
});

row(425, async () => {
  await withGuest(async ({ world, call, alice, bob, zed, secret, others: [, erin] }) => {
    erin.comeBy(call.id, { link: 'token', secret: secret.text });
    await world.until(() => alice.call.waitingGuests.length === 1);
    void bob.call.admitGuest('guest~erin');
    await world.until(() => admissionOf(alice, 'guest~erin'));
    admits(call, await admitWord(erin.identity, call.id, await secret.join(zed.identity, call.id)), erin);
  }, ['guest~erin']);
  await withWords(async ({ world, call, alice, others: [, erin] }) => {
    erin.comeBy(call.id, await linkOf(world, alice));
    await world.until(() => admissionOf(alice, 'guest~erin'));
    says(call, await makeWord(erin.identity, call.id, 'dave'), erin);
  }, ['guest~erin']);
});

row(426, () => withGuest(async ({ call, bob }) => says(call, await makeWord(bob.identity, call.id, 'guest~zed'), bob)));

row(427, () =>
  inCall(async ({ world, call, alice, others: [zed, mallory] }) => {
    const [secret, open] = [await waitingLinkOf(world, alice), await waitingLinkOf(world, alice, false)];
    const foreign = LinkSecret.make(mallory.identity);
    const link = await foreign.link(call.id);
    const foreignWord = await makeLinkWord(mallory.identity, call.id, link, { waits: true });
    const word = await secret.join(zed.identity, call.id);
    const knock = (admissions, rest = {}) => tell(world, alice, 'guest.knock', { call: call.id, user: 'guest~zed', name: 'Alice', expiresAt: Date.now() + 600_000, admissions, ...rest });
    const linkWords = call.wordsFor([toBase64(await secret.link(call.id)), toBase64(await open.link(call.id))], []).admissions;
    await knock([]);
    await knock(undefined, { signers: 'none' });
    await knock([await foreign.join(zed.identity, call.id), foreignWord], { signers: [signerOf(mallory)] });
    await knock([await open.join(zed.identity, call.id), ...linkWords]);
    await knock([{ ...word, user: 'guest~ann' }, ...linkWords], { user: 'guest~ann' });
    await knock([await secret.join(zed.identity, crypto.randomUUID()), ...linkWords]);
    await knock([{ ...word, signature: flipped(word.signature) }, ...linkWords]);
    await knock([await secret.join(mallory.identity, call.id), ...linkWords], { user: 'mallory' });
    assert.deepEqual(alice.call.waitingGuests, [], 'nobody is at the door');
    await knock([word, ...linkWords]);
    assert.deepEqual(alice.call.waitingGuests.map(({ user }) => user), ['guest~zed'], 'who has a link of the call is');
  }, ['guest~zed', 'mallory']));

row(428, () =>
  inCall(async ({ world, call, alice, others: [zed] }) => {
    const secret = await waitingLinkOf(world, alice);
    const linkWords = call.wordsFor([toBase64(await secret.link(call.id))], []).admissions;
    for (let number = 0; number < 40; number += 1) {
      const user = `guest~${number}`;
      const word = await secret.join({ user, fingerprint: zed.identity.fingerprint }, call.id);
      world.server.tell(alice, 'guest.knock', { call: call.id, user, expiresAt: 1_000 + number, admissions: [word, ...linkWords] });
    }
    await world.until(() => alice.call.waitingGuests.length >= 32);
    await world.run(1_000);
    assert.equal(alice.call.waitingGuests.length, 32);
  }, ['guest~zed']));

// Lasting links: the server names the call

/** A lasting link that `client` has made: `{id, secret}`. */
async function lastingOf(world, client) {
  let made;
  void client.lastingLinks.make({ expiresIn: 86_400 }).then((link) => (made = link));
  await world.until(() => made);
  return made;
}

/** `victim` takes everybody for uninvited: it opens no envelope, gives out no key, stops and says so, and is not let in by the service. */
async function isAlone({ world, victim, requests }) {
  assert.ok(await world.until(() => victim.call?.stop?.cause === 'uninvited'), 'it stops');
  warns(victim, 'uninvited');
  await isSilent(victim);
  assert.deepEqual(requests.filter(({ path }) => path === 'keys').flatMap(({ body }) => body.envelopes), [], 'it gives out no key');
  assert.deepEqual(victim.secrets, [], 'it opens no envelope');
  assert.ok(!victim.problems.includes('by-service'), 'no service lets people in by a lasting link');
  assert.deepEqual([victim.call.isByService, victim.call.root], [false, undefined]);
}

/** Alice has a lasting link, and `lie(scene)` tells the lie. Dave comes by the link into the call that the server names. */
const byLasting = (lie, more = []) =>
  inWorld(['alice', 'bob', 'dave', 'mallory', ...more], async (world, alice, bob, dave, mallory) => {
    const link = await lastingOf(world, alice);
    const secret = LinkSecret.from(link.secret);
    const requests = requestsOf(dave);
    await lie({ world, alice, bob, dave, mallory, link, secret });
    void dave.comeByLasting(link.secret);
    await isAlone({ world, victim: dave, requests });
  });

/** Mallory starts a call, and the server says that it is the one of the link. */
async function falseCall({ world, mallory, link }) {
  mallory.start([]);
  await world.until(() => mallory.call?.epoch === 1);
  const call = world.server.calls.get(mallory.call.id);
  world.server.openLasting(link.id, call.id);
  return call;
}

row(429, async () => {
  await byLasting(falseCall);
  await byLasting(async (scene) => {
    const call = await falseCall(scene);
    says(call, await makeLinkWord(scene.mallory.identity, call.id, await scene.secret.link(call.id)), scene.mallory);
  });
  // The maker of the link is in the call: Mallory has let her in.
  await byLasting(async (scene) => {
    const call = await falseCall(scene);
    await call.letIn('alice', scene.mallory);
    comes(call, scene.alice, { isUninvited: true });
    await scene.world.until(() => isListed(scene.mallory, 'alice'));
  });
});

row(430, () =>
  byLasting(async (scene) => {
    const { world, alice, link, secret } = scene;
    void alice.startLasting(link.id);
    await world.until(() => alice.call && world.server.lasting.get(link.id).opening);
    const before = world.server.calls.get(alice.call.id);
    const { word } = before.words.get(toBase64(await secret.link(before.id)));
    void alice.call.leave();
    await world.run(500);
    const call = await falseCall(scene);
    says(call, word, alice);
    says(call, { ...word, link: toBase64(await secret.link(call.id)) }, alice);
  }));

/** Alice starts a call of her link, in which Mallory is. */
async function goodCall({ world, alice, mallory, link }) {
  void alice.startLasting(link.id);
  await world.until(() => world.server.lasting.get(link.id).opening);
  const call = world.server.calls.get(alice.call.id);
  comes(call, mallory);
  await settled(world, call, [alice, mallory]);
  return call;
}

row(431, () =>
  byLasting(async (scene) => {
    const call = await goodCall(scene);
    says(call, await makeWord(scene.mallory.identity, call.id, 'alice'), scene.mallory);
    says(call, await makeWord(scene.mallory.identity, call.id, 'mallory'), scene.mallory);
  }));

row(432, () =>
  inWorld(['alice', 'bob', 'dave', 'mallory'], async (world, alice, _bob, dave, mallory) => {
    const link = await lastingOf(world, alice);
    const call = await goodCall({ world, alice, mallory, link });
    const requests = requestsOf(dave);
    withhold(world, dave);
    void dave.comeByLasting(link.secret);
    await isAlone({ world, victim: dave, requests });
    await world.run(20_000);
    assert.ok(!dave.problems.includes('by-service') && !dave.call.isByService);
    world.server.lie = {};
    dave.call.connectionReady();
    assert.ok(await world.until(() => !dave.call.stop && dave.call.root === 'alice'));
    await settled(world, call, [alice, mallory, dave]);
    assert.deepEqual(admissionOf(dave, 'mallory'), { how: 'member', by: 'alice' });
    assert.ok(await dave.say());
  }));

row(433, () =>
  inWorld(['alice'], async (world, alice) => {
    const tablet = await world.add('alice', { device: 'tablet' });
    const [kept, short] = [await lastingOf(world, alice), await lastingOf(world, tablet)];
    world.server.lie.reply = (to, path, body, reply) => (path === 'links/list' ? { ...reply, links: reply.links.map((link) => ({ ...link, device: to.device, expiresAt: link.expiresAt + 1e9 })) } : path === 'links/delete' ? {} : undefined);
    void alice.startLasting(short.id);
    await world.until(() => alice.joinError);
    assert.equal(alice.joinError.code, 'link.elsewhere');
    assert.equal(alice.call, undefined);
    let list;
    void alice.lastingLinks.list().then(({ links }) => (list = links));
    await world.until(() => list);
    assert.deepEqual(list.map(({ id, secret }) => [id, Boolean(secret)]), [[kept.id, true], [short.id, false]]);
    alice.joinError = undefined;
    await world.run(86_400_000);
    void alice.startLasting(kept.id);
    await world.until(() => alice.joinError);
    assert.equal(alice.joinError.code, 'call.link-invalid', 'by its own clock');
    const its = world.server.lasting.get(short.id);
    void tablet.lastingLinks.delete(short.id);
    await world.run(500);
    world.server.lasting.set(short.id, its); // the server keeps it
    void tablet.startLasting(short.id);
    await world.until(() => tablet.joinError);
    assert.equal(tablet.joinError.code, 'link.elsewhere');
    assert.equal(world.server.calls.size, 0);
  }));

row(434, () =>
  inCall(async ({ world, call, bob }) => {
    const link = await lastingOf(world, bob);
    const requests = requestsOf(bob);
    const { secret } = await bob.lastingLinks.startable(link.id);
    await assert.rejects(bob.call.openLasting(link.id, { secret }), (error) => error instanceof Refusal);
    assert.ok(!requests.some(({ path }) => path === 'link'));
    assert.ok(!call.words.has(toBase64(await LinkSecret.from(secret).link(call.id))));
    assert.deepEqual(bob.alarms, []);
  }));

row(435, () =>
  inWorld(['alice', 'dave'], async (world, alice, dave) => {
    const link = await lastingOf(world, alice);
    for (const half of [{ call: crypto.randomUUID() }, { token: 'token' }, { call: 'x/y', token: 'token' }, { call: 7, token: 8 }]) {
      dave.joinError = undefined;
      world.server.lie.reply = (to, path, body, reply) => (path === 'links/open' ? { ...reply, ...half } : undefined);
      void dave.comeByLasting(link.secret);
      await world.until(() => dave.joinError);
      assert.equal(dave.joinError.code, 'reply.refused', JSON.stringify(half));
      assert.equal(dave.call, undefined);
    }
  }));
