// The person's lasting links in the lobby, and the waiting for a call of somebody else's.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { page } from './fake-page.mjs';
import { loadPage, until } from './web.mjs';

const ID = 'YWxpY2UncyBsaW5rICMxIQ';
const secret = 'A'.repeat(64);
const byID = page();
document.dispatchEvent = () => true;
Object.defineProperty(globalThis, 'location', { value: { origin: 'https://calls.example', pathname: '/', hash: '' }, configurable: true });
const { LinksView } = await loadPage('links-view.js');
const { guestWhenStarted, onStop, showDoorWait, showLinkWait } = await loadPage('link-wait.js');

const link = (more = {}) => ({ id: ID, device: 'phone', expiresAt: Date.now() + 86_400_000, secret, name: 'Office hours', guestsWait: false, ...more });

/** The view of somebody with `links`, and what it does. */
function viewOf(links, { days = 30, error = undefined } = {}) {
  const done = [];
  const conclave = Object.assign(new EventTarget(), {
    user: 'alice',
    identity: { user: 'alice', device: 'phone' },
    deviceName: (user, device) => (device === 'tablet' ? 'Tablet' : undefined),
    lastingLinks: {
      list: async () => {
        if (error) throw Object.assign(new Error(error), { code: error });
        return { links, days };
      },
      make: async (options) => {
        done.push(['make', options]);
        links.push(link({ name: options.name }));
        return links.at(-1);
      },
      delete: async (id) => {
        done.push(['delete', id]);
        links.splice(0);
      },
    },
    startLasting: async (id) => {
      done.push(['start', id]);
      return { id: 'c1' };
    },
  });
  const view = new LinksView(conclave, { started: (call, its) => done.push(['started', call.id, its.secret]), join: (call) => done.push(['join', call]) });
  return { view, conclave, done };
}

const buttonsOf = () => byID('links-list').children.flatMap((row) => row.querySelectorAll('button'));
const wordsOf = () => byID('links-list').children.map((row) => row.querySelectorAll('.row-sub').map(({ textContent }) => textContent).join());

test('a link is started with one press, and people can get its address from the call', async () => {
  const { view, done } = viewOf([link()]);
  await view.refresh();
  assert.deepEqual([byID('links').hidden, byID('links-help').hidden], [false, true]);
  assert.match(wordsOf()[0], /^Valid until /);
  await buttonsOf()[0].click();
  assert.deepEqual(done, [['start', ID], ['started', 'c1', secret]]);
});

test('a call that runs is joined, and another device’s link is only shown', async () => {
  const { view, done } = viewOf([link({ call: 'c7' }), link({ id: 'BBBBBBBBBBBBBBBBBBBBBA', device: 'tablet', secret: undefined, name: undefined })]);
  await view.refresh();
  assert.match(wordsOf()[0], /^Its call is running/);
  assert.match(wordsOf()[1], /^Can only be started on Tablet/);
  assert.deepEqual(buttonsOf().map(({ textContent }) => textContent), ['Join', 'Show the link', 'Show the link']);
  await buttonsOf()[0].click();
  assert.deepEqual(done, [['join', 'c7']]);
  await buttonsOf()[2].click();
  assert.deepEqual([byID('lasting-address').hidden, byID('lasting-copy').hidden], [true, true]);
});

test('without lasting links the lobby has no place for them, and a server that is down changes nothing', async () => {
  const { view } = viewOf([], { error: 'auth.forbidden' });
  await view.refresh();
  assert.equal(byID('links').hidden, true);
  const some = viewOf([link()]);
  await some.view.refresh();
  await viewOf([], { error: 'timeout' }).view.refresh();
  assert.equal(byID('links').hidden, false);
});

