// Guests who wait at the door until a member admits them: both sides, in a world of real clients, and the page. Lies about it are in the table of lies (421 to 428).

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { page } from './fake-page.mjs';
import { load, loadPage, until } from './web.mjs';
import { inCall, settled } from './world/lying.mjs';

console.warn = () => {};
const { Knocking } = await load('call/knocking.js');

const ZED = 'guest~zed';

/** Alice, Bob and Carol talk, and a guest has a link of Alice's whose guests wait. */
const atTheDoor = (action, more = []) =>
  inCall(async (scene) => {
    let link;
    void scene.alice.call.makeLink(3_600, { guestsWait: true }).then((made) => (link = made));
    await scene.world.until(() => link);
    await action({ ...scene, zed: scene.others[0], link });
  }, [ZED, ...more]);

const usersAt = ({ call }) => call.waitingGuests.map(({ user }) => user);
const admissionOf = (client, user) => client.call.devices.find((device) => device.user === user)?.admission;

test('a guest waits outside, is seen by all members, and comes in when one admits it', () =>
  atTheDoor(async ({ world, call, alice, bob, carol, zed, link }) => {
    const facts = [];
    bob.call.addEventListener('door', () => facts.push(bob.call.waitingGuests.length));
    zed.comeBy(call.id, link);
    assert.ok(await world.until(() => [alice, bob, carol].every((client) => usersAt(client).length === 1)));
    assert.deepEqual(bob.call.waitingGuests.map(({ user, name }) => [user, name]), [[ZED, 'zed']]);
    assert.equal(zed.call.isWaiting, true);
    assert.deepEqual([zed.secrets, [...zed.call.members.keys()], zed.call.devices], [[], [], []], 'outside there is nothing of the call');
    let isFirst;
    void bob.call.admitGuest(ZED).then((first) => (isFirst = first));
    assert.ok(await world.until(() => zed.call?.participant));
    assert.equal(isFirst, true);
    await settled(world, call, [alice, bob, carol, zed]);
    assert.equal(zed.call.isWaiting, false);
    for (const client of [alice, bob, carol, zed]) assert.deepEqual([usersAt(client), admissionOf(client, ZED)], [[], { how: 'member', by: 'bob' }]);
    assert.equal(zed.call.root, 'alice', 'its own chain begins at the link');
    for (const client of [alice, bob, carol, zed]) assert.deepEqual(client.alarms, []);
    assert.deepEqual(facts, [1, 0]);
    await world.assertAllHear();
  }));

test('the first answer counts, and a second member is told so', () =>
  atTheDoor(async ({ world, call, alice, bob, zed, link }) => {
    zed.comeBy(call.id, link);
    await world.until(() => usersAt(bob).length === 1);
    const answers = [];
    void alice.call.admitGuest(ZED).then((isFirst) => answers.push(isFirst));
    void bob.call.refuseGuest(ZED).then((isFirst) => answers.push(isFirst));
    await world.until(() => answers.length === 2 && zed.call?.participant);
    assert.deepEqual(answers, [true, false]);
    assert.deepEqual([usersAt(alice), usersAt(bob)], [[], []]);
  }));

test('a refused guest does not come in, and is told', () =>
  atTheDoor(async ({ world, call, alice, bob, zed, link }) => {
    zed.comeBy(call.id, link);
    await world.until(() => usersAt(bob).length === 1);
    void bob.call.refuseGuest(ZED);
    await world.until(() => zed.joinError);
    assert.equal(zed.joinError.code, 'guest.refused');
    assert.deepEqual([usersAt(alice), zed.call], [[], undefined]);
    assert.ok(!alice.call.members.has(ZED));
  }));

