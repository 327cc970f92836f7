import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aside, fakeTimers, load } from './web.mjs';

const { StompConnection, decodeFrame, encodeFrame } = await load('connection/stomp.js');
const { obstacleTo } = await load('connection/obstacles.js');

/** A WebSocket whose other end is the test. */
class Socket {
  static OPEN = 1;
  static all = [];
  readyState = 0;
  frames = [];

  constructor(url, protocols) {
    Object.assign(this, { url, protocols });
    Socket.all.push(this);
    queueMicrotask(() => {
      this.readyState = 1;
      this.onopen();
    });
  }

  send(text) {
    const frame = decodeFrame(text);
    if (frame) this.frames.push(frame);
    this.onframe?.(frame);
  }

  close() {
    this.readyState = 3;
  }

  say(command, headers, body) {
    this.onmessage({ data: encodeFrame(command, headers, body) });
  }
}
globalThis.WebSocket = Socket;

async function connected(options = {}) {
  const events = [];
  const stomp = new StompConnection({
    url: 'ws://host:8080/stomp',
    credentials: async () => ({ token: 't', device: 'd' }),
    onEvent: async (event) => (events.push(event), event.name !== 'bad'),
    ...options,
  });
  stomp.connect();
  await aside(1);
  const socket = Socket.all.at(-1);
  socket.say('CONNECTED', { version: '1.2', 'user-name': 'alice', device: 'd', 'heart-beat': '0,0' });
  await aside(1);
  return { stomp, socket, events };
}

test('headers survive escaping, and the first of repeated headers counts', () => {
  const headers = { destination: '/a', odd: 'a:b\\c\nd\r' };
  assert.deepEqual(decodeFrame(encodeFrame('SEND', headers, '{"ü":1}')), {
    command: 'SEND',
    headers: { ...headers, 'content-length': '8' },
    body: '{"ü":1}',
  });
  assert.equal(decodeFrame('MESSAGE\na:1\na:2\n\n\0').headers.a, '1');
  assert.equal(decodeFrame('MESSAGE\r\na:1\r\n\r\nbody\0\n').body, 'body');
  assert.equal(decodeFrame('\n'), undefined);
});

test('a malformed frame is an error', () => {
  for (const text of ['MESSAGE\na:1\n\n', 'MESSAGE\0', 'MESSAGE\nno colon\n\n\0', 'MESSAGE\na:\\t\n\n\0']) {
    assert.throws(() => decodeFrame(text), SyntaxError, text);
  }
});

test('CONNECT has the token and the device, then both queues are subscribed', async () => {
  const { socket, stomp } = await connected();
  assert.deepEqual(socket.protocols, ['v12.stomp']);
  const [connect, ...subscriptions] = socket.frames;
  const expected = { 'accept-version': '1.2', host: 'host', 'heart-beat': '10000,10000', passcode: 't', device: 'd' };
  assert.deepEqual(connect.headers, expected);
  const queues = subscriptions.map(({ headers }) => [headers.destination, headers.ack]);
  assert.deepEqual(queues, [['/user/queue/replies', 'auto'], ['/user/queue/events', 'client-individual']]);
  stomp.close();
});

test('each reply settles its request', async () => {
  const { socket, stomp } = await connected();
  const [first, second] = [stomp.request('/app/a', { x: 1 }), stomp.request('/app/b')];
  const [a, b] = socket.frames.slice(-2);
  assert.equal(a.body, '{"x":1}');
  const reply = (frame, status) => ({ subscription: 'replies', 'request-id': frame.headers['request-id'], status });
  socket.say('MESSAGE', reply(b, 'error'), '{"error":{"code":"call.not-found","message":"no","field":"x"}}');
  socket.say('MESSAGE', reply(a, 'ok'), '{"y":2}');
  assert.deepEqual(await first, { y: 2 });
  await assert.rejects(second, { code: 'call.not-found', details: { field: 'x' } });
  stomp.close();
});

