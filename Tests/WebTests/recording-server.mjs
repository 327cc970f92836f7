// A server that stores recordings, as far as the web client's tests need one, and devices with their stores.

import { CALL, NOW } from './recorded.mjs';
import { SOUND } from './reels.mjs';
import { load, until } from './web.mjs';

const { MemoryStore: KeyStore } = await load('devices/store.js');
const { Directory } = await load('trust/directory.js');
const { equal, sha256, toBase64 } = await load('wire/bytes.js');
const { streamsFor } = await load('recordings/device-recorder.js');
const { Recordings } = await load('recordings/recordings.js');
const { parseHeader } = await load('recordings/segment.js');
const { MemoryStore } = await load('recordings/store.js');

export const BASE = 'https://host/recordings';
export const refused = (code) => Object.assign(new Error(code), { code });
export const answer = (status, body) => ({ status, headers: { get: () => null }, json: async () => structuredClone(body), arrayBuffer: async () => Uint8Array.from(body).buffer });

/** A server that stores recordings, and knows devices. `elapsed` is how many ms have gone by for all, `now()` its time. */
export class Server {
  elapsed = 0;
  now = () => NOW + this.elapsed;
  strangers = []; // users to whom it passes nothing on
  alerted = []; // "user recording" of each alert
  #connections = new Map(); // "user/device" -> an EventTarget
  recordings = new Map();
  devices = [];
  log = [];
  fails = (_path) => undefined; // an error that a request gets
  changes = (_path, reply) => reply; // a reply that lies