test('a guest that stops waiting tells the server, and no longer asks', () =>
  atTheDoor(async ({ world, call, bob, zed, link }) => {
    zed.comeBy(call.id, link);
    await world.until(() => usersAt(bob).length === 1);
    void zed.call.leave();
    await world.until(() => zed.joinError);
    assert.equal(zed.joinError.code, 'call.not-admitted');
    await world.run(60_000);
    assert.equal(call.door.size, 0);
  }));

test('a guest knocks again while it waits: a server that was restarted hears of it', () =>
  atTheDoor(async ({ world, call, bob, zed, link }) => {
    zed.comeBy(call.id, link);
    await world.until(() => usersAt(bob).length === 1);
    call.door.clear();
    await world.run(25_000);
    assert.equal(call.door.size, 1);
    // It forgets even who was admitted: the guest waits once more.
    call.door.clear();
    await world.run(100);
    world.server.tell(zed, 'guest.knock-over', { call: call.id, user: ZED, outcome: 'admitted' });
    await world.run(1_000);
    assert.equal(call.door.size, 1);
    assert.equal(zed.call.isWaiting, true);
  }));

test('a guest in the call is shown nobody, and an answer that overtakes the check of a word counts', () =>
  atTheDoor(async ({ world, call, alice, bob, zed, link, others: [, ann] }) => {
    zed.comeBy(call.id, link);
    await world.until(() => usersAt(bob).length === 1);
    void bob.call.admitGuest(ZED);
    await world.until(() => zed.call?.participant);
    await settled(world, call, [alice, bob, zed]);
    ann.comeBy(call.id, link);
    await world.until(() => usersAt(alice).length === 1);
    world.server.tell(zed, 'guest.knock', { call: call.id, ...call.knockOf('guest~ann') });
    await world.run(500);
    assert.deepEqual(zed.call.waitingGuests, []);
    await alice.call.handle('guest.knock-over', { call: call.id, user: 'guest~ann', outcome: 'over' });
    const knock = { call: call.id, ...call.knockOf('guest~ann') };
    await Promise.all([alice.call.handle('guest.knock', knock), alice.call.handle('guest.knock-over', { call: call.id, user: 'guest~ann', outcome: 'over' })]);
    await world.run(500);
    assert.deepEqual(usersAt(alice), []);
    await alice.call.handle('guest.knock', knock);
    await world.until(() => usersAt(alice).length === 1);
    assert.deepEqual(usersAt(alice), ['guest~ann']);
  }, ['guest~ann']));

test('somebody with an account does not wait', () =>
  atTheDoor(async ({ world, call, alice, link, others: [, dave] }) => {
    dave.comeBy(call.id, link);
    await world.until(() => admissionOf(alice, 'dave'));
    assert.deepEqual(admissionOf(alice, 'dave'), { how: 'link', by: 'alice' });
  }, ['dave']));

test('a connection that breaks does not end the waiting, and a refusal of the server does', async () => {
  const knocking = new Knocking();
  let code = 'connection-lost';
  const waiting = knocking.wait(() => Promise.reject(Object.assign(new Error(code), { code })));
  await new Promise((resolve) => setTimeout(resolve, 5));
  assert.equal(knocking.isWaiting, true);
  knocking.answered('admitted');
  await waiting;
  assert.equal(knocking.isWaiting, false);
  code = 'call.link-invalid';
  await assert.rejects(knocking.wait(() => Promise.reject(Object.assign(new Error(code), { code }))), { code });
  knocking.answered('refused'); // too late
  const again = knocking.wait(async () => {});
  knocking.answered('over');
  await assert.rejects(again, { code: 'call.not-admitted' });
  const asked = [];
  knocking.stop(); // the call was left before the server has answered the join
  await assert.rejects(knocking.wait(async () => asked.push(1)), { code: 'call.not-admitted' });
  assert.deepEqual(asked, []);
});

// The page

const byID = page();
const { Admitted, showDoor } = await loadPage('door-view.js');
const { t } = await loadPage('texts.js');

