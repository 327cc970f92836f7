// Messages about errors and rings: they use the page's words, never the browser's.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { page } from './fake-page.mjs';
import { load, loadPage } from './web.mjs';

page();
const { notice, warnOfKey, wordsFor, wordsForEnd, wordsForError } = await loadPage('notices.js');
const { Ringing, wordsForRing } = await loadPage('ringing.js');
const { beginNames } = await loadPage('names.js');
const { RequestError } = await load('connection/stomp.js');

const namedLike = (name, message) => Object.assign(new Error(message), { name });

test('an error of the browser becomes a message with a next step, and its own text is not shown', () => {
  for (const name of ['NotAllowedError', 'NotFoundError', 'NotReadableError', 'AbortError', 'TypeError', 'OperationError']) {
    const words = wordsForError(namedLike(name, "Failed to execute 'x' on 'Y'"));
    assert.doesNotMatch(words, /Failed to execute/, name);
    assert.match(words, /[Tt]ry again|[Cc]onnect one/, name);
  }
});

test('an error of the server becomes a message with a next step, whatever its code, and its own text is not shown', () => {
  const words = (code) => wordsForError(new RequestError({ code, message: 'tracks[0].mid: no such section' }));
  assert.equal(words('call.full'), 'The call is full.');
  assert.equal(words('call.not-found'), 'The call is over.');
  for (const code of ['server.busy', 'request.too-large', 'user.not-found', 'reply.refused', 'call.not-joined', 'auth.forbidden', 'media.sdp-invalid', 'keys.epoch-stale', 'internal', 'app.other', '']) {
    assert.match(words(code), /[Tt]ry again|join again|Ask the people/, code);
    assert.doesNotMatch(words(code), /section|Error/, code);
  }
});

test('an end by a service or by the operator is not attributed to the caller', () => {
  const words = (reason, by) => wordsForEnd({ reason, by }, 'alice', []);
  assert.equal(words('ended-by-operator'), 'The people who run this service ended the call');
  assert.equal(words('ended-by-service'), 'The app ended the call');
  assert.equal(words('ended-by-initiator'), 'The caller ended the call');
  assert.equal(words('ended-by-initiator', 'alice'), undefined, 'one’s own end needs no words');
});

test('the notice about a refused, missing or busy camera says what to do, and that sound continues', () => {
  for (const error of ['NotAllowedError', 'NotFoundError', 'NotReadableError', 'OverconstrainedError', 'UnknownError']) {
    const words = wordsFor({ kind: 'no-device', source: 'camera', error });
    assert.match(words, /camera.*(Allow|[Cc]onnect|Close|Choose).*goes on with sound/, error);
    assert.doesNotMatch(words, /Error/, error);
  }
  for (const error of ['NotAllowedError', 'NotFoundError', 'NotReadableError', 'OverconstrainedError', 'UnknownError']) {
    const words = wordsFor({ kind: 'no-device', source: 'microphone', error });
    assert.match(words, /microphone.*(Allow|[Cc]onnect|Close|Choose).*do not hear you/, error);
    assert.doesNotMatch(words, /Error/, error);
  }
  assert.doesNotMatch(wordsFor({ kind: 'media-failed', error: 'sdp.invalid' }), /sdp/);
});

test('a guest is marked wherever its name is shown', () => {
  const member = { user: 'guest~1', name: 'Ana', state: 'joined', participants: [] };
  assert.match(wordsFor({ kind: 'member', cause: 'joined', member }), /Ana \(guest\)/);
  assert.match(wordsFor({ kind: 'member', cause: 'left', member: { ...member, state: 'left', link: undefined } }), /Ana \(guest\)/);
});

test('a group ring names those who are in the call or rung; of many, the first', () => {
  beginNames('me', [], () => {});
  const member = (user, state) => ({ user, state });
  const members = [member('ann', 'joined'), member('bob', 'joined'), member('me', 'ringing'), ...['cleo', 'dan', 'eve', 'fay'].map((user) => member(user, 'ringing'))];
  const { title, text } = wordsForRing({ from: 'ann', media: 'video', members }, 'me');
  assert.equal(title, 'ann is calling');
  assert.equal(text, 'Video call · bob is in it · also rings cleo, dan, eve, and fay');
  assert.equal(wordsForRing({ from: 'ann', media: 'audio', members: [member('ann', 'joined'), member('me', 'ringing')] }, 'me').text, 'Audio call');
  const many = Array.from({ length: 300 }, (_, index) => member(`u${index}`, 'ringing'));
  assert.equal(wordsForRing({ from: 'ann', media: 'audio', members: many }, 'me').text, 'Audio call · also rings u0, u1, u2, u3, u4, and 295 more');
});