  request(identity) {
    return async (path, body) => {
      this.log.push(`${identity.user} ${path}`);
      const failure = this.fails(path);
      if (failure) throw failure;
      return this.changes(path, structuredClone(await this.#answer(identity, path, structuredClone(body))));
    };
  }

  async #answer(identity, path, body) {
    if (path === 'recordings/start') {
      const { id } = body.statement;
      const known = this.recordings.get(id);
      if (known?.isFinished) throw refused('recording.ended');
      const taken = (body.grants ?? []).filter(({ to }) => !this.strangers.includes(to.user));
      const made = { files: [], witnesses: [], readers: new Map(), state: 'running', startedAt: this.now(), ...known, ...body, by: identity, ticket: `upload~${this.log.length}` };
      Object.assign(made, { grants: [...(known?.grants ?? []), ...taken], notes: [...(known?.notes ?? []), ...(body.notes ?? [])] });
      this.recordings.set(id, made);
      return { recording: id, ticket: made.ticket, limits: { seconds: 180 }, results: this.#tell(made, body) };
    }
    if (path === 'recordings/note') return this.#noted(body), {};
    if (path === 'recordings/list') return { recordings: [...this.recordings.values()].filter((each) => this.#mayRead(each, identity)).map((each) => this.#entry(each, identity)) };
    if (path === 'recordings/delete') return body.ids.forEach((id) => this.#mayRead(this.recordings.get(id), identity) && this.recordings.delete(id)), {};
    const recording = this.recordings.get(body.id);
    if (!recording || !this.#mayRead(recording, identity)) throw refused('recording.not-found');
    if (path === 'recordings/finish') {
      if (recording.isFinished) throw refused('recording.ended');
      if (body.reels[0].segments !== recording.files.length) throw refused('recording.incomplete');
      recording.isFinished = true;
      recording.witnesses = [{ ...body.reels[0], isEnd: true, by: { user: identity.user, device: identity.device } }];
      return {};
    }
    if (path === 'recordings/share') return recording.grants.push(...body.grants), {};
    if (path === 'recordings/seen') return this.#seen(recording, identity), {};
    return this.manifest(recording, identity, body);
  }

  /** The results of readers; they are alerted once. */
  #tell({ statement: { id, kind, by, readers }, grants, readers: told }, { alert }) {
    const results = {};
    for (const user of readers.filter((each) => each !== by.user)) {
      if (this.strangers.includes(user)) results[user] = 'unavailable';
      else if (!this.devices.some((device) => device.user === user)) results[user] = 'no-keys';
      else if (grants.some(({ to }) => to.user === user)) results[user] = 'shared';
      if (!alert || results[user] === 'unavailable' || told.has(user)) continue;
      told.set(user, { user, alertedAt: this.now() });
      this.alerted.push(`${user} ${id}`);
      for (const { device } of this.devices.filter((each) => each.user === user)) {
        this.tell({ user, device }, 'recording', { recording: id, kind, by, isAlert: true, hasGrant: grants.some(({ to }) => to.user === user && to.device === device) });
      }
    }
    return results;
  }

  #noted({ id, ...note }) {
    const { notes } = this.recordings.get(id);
    if (!notes.some(({ number }) => number === note.number)) notes.push(note);
  }

  #seen({ statement: { id, by } }, { user, device }) {
    this.tell(by, 'recording-news', { news: 'seen', recording: id, by: { user, device }, at: this.now() });
  }

  /** The connection of a device, as recordings use it. */
  connection(identity, directory, request = this.request(identity)) {
    const connection = Object.assign(new EventTarget(), { identity, directory, request });
    this.#connections.set(`${identity.user}/${identity.device}`, connection);
    return connection;
  }

  tell({ user, device }, name, detail) {
    this.#connections.get(`${user}/${device}`)?.dispatchEvent(new CustomEvent(name, { detail }));
  }

  /** All who follow it hear that it has changed. */
  changed(id) {
    for (const connection of this.#connections.values()) connection.dispatchEvent(new CustomEvent('recording-news', { detail: { news: 'changed', recording: id } }));
  }

  #mayRead(recording, { user }) {
    return recording && (recording.by.user === user || recording.grants.some(({ to }) => to.user === user));
  }

  #entry({ statement, files, isFinished, state, startedAt, by }, identity) {
    const { id, kind, call, at } = statement;
    return { id, kind, role: by.user === identity.user ? 'owner' : 'reader', by: statement.by, call, startedAt, bytes: files.length, state: isFinished ? 'finished' : state, expiresAt: at + 1, extra: 1 };
  }

  async manifest({ statement, reelKey, files, grants, witnesses, notes, readers, state, isFinished, by }, { user }, { from = 0, notes: firstNote = 0 }) {
    const rows = await Promise.all(files.map(async (file) => [file.length, toBase64(await sha256(file)), parseHeader(file).start]));
    return {
      statement, state: isFinished ? 'finished' : state, bytes: 1, reelKeys: [{ reel: 1, ...reelKey }], notes: notes.filter(({ number }) => number >= firstNote), witnesses,
      ...(user === by.user ? { readers: [...readers.values()] } : {}),
      people: [{ participant: 1, user: by.user, device: by.device, name: by.user[0].toUpperCase() + by.user.slice(1), fingerprint: toBase64(by.fingerprint), keys: by.keys }],
      reels: [{ participant: 1, from, segments: rows.slice(from, from + 1_000) }], grants: grants.filter(({ to }) => to.user === user),
    };
  }

  fetch = async (url, { method = 'GET', headers, body }) => {
    const [id, reel, n] = url.slice(BASE.length + 1).split('/');
    const recording = this.recordings.get(id);
    const bearer = headers.authorization.slice(7);
    if (n !== undefined && method === 'GET') return recording?.files[n] && bearer.startsWith('token') ? answer(200, recording.files[n]) : answer(404);
    if (!recording || recording.isFinished || bearer !== recording.ticket) return answer(404);
    const position = async () => ({ next: recording.files.length, head: recording.files.length ? toBase64(await sha256(recording.files.at(-1))) : toBase64(new Uint8Array(32)) });
    if (method === 'GET') return answer(200, { reels: { 1: await position() } });
    if (Number(n) < recording.files.length && equal(recording.files[n], body)) return answer(200);
    if (Number(n) !== recording.files.length || reel !== '1') return answer(409, await position());
    recording.files.push(Uint8Array.from(body));
    const [at, sigAlg, signature] = headers['conclave-witness'].split(':');
    const { user, device } = recording.by;
    recording.witnesses = [{ reel: 1, segments: recording.files.length, head: toBase64(await sha256(body)), at: Number(at), isEnd: false, by: { user, device }, sigAlg, signature }];
    return answer(201);
  };
}

/** The recordings of a tab, perhaps with another network than the server's. */
export const recordingsOf = ({ server, identity, directory, store }, { request = server.request(identity), token = () => 'token', fetch = server.fetch } = {}) =>
  new Recordings({ connection: server.connection(identity, directory, request), store, base: BASE, token, fetch, now: () => NOW + server.elapsed });

export const asDevice = ({ user, device, keys, fingerprint }) => ({ user, device, keys, fingerprint: toBase64(fingerprint) });

/** A device with its store, which a tab that is opened again finds as it was. */
export class Tab {
  constructor(server, identity, { store = new MemoryStore(), keys = new KeyStore() } = {}) {
    Object.assign(this, { server, identity, store, keys });
    const own = { device: identity.device, fingerprint: toBase64(identity.fingerprint), keys: identity.keys };
    this.directory = new Directory({ store: keys, owner: identity.user, own, fetchDevices: async (users) => ({ devices: server.devices.filter(({ user }) => users.includes(user)), revokes: [] }) });
    this.recordings = recordingsOf(this);
  }

  reopened() {
    this.recordings.close();
    return new Tab(this.server, this.identity, this);
  }

  /** A message of ten seconds for Bob; with `isKilled` the tab is closed in the middle. */
  async record({ kind = 'message', readers = ['bob'], isKilled = false } = {}) {
    const { writer, upload } = await this.recordings.begin({ kind, call: kind === 'message' ? CALL : undefined, readers, hasPicture: false, streams: streamsFor(false) });
    for (let ms = 0; ms < 10_000; ms += 500) writer.frame({ index: 0, isKey: true, timestamp: ms * 48, time: (NOW + ms) * 1_000, data: SOUND });
    if (!isKilled) await writer.end((NOW + 10_000) * 1_000);
    return { id: writer.row.id, upload };
  }
}

export const isStored = (upload) => until(() => upload.state === 'stored');