/** A call at whose door `users` wait; `answers` notes what is pressed, and says whether somebody else was first. */
function callWith(users, answers, isFirst = true) {
  const answer = (action) => async (user) => {
    answers.push([action, user]);
    return isFirst;
  };
  return { waitingGuests: users.map((user) => ({ user, name: user.slice(6), expiresAt: 0 })), admitGuest: answer('admit'), refuseGuest: answer('refuse') };
}

const notices = () => byID('notices').children.map(({ textContent }) => textContent);

test('the one who waits longest is shown with its name as unchecked, and the others are counted', async () => {
  showDoor(callWith([], []));
  assert.equal(byID('door').hidden, true);
  showDoor(callWith(['guest~ann', 'guest~ben', 'guest~cy'], []));
  assert.equal(byID('door').hidden, false);
  assert.equal(byID('door-title').textContent, t('door.asks', { name: t('guest.name', { name: 'ann' }) }));
  assert.equal(byID('door-text').textContent, `${t('door.unchecked')} ${t('door.more', { count: 2 })}`);
  showDoor(undefined);
  assert.equal(byID('door').hidden, true);
});

test('a press is about the guest who is shown, and rests after a change', async () => {
  const answers = [];
  showDoor(callWith(['guest~ann'], answers));
  for (const button of ['door-admit', 'door-refuse']) assert.equal(byID(button).disabled, true, 'a press may have been meant for somebody else');
  for (const button of ['door-admit', 'door-refuse']) byID(button).disabled = false;
  showDoor(callWith(['guest~ann', 'guest~ben'], answers));
  assert.equal(byID('door-admit').disabled, false, 'the same guest');
  await byID('door-admit').click();
  showDoor(callWith(['guest~ben'], answers));
  assert.equal(byID('door-refuse').disabled, true);
  byID('door-refuse').disabled = false;
  await byID('door-refuse').click();
  assert.deepEqual(answers, [['admit', 'guest~ann'], ['refuse', 'guest~ben']]);
  showDoor(undefined);
});

test('a person who has a dialog open is told in front of it', () => {
  const { querySelectorAll } = document;
  const dialog = document.createElement('dialog');
  showDoor(callWith(['guest~eli'], []));
  assert.ok(!notices().some((text) => text.includes('eli')), 'the door itself says it');
  document.querySelectorAll = (selector) => (selector === 'dialog[open]' ? [dialog] : []);
  showDoor(callWith(['guest~fay'], []));
  assert.ok(notices().includes(t('door.asks', { name: t('guest.name', { name: 'fay' }) })));
  document.querySelectorAll = querySelectorAll;
  showDoor(undefined);
});

test('a second answer says that somebody was first', async () => {
  showDoor(callWith(['guest~dan'], [], false));
  byID('door-admit').disabled = false;
  await byID('door-admit').click();
  await until(() => notices().includes(t('door.answered')));
  showDoor(undefined);
});

test('everybody else reads who let whom in, by the signed words alone', () => {
  const admitted = new Admitted();
  const guest = (user, admission) => ({ user, admission });
  const member = { how: 'member', by: 'bob' };
  assert.deepEqual(admitted.news([], 'alice'), []);
  assert.deepEqual(admitted.news([guest('alice', { how: 'start' }), guest('guest~ann', member)], 'alice'), [], 'who was there before is no news');
  const later = [guest('guest~ann', member), guest('guest~ben', undefined), guest('carol', member), guest('guest~dan', { how: 'link', by: 'bob' })];
  assert.deepEqual(admitted.news(later, 'alice'), [], 'nobody has signed it');
  later[1] = guest('guest~ben', member);
  assert.deepEqual(admitted.news(later, 'alice'), [{ user: 'guest~ben', by: 'bob' }]);
  assert.deepEqual(admitted.news(later, 'alice'), [], 'once');
  assert.deepEqual(admitted.news([...later, guest('guest~cy', member)], 'bob'), [], 'one’s own act is no news');
});
