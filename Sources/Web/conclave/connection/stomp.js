// STOMP 1.2 over WebSocket: requests become promises, events are acknowledged one by one, a lost connection is restored.

import { Timers } from '../timers.js';
import { failureFrom } from './border.js';
import { obstacleTo } from './obstacles.js';

const HEART_BEAT_MS = 10_000;
const SILENCE_MS = 25_000; // two heart-beats and a slow network
const CHECK_MS = 3_000; // how long a connection that may be dead has to answer
const URGENT_CHECK_MS = 400; // in a call, or three times as long as the last answer took
const CONNECT_MS = 10_000;
const REQUEST_MS = 15_000;
const URGENT_MS = 1_500;
const UNOPENED = 2; // attempts, before the reason is investigated
const BACK_OFF_MS = [300, 1_000, 2_000, 4_000, 8_000, 15_000];

const escapes = { '\\': '\\\\', '\n': '\\n', '\r': '\\r', ':': '\\c' };
const unescapes = { '\\\\': '\\', '\\n': '\n', '\\r': '\r', '\\c': ':' };
const escape = (text) => String(text).replace(/[\\\n\r:]/g, (character) => escapes[character]);
const unescape = (text) =>
  text.replace(/\\[^]?/g, (pair) => {
    if (!(pair in unescapes)) throw new SyntaxError('STOMP: unknown escape');
    return unescapes[pair];
  });

/** A frame as text. CONNECT's headers are not escaped (STOMP 1.2, "Value Encoding"). */
export function encodeFrame(command, headers, body = '') {
  const plain = command === 'CONNECT';
  const lines = Object.entries(headers)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => (plain ? `${name}:${value}` : `${escape(name)}:${escape(value)}`));
  if (body) lines.push(`content-length:${new TextEncoder().encode(body).length}`);
  return `${command}\n${lines.join('\n')}\n\n${body}\0`;
}

/** Reads the only frame of a message; undefined for a heart-beat. The first of repeated headers counts. */
export function decodeFrame(text) {
  const start = text.search(/[^\r\n]/);
  if (start < 0) return undefined;
  const end = text.lastIndexOf('\0');
  const head = /\r?\n\r?\n/.exec(text.slice(start));
  if (end < 0 || !head) throw new SyntaxError('STOMP: not a whole frame');
  const [command, ...lines] = text.slice(start, start + head.index).split(/\r?\n/);
  const headers = {};
  for (const line of lines) {
    const colon = line.indexOf(':');
    if (colon < 1) throw new SyntaxError('STOMP: a header without a colon');
    const decode = command === 'CONNECTED' ? (value) => value : unescape;
    const name = decode(line.slice(0, colon));
    if (!Object.hasOwn(headers, name)) headers[name] = decode(line.slice(colon + 1));
  }
  return { command, headers, body: text.slice(start + head.index + head[0].length, end) };
}

/** The value of a body; undefined if it is not JSON. */
function jsonIn(text) {
  try {
    return JSON.parse(text || '{}');
  } catch {
    return undefined;
  }
}

/** A request that failed: `code` of protocol section 9, or `connection-lost`, `timeout`. */
export class RequestError extends Error {
  constructor({ code, message, ...details }) {
    super(message);
    this.name = 'RequestError';
    this.code = code;
    this.details = details;
  }
}

/**
 * One device's connection to the server.
 *
 * `credentials(refused)` returns `{token, device}`; `refused` says that the last token was not accepted. Events: `obstacle`, when `obstacle` changes; `open`
 * with the CONNECTED headers; `closed` with `{reason}`: `lost` (it reconnects automatically), `refused`, `replaced` or `removed` (it does not). While
 * `isUrgent()`, as in a call, it retries within `URGENT_MS`. `onEvent({name, seq, redelivered, body})` returns whether the event is acknowledged, or `{later}`,
 * a promise of that. `prepare()`, if set, runs first on each connection.
 */
export class StompConnection extends EventTarget {
  #url;
  #credentials;
  #onEvent;
  #isUrgent;
  /** Runs first on each connection. */
  prepare;
  /** Why no WebSocket opens although something answers there: see `obstacleTo`. */
  obstacle;
  #findObstacle;
  #unopened = 0; // tries in a row
  #now;
  #socket;
  #attempt = 0;
  #timers = new Timers();
  #requests = new Map();
  #waiting = [];
  #nextID = 1;
  #isOpen = false;
  #isReady = false;
  #isWanted = false;
  #wasRefused = false;
  #heardAt = 0;
  #spokeAt = 0;
  #beatMs = 0;
  #answerMs = 0; // how long the last reply took

  constructor({ url, credentials, onEvent, isUrgent = () => false, findObstacle = obstacleTo, now = () => performance.now() }) {
    super();
    this.#now = now;
    this.#findObstacle = findObstacle;
    this.#isUrgent = isUrgent;
    this.#url = url;
    this.#credentials = credentials;
    this.#onEvent = onEvent;
  }