test('each event is acknowledged once it is handled; an envelope that did not open is not', async () => {
  const { socket, stomp, events } = await connected();
  const event = (name, seq) => ({ subscription: 'events', event: name, seq, ack: `a${seq}`, redelivered: seq === 1 });
  socket.say('MESSAGE', event('good', 1), '{"at":5}');
  socket.say('MESSAGE', event('bad', 2), '{}');
  await aside(1);
  assert.deepEqual(events[0], { name: 'good', seq: 1, redelivered: true, body: { at: 5 } });
  const answers = socket.frames.slice(-2).map(({ command, headers }) => [command, headers.id]);
  assert.deepEqual(answers, [['ACK', 'a1'], ['NACK', 'a2']]);
  stomp.close();
});

test('a connection that may be dead is probed, and given up when it is silent', async (t) => {
  const tick = fakeTimers(t);
  let now = 0;
  const stomp = new StompConnection({ url: 'ws://h/', credentials: async () => ({ token: 't' }), onEvent() {}, now: () => now });
  const closed = [];
  stomp.addEventListener('closed', ({ detail }) => closed.push(detail.reason));
  stomp.connect();
  await aside(1);
  const socket = Socket.all.at(-1);
  socket.say('CONNECTED', { 'heart-beat': '0,0' });
  now = 1;
  stomp.hurry();
  const asked = socket.frames.slice(-2).map(({ command, headers }) => [command, headers.transaction, headers.receipt]);
  assert.deepEqual(asked, [['BEGIN', 'check', undefined], ['ABORT', 'check', 'check']]);
  now = 2;
  socket.say('RECEIPT', { 'receipt-id': 'check' });
  tick(3_000);
  assert.deepEqual(closed, []);
  now = 3;
  stomp.hurry();
  tick(3_000);
  assert.deepEqual(closed, ['lost']);
  stomp.close();
});

test('during a call a silent connection is given up sooner, and the next attempt begins at once', async (t) => {
  const tick = fakeTimers(t);
  let now = 0;
  const stomp = new StompConnection({
    url: 'ws://h/', credentials: async () => ({ token: 't' }), onEvent() {}, isUrgent: () => true, now: () => now,
  });
  stomp.connect();
  await aside(1);
  const socket = Socket.all.at(-1);
  socket.say('CONNECTED', { 'heart-beat': '0,0' });
  await aside(1);
  const answered = (on, time) => {
    const reply = stomp.request('/app/a');
    now = time;
    on.say('MESSAGE', { subscription: 'replies', 'request-id': on.frames.at(-1).headers['request-id'], status: 'ok' }, '{}');
    return reply;
  };
  // If answers take 300 ms, the limit is 900 ms.
  await answered(socket, 300);
  now = 301;
  stomp.hurry();
  tick(899);
  assert.equal(Socket.all.at(-1), socket);
  tick(1);
  const second = Socket.all.at(-1);
  assert.notEqual(second, socket);
  await aside(1);
  second.say('CONNECTED', { 'heart-beat': '0,0' });
  await aside(1);
  await answered(second, now);
  now = 302;
  stomp.hurry();
  tick(400);
  assert.notEqual(Socket.all.at(-1), second);
  stomp.close();
});

test('after a loss it reconnects and sends what waited', async (t) => {
  const tick = fakeTimers(t);
  const { socket, stomp } = await connected();
  const lost = stomp.request('/app/a');
  socket.onclose();
  await assert.rejects(lost, { code: 'connection-lost' });
  const waiting = stomp.request('/app/b');
  tick(100);
  assert.equal(Socket.all.at(-1), socket, 'not at once');
  tick(2_000);
  const next = Socket.all.at(-1);
  assert.notEqual(next, socket);
  await aside(1);
  next.say('CONNECTED', { 'heart-beat': '0,0' });
  await aside(1);
  assert.equal(next.frames.at(-1).headers.destination, '/app/b');
  waiting.catch(() => {});
  stomp.close();
});

test('urgent requests are sent before waiting requests', async () => {
  const stomp = new StompConnection({ url: 'ws://h/', credentials: async () => ({ token: 't' }), onEvent: async () => true });
  stomp.prepare = () => stomp.requestFirst('/app/first');
  stomp.request('/app/second').catch(() => {});
  stomp.connect();
  await aside(1);
  const socket = Socket.all.at(-1);
  socket.say('CONNECTED', { 'heart-beat': '0,0' });
  await aside(1);
  const { headers } = socket.frames.at(-1);
  assert.equal(headers.destination, '/app/first');
  socket.say('MESSAGE', { subscription: 'replies', 'request-id': headers['request-id'], status: 'ok' }, '{}');
  await aside(1);
  assert.equal(socket.frames.at(-1).headers.destination, '/app/second');
  stomp.close();
});