test('a new link has a name and lasts no longer than the operator allows', async () => {
  const { view, done } = viewOf([], { days: 10 });
  await view.refresh();
  assert.equal(byID('links-help').hidden, false);
  await byID('links-new').click();
  assert.deepEqual([byID('lasting-form').hidden, byID('lasting-made').hidden], [false, true]);
  assert.deepEqual(byID('lasting-days').children.map(({ value }) => value), ['1', '7', '10']);
  byID('lasting-name').value = ' Choir ';
  byID('lasting-days').value = '10';
  byID('lasting-waits').checked = true;
  byID('lasting-form').listeners.submit({ preventDefault() {} });
  await until(() => byID('lasting-made').hidden === false);
  assert.deepEqual(done, [['make', { expiresIn: 864_000, name: 'Choir', guestsWait: true }]]);
  assert.equal(byID('lasting-text').value, `https://calls.example/#meet=${secret}/Choir`);
  await byID('lasting-delete').click();
  assert.deepEqual(done[1], ['delete', ID]);
  assert.deepEqual([byID('lasting-dialog').open, byID('links-list').children.length], [false, 0]);
});

test('somebody who waits is shown at the link, by its own name', async () => {
  const { view, conclave } = viewOf([link()]);
  await view.refresh();
  conclave.dispatchEvent(new CustomEvent('link-waiting', { detail: ID }));
  await until(() => wordsOf()[0].startsWith('Somebody is waiting at your link'));
  assert.ok(byID('notices').children.some(({ textContent }) => textContent === 'Somebody is waiting at your link “Office hours”'));
  const before = byID('notices').children.length;
  conclave.dispatchEvent(new CustomEvent('link-waiting', { detail: 'CCCCCCCCCCCCCCCCCCCCCA' }));
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.equal(byID('notices').children.length, before, 'not of a link that this user does not have');
});

/** The answers of the server to a guest, one after the other. */
function answers(...list) {
  const asked = [];
  globalThis.fetch = async (path, { body }) => {
    asked.push([path, JSON.parse(body)]);
    const { status, ...told } = list.length > 1 ? list.shift() : list[0];
    return { status, ok: status < 300, json: async () => told };
  };
  return asked;
}

test('a guest who waits reads for whom, and comes in when the call has started', async () => {
  const asked = answers({ status: 202, expiresAt: 5, name: 'Alice\u202e' }, { status: 429 }, { status: 200, token: 'guest~t', user: 'guest~a', call: 'c1', link: 'l' });
  const realTimeout = globalThis.setTimeout;
  globalThis.setTimeout = (action, ms) => realTimeout(action, ms > 1_000 ? 1 : ms);
  try {
    const granted = await guestWhenStarted(ID, 'Ana', new AbortController().signal);
    assert.equal(granted.call, 'c1');
  } finally {
    globalThis.setTimeout = realTimeout;
  }
  assert.deepEqual(asked, Array(3).fill(['guest/token', { lasting: ID, name: 'Ana' }]));
  assert.equal(byID('waiting-title').textContent, 'Waiting for Alice to start the call');
});

test('a refusal ends the waiting, also the first that would pass', async () => {
  answers({ status: 403 });
  await assert.rejects(guestWhenStarted(ID, 'Ana', new AbortController().signal), { message: 'error.call.link-invalid' });
  answers({ status: 429 });
  await assert.rejects(guestWhenStarted(ID, 'Ana', new AbortController().signal), { message: 'error.rate.limited' });
});

test('a guest can stop waiting', async () => {
  answers({ status: 202, expiresAt: 5 });
  const enough = new AbortController();
  const off = onStop(() => enough.abort());
  const waiting = guestWhenStarted(ID, 'Ana', enough.signal);
  await until(() => byID('waiting-title').textContent === 'Waiting for the call to start');
  byID('waiting-stop').click();
  assert.equal(await waiting, undefined);
  off();
});

test('the view says for what one waits', () => {
  showLinkWait('Bob');
  assert.equal(byID('waiting-title').textContent, 'Waiting for Bob to start the call');
  showDoorWait();
  assert.equal(byID('waiting-title').textContent, 'Waiting to be let in');
});