  get isOpen() {
    return this.#isOpen;
  }

  connect() {
    if (this.#isWanted) return;
    this.#isWanted = true;
    this.#wasRefused = false;
    this.#open();
  }

  /** Ends the connection permanently. */
  close() {
    this.#isWanted = false;
    if (this.#isOpen) this.#send('DISCONNECT', {});
    this.#drop('closed');
  }

  /** Ends the connection permanently: it is not the requested one. */
  refuse(message) {
    this.#finish('refused', message);
  }

  /** Called when the network is reported to be back, or may have changed: waits neither for the next attempt nor long for a silent connection. */
  hurry() {
    if (!this.#isWanted) return;
    if (!this.#socket) this.#open();
    else if (this.#isOpen) this.#check(this.#socket);
  }

  /** An empty transaction changes nothing and is answered. */
  #check(socket) {
    const asked = this.#now();
    this.#send('BEGIN', { transaction: 'check' });
    this.#send('ABORT', { transaction: 'check', receipt: 'check' });
    const patience = this.#isUrgent() ? Math.min(CHECK_MS, Math.max(URGENT_CHECK_MS, 3 * this.#answerMs)) : CHECK_MS;
    this.#timers.after(patience, () => this.#heardAt < asked && this.#lost(socket, { isSilent: true }));
  }

  /** Sends a request and returns the reply's body. Without a connection it waits for one, at most `REQUEST_MS`. */
  request(destination, body = {}) {
    return this.#ask(destination, body, (entry) => (this.#isReady ? this.#submit(entry) : this.#waiting.push(entry)));
  }

  #ask(destination, body, pass) {
    return new Promise((resolve, reject) => {
      const id = `r${this.#nextID++}`;
      const timer = setTimeout(() => {
        this.#requests.delete(id);
        this.#waiting = this.#waiting.filter((entry) => entry.id !== id);
        reject(new RequestError({ code: 'timeout', message: 'The server did not answer.' }));
      }, REQUEST_MS);
      const settle = (action) => (value) => {
        clearTimeout(timer);
        action(value);
      };
      pass({ id, destination, text: JSON.stringify(body), resolve: settle(resolve), reject: settle(reject) });
    });
  }

  /** Sends the requests that were made before the connection was ready, after those of `prepare`. */
  async #becomeReady(socket) {
    await this.prepare?.();
    if (socket !== this.#socket) return;
    this.#isReady = true;
    this.#attempt = 0;
    for (const entry of this.#waiting.splice(0)) this.#submit(entry);
    this.dispatchEvent(new CustomEvent('ready'));
  }

  /** Like `request`, on the connection that is open now, before others may send. Only for `prepare`. */
  requestFirst(destination, body) {
    return this.#ask(destination, body, (entry) => this.#submit(entry));
  }

  #submit(entry) {
    entry.sentAt = this.#now();
    this.#requests.set(entry.id, entry);
    const headers = { destination: entry.destination, 'request-id': entry.id, 'content-type': 'application/json' };
    this.#send('SEND', headers, entry.text);
  }

  async #open() {
    this.#timers.clear();
    const socket = new WebSocket(this.#url, ['v12.stomp']);
    this.#socket = socket;
    let credentials;
    socket.onmessage = ({ data }) => this.#receive(socket, data);
    this.#unopened += 1;
    socket.onclose = () => this.#lost(socket);
    this.#timers.after(CONNECT_MS, () => this.#lost(socket));
    const opened = new Promise((resolve) => {
      socket.onopen = (event) => {
        if (socket === this.#socket) this.#setObstacle(undefined);
        resolve(event);
      };
    });
    try {
      credentials = await this.#credentials(this.#wasRefused);
    } catch (error) {
      if (socket !== this.#socket) return;
      if (error.isFinal) this.#finish('refused', error.message);
      else this.#lost(socket);
      return;
    }
    await opened;
    if (socket !== this.#socket) return;
    this.#send('CONNECT', {
      'accept-version': '1.2',
      host: new URL(this.#url).hostname,
      'heart-beat': `${HEART_BEAT_MS},${HEART_BEAT_MS}`,
      passcode: credentials.token,
      device: credentials.device,
    });
  }

  #receive(socket, data) {
    if (socket !== this.#socket) return;
    this.#heardAt = this.#now();
    // Answering a beat with a beat keeps a tab alive whose timers the browser has slowed down.
    if (this.#beatMs && this.#heardAt - this.#spokeAt > this.#beatMs * 0.4) this.#beat();
    let frame;
    try {
      frame = decodeFrame(data);
    } catch {
      this.#lost(socket);
      return;
    }
    if (frame?.command === 'CONNECTED') this.#connected(socket, frame.headers);
    else if (frame?.command === 'MESSAGE') {
      const body = jsonIn(frame.body);
      if (body === undefined) this.#lost(socket);
      else this.#message(socket, frame.headers, body);
    }
    else if (frame?.command === 'ERROR') this.#error(socket, frame.headers.message ?? '');
  }

  #connected(socket, headers) {
    this.#timers.clear();
    this.#isOpen = true;
    this.#wasRefused = false;
    const [theirs, wanted] = (headers['heart-beat'] ?? '0,0').split(',').map(Number);
    this.#beatMs = wanted ? Math.max(HEART_BEAT_MS, wanted) : 0;
    if (this.#beatMs) this.#timers.every(this.#beatMs * 0.45, () => this.#beatWhenDue());
    if (theirs) this.#timers.every(5_000, () => this.#now() - this.#heardAt > SILENCE_MS && this.#lost(socket));
    this.dispatchEvent(new CustomEvent('open', { detail: headers }));
    if (socket !== this.#socket) return; // it was not the requested one
    this.#send('SUBSCRIBE', { id: 'replies', destination: '/user/queue/replies', ack: 'auto' });
    this.#send('SUBSCRIBE', { id: 'events', destination: '/user/queue/events', ack: 'client-individual' });
    this.#becomeReady(socket).catch(() => this.#lost(socket));
  }

  #message(socket, headers, body) {
    if (headers.subscription === 'replies') {
      const entry = this.#requests.get(headers['request-id']);
      this.#requests.delete(headers['request-id']);
      if (entry) this.#answerMs = this.#heardAt - entry.sentAt;
      if (headers.status === 'ok') entry?.resolve(body);
      else entry?.reject(new RequestError(failureFrom(body)));
      return;
    }
    const event = {
      name: headers.event,
      seq: Number(headers.seq),
      redelivered: headers.redelivered === 'true',
      body,
    };
    const answer = (isTaken) => {
      if (isTaken.later) isTaken.later.then(answer);
      else if (socket === this.#socket && this.#isOpen) this.#send(isTaken ? 'ACK' : 'NACK', { id: headers.ack });
    };
    Promise.resolve(this.#onEvent(event)).then(answer);
  }

  #error(socket, message) {
    if (message === 'replaced by a newer connection') this.#finish('replaced');
    else if (message === 'this device was removed') this.#finish('removed');
    else if (message.startsWith('Bad CONNECT') && this.#wasRefused) this.#finish('refused', 'token-refused');
    else {
      this.#wasRefused = message.startsWith('Bad CONNECT') || message === 'token expired';
      this.#lost(socket);
    }
  }

  #finish(reason, message) {
    this.#isWanted = false;
    this.#drop(reason, message);
  }

  /** `isSilent`: the network changed and not the server, so the first attempt need not wait. */
  #lost(socket, { isSilent = false } = {}) {
    if (socket !== this.#socket) return;
    this.#drop('lost');
    if (!this.#isWanted) return;
    if (isSilent) {
      this.#open();
      return;
    }
    if (this.#unopened >= UNOPENED) this.#lookForObstacle();
    const patient = BACK_OFF_MS[Math.min(this.#attempt, BACK_OFF_MS.length - 1)];
    const wait = this.#isUrgent() ? Math.min(patient, URGENT_MS) : patient;
    this.#attempt += 1;
    this.#timers.after(wait * (0.75 + Math.random() / 2), () => this.#open());
  }

  #setObstacle(obstacle) {
    if (!obstacle) this.#unopened = 0;
    if (obstacle === this.obstacle) return;
    this.obstacle = obstacle;
    this.dispatchEvent(new Event('obstacle'));
  }

  /** Asks asynchronously, while the next attempt waits. */
  async #lookForObstacle() {
    const tries = this.#unopened;
    const obstacle = await this.#findObstacle(this.#url);
    if (this.#isWanted && !this.#isOpen && this.#unopened >= tries && obstacle) this.#setObstacle(obstacle);
  }

  #drop(reason, message) {
    this.#timers.clear();
    const socket = this.#socket;
    this.#socket = undefined;
    this.#isOpen = false;
    this.#isReady = false;
    this.#beatMs = 0;
    socket?.close();
    const error = new RequestError({ code: 'connection-lost', message: 'The connection to the server was lost.' });
    for (const entry of this.#requests.values()) entry.reject(error);
    this.#requests.clear();
    if (reason !== 'lost') for (const entry of this.#waiting.splice(0)) entry.reject(error);
    this.dispatchEvent(new CustomEvent('closed', { detail: { reason, message } }));
  }

  #send(command, headers, body) {
    if (this.#socket?.readyState !== WebSocket.OPEN) return;
    this.#spokeAt = this.#now();
    this.#socket.send(encodeFrame(command, headers, body));
  }

  #beatWhenDue() {
    if (this.#now() - this.#spokeAt > this.#beatMs * 0.4) this.#beat();
  }

  #beat() {
    if (this.#socket?.readyState !== WebSocket.OPEN) return;
    this.#spokeAt = this.#now();
    this.#socket.send('\n');
  }
}