test('an urgent request without an answer causes a new connection', async (t) => {
  const stomp = new StompConnection({ url: 'ws://h/', credentials: async () => ({ token: 't' }), onEvent: async () => true });
  stomp.prepare = () => stomp.requestFirst('/app/first');
  let reason;
  stomp.addEventListener('closed', ({ detail }) => (reason = detail.reason));
  stomp.connect();
  await aside(1);
  const tick = fakeTimers(t);
  Socket.all.at(-1).say('CONNECTED', { 'heart-beat': '0,0' });
  await aside(1);
  tick(15_000);
  await aside(1);
  assert.equal(reason, 'lost');
  stomp.close();
});

test('a newer connection of the device ends this one permanently', async () => {
  const { socket, stomp } = await connected();
  let reason;
  stomp.addEventListener('closed', ({ detail }) => (reason = detail.reason));
  socket.say('ERROR', { message: 'replaced by a newer connection' });
  const count = Socket.all.length;
  await aside(1);
  assert.equal(reason, 'replaced');
  assert.equal(Socket.all.length, count);
});

test('a device that was removed does not come back by itself', async () => {
  const { socket, stomp } = await connected();
  let reason;
  stomp.addEventListener('closed', ({ detail }) => (reason = detail.reason));
  socket.say('ERROR', { message: 'this device was removed' });
  assert.equal(reason, 'removed');
});

test('a heart-beat from the server is answered with one', async () => {
  let now = 0;
  const { socket, stomp } = await connected({ now: () => now });
  socket.say('CONNECTED', { 'heart-beat': '10000,1' });
  now = 6_000;
  let beats = 0;
  socket.onframe = (frame) => (beats += frame ? 0 : 1);
  socket.onmessage({ data: '\n' });
  assert.equal(beats, 1);
  stomp.close();
});

test('if a WebSocket fails twice the client checks by HTTP, and keeps the result until one opens', async (t) => {
  const tick = fakeTimers(t);
  const asked = [];
  const findObstacle = async (url) => (asked.push(url), 'origin');
  const stomp = new StompConnection({ url: 'wss://h/stomp', credentials: async () => ({ token: 't' }), onEvent: async () => true, findObstacle });
  const told = [];
  stomp.addEventListener('obstacle', () => told.push(stomp.obstacle));
  stomp.connect();
  Socket.all.at(-1).onclose();
  await aside(1);
  assert.deepEqual(asked, [], 'one failure is not enough');
  tick(2_000);
  Socket.all.at(-1).onclose();
  await aside(1);
  assert.deepEqual([asked, told], [['wss://h/stomp'], ['origin']]);
  tick(5_000);
  Socket.all.at(-1).onclose();
  await aside(1);
  assert.deepEqual(told, ['origin'], 'told once');
  tick(10_000);
  Socket.all.at(-1).onopen();
  await aside(1);
  assert.deepEqual(told, ['origin', undefined]);
  stomp.close();
});

test('a server that answers HTTP but opens no WebSocket means an obstacle; an unreachable server does not', async () => {
  const asked = [];
  const answering = (status, text = '') => async (url, { method }) => (asked.push(`${method} ${url}`), { status, text: async () => text });
  assert.equal(await obstacleTo('wss://h/stomp', answering(403, 'pages of this origin may not connect; listen.origins names those that may')), 'origin');
  assert.equal(await obstacleTo('ws://h:8080/stomp', answering(403, 'Forbidden')), 'websocket');
  for (const status of [200, 400, 404, 426]) assert.equal(await obstacleTo('ws://h/stomp', answering(status)), 'websocket', `${status}`);
  for (const status of [500, 502, 503]) assert.equal(await obstacleTo('ws://h/stomp', answering(status)), undefined, `${status}`);
  assert.equal(await obstacleTo('ws://h/stomp', async () => assert.fail('no network')), undefined);
  assert.deepEqual(asked.slice(0, 2), ['POST https://h/stomp', 'POST http://h:8080/stomp'], 'a POST names the page’s origin');
});