test('the banner of a second ring is in front: in the call, in the lobby while joining, and in an open dialog', (t) => {
  const byID = (id) => document.getElementById(id);
  const { querySelectorAll } = document;
  t.after(() => void Object.assign(document, { querySelectorAll }));
  let changed;
  const observed = [];
  globalThis.MutationObserver = class {
    constructor(callback) {
      changed = callback;
    }
    observe(node) {
      observed.push(node);
    }
    disconnect() {
      observed.length = 0;
    }
  };
  const dialog = byID('code-dialog');
  document.querySelectorAll = (selector) => (selector === 'dialog' || dialog.open ? [dialog] : []);
  for (const host of [byID('call'), byID('lobby'), dialog]) host.prepend = (node) => void (node.parentElement = host);
  byID('call-bar').after = (node) => void (node.parentElement = byID('call'));
  byID('ring').close = () => {};
  byID('call').hidden = true;
  byID('second-ring').hidden = true;
  const banner = byID('second-ring');
  const rings = new Ringing({ accept() {}, end() {}, decline() {}, isInCall: () => true, own: () => 'me', preview: { show() {}, hide() {} } });
  const ring = { call: 'c', from: 'bob', media: 'audio', members: [] };
  rings.add(ring);
  assert.deepEqual([banner.hidden, banner.parentElement, observed], [false, byID('lobby'), [byID('call'), dialog]]);
  byID('call').hidden = false;
  changed();
  assert.equal(banner.parentElement, byID('call'));
  dialog.open = true;
  changed();
  assert.equal(banner.parentElement, dialog);
  dialog.open = false;
  changed();
  assert.equal(banner.parentElement, byID('call'));
  rings.remove(ring);
  assert.deepEqual([banner.hidden, observed], [true, []]);
});

test('notices about people in a call do not displace the notice of a new device', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const list = document.getElementById('notices');
  t.after(() => list.replaceChildren());
  const Element = list.constructor;
  const { remove } = Element.prototype;
  t.after(() => {
    Element.prototype.remove = remove;
    delete Element.prototype.before;
  });
  Element.prototype.before = function (other) {
    list.children.splice(list.children.indexOf(this), 0, other);
  };
  Element.prototype.remove = function () {
    list.children = list.children.filter((child) => child !== this);
  };
  warnOfKey({ problem: 'new-device', user: 'bob', device: 'tablet' }, { label: 'Bob', isOwn: false, trust: () => {} });
  const [first] = list.children;
  for (let i = 0; i < 10; i += 1) notice(`u${i} has left`);
  assert.equal(list.children.at(-1), first, 'a small window shows the last one');
  assert.deepEqual(list.children.slice(0, -1).map(({ textContent }) => textContent), ['u7 has left', 'u8 has left', 'u9 has left']);
  t.mock.timers.tick(6_000);
  assert.deepEqual(list.children, []);
});

/** The paragraphs of the warning for `detail`, and the text of its button. */
function warned(detail, { deviceName, isOwn = false } = {}) {
  const before = new Set(document.getElementById('warnings').children);
  warnOfKey({ user: 'bob', device: 'web-1', ...detail }, { label: 'Bob', deviceName, isOwn, trust: () => {}, compare: () => {} });
  const warning = document.getElementById('warnings').children.find((one) => !before.has(one));
  return { texts: warning.querySelectorAll('p').map(({ textContent }) => textContent), button: warning.querySelectorAll('button')[0].textContent };
}

test('a warning names devices by their owners’ names for them, or else by their ids', () => {
  const deviceName = (device) => ({ 'web-1': 'Kitchen\u202e tablet', 'web-2': 'Phone' })[device];
  assert.match(warned({ problem: 'disagree', by: 'web-2' }, { deviceName }).texts[0], /Phone says that Kitchen tablet must not be trusted/);
  assert.match(warned({ problem: 'gone' }).texts[0], /Bob \(web-1\)/);
});

test('a warning that only a lying server or a stranger can cause says how to go on talking', () => {
  for (const problem of ['stranger', 'uninvited', 'gone', 'revoked', 'taken-number', 'refused-list', 'removed-from-list', 'refused-track']) {
    assert.match(warned({ problem }).texts.at(-1), /say nothing confidential: leave the call, and talk by phone or in person/, problem);
  }
});

test('other warnings say what to do without mentioning keys', () => {
  const lasting = ['unverified', 'fell', 'disagree', 'old-join-key', 'wrong-confirmation', 'refused-envelope', 'refused-ring', 'withheld-join-key', 'no-key', 'unconfirmed', 'false-confirmation', 'old-epoch', 'other'];
  for (const problem of lasting) {
    for (const isOwn of [false, true]) {
      const { texts } = warned({ problem }, { isOwn });
      assert.match(texts[0], /[Cc]ompare|joins? again|[Pp]air it|See Call code|Ask Bob|may be stolen/, problem);
      assert.doesNotMatch(texts[0], /\bkeys?\b/i, problem);
    }
  }
  const changed = warned({ problem: 'changed-key', fingerprint: Buffer.alloc(32, 7).toString('base64') });
  assert.match(changed.texts[0], /Ask Bob, by phone or in person, to open Devices/);
  assert.match(changed.texts[1], /^07070707 07070707/);
  assert.equal(changed.button, 'It is this number: trust it');
});
