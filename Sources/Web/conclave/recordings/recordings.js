// This device's recordings: those that it makes, from the first frame until they are sent, and those that it may read.

import { countOf, grantIn, holdersOf, makeGrants, openGrant } from '../consent/index.js';
import { sameDevice } from '../trust/index.js';
import { Refusal, callIDIn, fromBase64, idIn, listOf, numberIn, shape, wordsIn } from '../wire/index.js';
import { draftLength, openDraft } from './draft.js';
import { LiveRecording, isRunning } from './live.js';
import { manifestIn, pageIsFull } from './manifest.js';
import { RecordingReader, Unreadable } from './recording-reader.js';
import { RecordingWriter, endWitness, ownerOf } from './recording-writer.js';
import { ReelSource } from './reel-source.js';
import { MAX_SEGMENT, REEL } from './segment.js';
import { SegmentUploader } from './segment-uploader.js';
import { Telling } from './telling.js';

const LISTED = 200;
const PAGES = 132; // of 1,000 segments
const GONE = [404, 410];
const mediaOf = (hasPicture) => (hasPicture ? ['audio', 'video'] : ['audio']);

const device = shape('a device', { user: idIn, device: idIn });
const listed = shape('a list', {
  recordings: listOf(
    shape(
      'a recording',
      { id: callIDIn, kind: wordsIn(32), role: wordsIn(32), by: device, startedAt: numberIn(), bytes: numberIn(), state: wordsIn(32), expiresAt: numberIn() },
      { call: callIDIn },
    ),
    LISTED,
    'recordings',
  ),
});

/**
 * `connection` is a `Conclave` that is ready: its `identity` is the device that records and reads here. `store` is that of `openRecordings`, `base` the address of
 * `/recordings`, and `token(wasRefused)` this user's token, or a promise of it: another one if the server has refused it. `fetch` and `now` (ms) are the browser's,
 * but in tests.
 */
export class Recordings {
  #identity;
  #directory;
  #store;
  #request;
  #base;
  #token;
  #fetch;
  #now;
  #uploads = new Map(); // id -> a SegmentUploader
  #tellings = new Map(); // id -> a promise of a Telling
  #lives = new Map(); // id -> a LiveRecording
  #listening = new AbortController();

  constructor({ connection, store, base, token, fetch = (url, options) => globalThis.fetch(url, options), now = () => Date.now() }) {
    this.#identity = connection.identity;
    this.#directory = connection.directory;
    this.#request = (path, body) => connection.request(path, body);
    this.#store = store;
    this.#base = base;
    this.#token = token;
    this.#fetch = fetch;
    this.#now = now;
    const { signal } = this.#listening;
    connection.addEventListener?.('recording-news', ({ detail }) => this.#take(detail), { signal });
    connection.addEventListener?.('ready', () => this.hurry(), { signal });
  }

  // Making

  /**
   * A new recording of `kind`, `message` or `own`, for `readers` besides this user: `{writer, upload}`, a `RecordingWriter` and the `SegmentUploader` that sends
   * its segments while it records. It needs no network.
   */
  async begin({ kind, call = undefined, readers = [], hasPicture, streams }) {
    const writer = await this.#newWriter({ kind, call, readers, hasPicture, streams });
    return { writer, upload: await this.#uploadFor(writer) };
  }

  /**
   * A new recording of one's own that its readers can play while it is made: `{writer, upload, telling}`, as `begin`, and a `Telling`. With `alerts` they are alerted of
   * it. Without `keepsCopy` this device deletes what the server has, and the key once a reader has it. To be ended by `finish`.
   */
  async beginLive({ readers, hasPicture, streams, alerts = false, keepsCopy = true }) {
    const writer = await this.#newWriter({ kind: 'own', readers, hasPicture, streams, more: { isLive: true, alerts, keepsCopy } });
    const { id } = writer.row;
    const telling = await this.#tellingOf(writer.row);
    if (alerts) await telling.note({ kind: 'alert', at: writer.row.startedAt });
    return { writer, upload: await this.#uploadFor(writer), telling, id };
  }

  #newWriter(/** @type {any} */ { readers, hasPicture, ...options }) {
    const names = [...new Set([this.#identity.user, ...readers])];
    return RecordingWriter.begin(this.#identity, this.#store, { ...options, media: mediaOf(hasPicture), readers: names, at: this.#now() });
  }

  /**
   * The recordings of this device that were begun and neither sent nor deleted, `{id, kind, call?, readers, startedAt, length, isLive, hasPicture}`: those that a closed
   * tab left, too. `length` is in ms, 0 if nothing was recorded; `isLive`: it was begun by `beginLive`.
   */
  async unfinished() {
    const rows = (await this.#store.all('recordings')).filter(({ owner }) => owner === ownerOf(this.#identity));
    const lengths = await Promise.all(rows.map((row) => draftLength(this.#store, row)));
    const described = ({ id, kind, statement: { call, readers, media }, startedAt, isLive = false }) => ({ id, kind, call, readers, startedAt, isLive, hasPicture: media.includes('video') });
    return rows.map((row, index) => ({ ...described(row), length: lengths[index] }));
  }

  /** `{reels}` of one of them, as `open`: what its readers will play. It needs no network. */
  async openDraft(id) {
    return openDraft(this.#store, await this.#row(id), { identity: this.#identity, own: this.#own });
  }

  /** Goes on with the upload of what a closed tab left. */
  async upload(id) {
    if (!this.#uploads.has(id)) await (await this.#open(await this.#row(id))).start();
    return this.#uploads.get(id);
  }

  /** The `Telling` of a recording that was begun by `beginLive`. */
  async telling(id) {
    return this.#tellingOf(await this.#row(id));
  }

  /** Records on, after a closed tab: `{writer, upload}`, as `begin`, and `telling` as `beginLive`. */
  async resume(id) {
    const row = await this.#row(id);
    const writer = await RecordingWriter.resume(this.#identity, this.#store, id, this.#now() * 1_000);
    return { writer, upload: await this.#uploadFor(writer), telling: row.isLive ? await this.#tellingOf(row) : undefined };
  }

  /** Ends a recording that was begun by `beginLive`, whose segments were all uploaded, and forgets what is kept of it here. Throws as `send`. */
  async finish(id) {
    const row = await this.#row(id);
    const telling = await this.#tellingOf(row);
    if (!row.isFinished) await this.#finish(row).catch((error) => error?.code === 'recording.ended' || Promise.reject(error));
    await telling.forgetKey();
    await this.forget(id);
  }

  /**
   * Ends a recording of this device whose segments were all uploaded, and grants it to its readers and to this user's own devices; with `onlyOwn`, only to the latter.
   * Returns how many devices of each reader can open it. Throws `RequestError`, or `Refusal` while segments are missing at the server.
   */
  async send(id, { onlyOwn = false } = {}) {
    const row = await this.#row(id);
    if (!row.isFinished) await this.#finish(row);
    const readers = onlyOwn ? [this.#identity.user] : row.statement.readers;
    const { st, statement, grant } = row;
    const { scalar } = await openGrant(grantIn(grant), { id, st, publicKey: fromBase64(statement.publicKey), own: this.#own, keys: this.#identity.keys });
    const devices = await this.#grant(scalar, { id, st }, await this.#holders(readers));
    await this.forget(id);
    return devices;
  }

  /** An answer to what follows may be lost, so that it is sent again; the server refuses a second end. */
  async #finish(row) {
    const { id } = row;
    const upload = await this.upload(id);
    if (upload.state !== 'stored') throw new Refusal('segments that are not uploaded yet');
    const { reel, segments, head, at, sigAlg, signature } = await endWitness(this.#identity, this.#store, id, this.#now());
    await this.#request('recordings/finish', { id, reels: [{ reel, segments, head, at, sigAlg, signature }] });
    await this.#store.put(['recordings', id, { ...row, isFinished: true }]);
  }

  /** How many devices each of `users` has to which this device would grant a recording. */
  async reachable(users) {
    return countOf(await this.#holders(users));
  }

  /** Deletes recordings: this user's own for everybody, those of others for this user. */
  async delete(ids) {
    const begun = await Promise.all(ids.map((id) => this.#store.get('uploads', id)));
    const known = ids.filter((_, index) => begun[index] === undefined || begun[index].ticket !== undefined);
    if (known.length > 0) await this.#request('recordings/delete', { ids: known });
    for (const id of ids) await this.forget(id);
  }

  /** Forgets what is kept of a recording here. */
  async forget(id) {
    this.#uploads.get(id)?.close();
    this.#uploads.delete(id);
    const telling = await this.#tellings.get(id);
    telling?.close();
    this.#tellings.delete(id);
    await this.#store.forget(id);
  }

  /** Forgets all recordings that this browser has made for this user, on any of the user's devices here, and what was seen of others. */
  async forgetAll() {
    this.close();
    const made = (await this.#store.all('recordings')).filter(({ owner }) => owner.startsWith(`${this.#identity.user}/`));
    const seen = await this.#store.keys('seen');
    for (const id of [...made.map((row) => row.id), ...seen]) await this.#store.forget(id);
  }

  /** The network is back, or another one. */
  hurry() {
    for (const upload of this.#uploads.values()) upload.hurry();
    for (const telling of this.#tellings.values()) telling.then((known) => known.hurry()).catch(() => {}); // it asks again the next time
    for (const live of this.#lives.values()) live.look();
  }

  close() {
    this.#listening.abort();
    for (const upload of this.#uploads.values()) upload.close();
    for (const telling of this.#tellings.values()) telling.then((known) => known.close(), () => {});
    for (const live of this.#lives.values()) live.close();
  }

  /** News of the server about a recording. */
  async #take({ news, recording: id, by, at }) {
    if (news === 'changed') this.#lives.get(id)?.look();
    if (news === 'removed') this.#lives.get(id)?.end();
    if (news === 'reached' || news === 'seen') await (await this.#tellings.get(id))?.take(news, by, at);
  }

  // Reading

  /**
   * Newest first: `{id, kind, role, by, call?, startedAt, bytes, state, expiresAt}`, as the server says, and `isNew`: somebody else's that was never opened here.
   * `open` and `describe` know who has signed it.
   */
  async list({ before = undefined } = {}) {
    const { recordings } = listed(await this.#request('recordings/list', { limit: LISTED, ...(before === undefined ? {} : { before }) }));
    const isNew = async ({ id, role }) => role === 'reader' && (await this.#store.get('seen', id)) === undefined;
    return Promise.all(recordings.map(async (entry) => ({ ...entry, isNew: await isNew(entry) })));
  }

  /**
   * `{by, readers, users, length}` of a recording, as its device has signed them, with the users whose reels there are, and `name`, the starter's by the server: one request, and
   * it stays new. `length` is in
   * ms; undefined if it is not known. Throws `Unreadable` or `RequestError`.
   */
  async describe(id) {
    const manifest = await this.#page(id);
    const { statement, reels, people } = await this.#reader(manifest, []);
    const { name } = manifest.people.find((person) => sameDevice(person, statement.by));
    const length = statement.kind === 'call' ? lengthOf(manifest.reels) : reels.get(REEL)?.duration;
    const users = [...new Set([...people.values()].map(({ user }) => user))];
    return { by: statement.by, name, readers: statement.readers, users, length: pageIsFull(manifest) ? undefined : length };
  }

  /** Grants a recording that this device may open to the devices of `users`. Returns how many devices of each can open it. */
  async share(id, users) {
    const { scalar, st } = await this.#reader(await this.#page(id), [], { isGranting: true });
    const holders = await this.#holders(users);
    return this.#grant(scalar, { id, st }, holders.filter((holder) => users.includes(holder.user)));
  }

  /** Deletes what is recorded of this user in a call's recording, for everybody. */
  async erase(id) {
    await this.#request('recordings/erase', { id });
  }

  /**
   * `{reader, reels, notes, live}` of a recording: a `RecordingReader`; for each of its reels `{number, user, device, name, level, reel, source}`, with a `ReelReader` and the
   * `ReelSource` that a player takes, `name` as the server says; the contents of its notes by their numbers; and, while its device records it, a `LiveRecording`, to be
   * closed. A call's recording is not followed. Throws `Unreadable` or `RequestError`.
   */
  async open(id) {
    const manifest = await this.#manifest(id);
    const seen = (await this.#store.get('seen', id)) ?? [];
    const reader = await this.#reader(manifest, seen);
    if (reader.reels.size === 0 && manifest.statement.kind !== 'call') throw new Unreadable('no-key', 'a recording whose reel has no key that counts');
    const remember = () => this.#store.put(['seen', id, [...reader.reels].flatMap(([number, reel]) => seenOf(number, reel, seen))]);
    await remember();
    const { notes } = await reader.notes(manifest.notes ?? []);
    const live = this.#follow(id, manifest.state, { reader, notes, seen: remember });
    const nameOf = (entry) => manifest.people.find((person) => sameDevice(person, entry))?.name;
    const reels = [...reader.reels].map(([number, reel]) => {
      const person = reader.people.get(number);
      return { number, ...person, name: nameOf(person), reel, source: new ReelSource(reel, (n) => this.#segment(id, number, n), () => live?.isRunning ?? false) };
    });
    return { reader, reels, notes, live };
  }

  #follow(id, state, opened) {
    this.#lives.get(id)?.close();
    this.#lives.delete(id);
    const { statement, reels } = opened.reader;
    const reel = statement.kind === 'call' ? undefined : reels.get(REEL);
    if (!isRunning(state) || !reel) return undefined;
    const ask = async (from) => {
      const page = await this.#page(id, from);
      return { ...page, isFull: pageIsFull(page) };
    };
    const live = new LiveRecording({ ...opened, reel, state, ask });
    this.#lives.set(id, live);
    return live;
  }

  /**
   * The facts to know before somebody is alarmed by a recording: `{by, name, at, level, isAlert, state}`, `by`, `at` (ms) and `isAlert` as its device has signed them.
   * Throws as `open`.
   */
  async announced(id) {
    const manifest = await this.#page(id);
    const reader = await this.#reader(manifest, []);
    const { by, at, kind } = reader.statement;
    const { notes } = await reader.notes(manifest.notes ?? []);
    const { name } = manifest.people.find((person) => sameDevice(person, by));
    const isAlert = kind === 'own' && [...notes.values()].some((note) => note.kind === 'alert');
    return { by, name, at, level: reader.level, isAlert, state: manifest.state };
  }

  /** Whether this device has opened, or put aside, a recording of somebody else. */
  async isKnown(id) {
    return (await this.#store.get('seen', id)) !== undefined;
  }

  /** The person does not want to be told of it again here. */
  async putAside(id) {
    if (!(await this.isKnown(id))) await this.#store.put(['seen', id, []]);
  }

  /** Tells the owner that the person has seen it. */
  async tellSeen(id) {
    await this.#request('recordings/seen', { id });
  }

  /** `seen` are the reels as they were seen here before. */
  async #reader(manifest, seen, { isGranting = false } = {}) {
    const trusted = (entry) => this.#trusted(entry);
    const reader = await RecordingReader.open(manifest, { trusted, own: this.#own, now: this.#now(), remembered: new Map(seen) });
    if (!isGranting) reader.scalar.fill(0);
    return reader;
  }

  // The upload

  async #uploadFor(writer) {
    const upload = await this.#open(writer.row);
    writer.hasRoomFor = (bytes) => upload.hasRoomFor(bytes);
    writer.addEventListener('sealed', ({ detail: { n, bytes } }) => upload.add(n, bytes));
    upload.start().catch(() => {}); // a store that fails ends the recording, too: the writer says so
    return upload;
  }

  async #open(row) {
    const telling = row.isLive ? await this.#tellingOf(row) : undefined;
    const register = telling ? () => telling.register() : ({ statement, reelKey }) => this.#request('recordings/start', { statement, reelKey });
    const upload = new SegmentUploader({ store: this.#store, row, register, base: this.#base, fetch: this.#fetch, now: this.#now });
    this.#uploads.get(row.id)?.close();
    this.#uploads.set(row.id, upload);
    return upload;
  }

  #tellingOf(row) {
    if (!this.#tellings.has(row.id)) this.#tellings.set(row.id, this.#openTelling(row));
    return this.#tellings.get(row.id);
  }

  async #openTelling(row) {
    const holders = () => this.#holders(row.statement.readers, { isHolder: row.keepsCopy });
    const renew = () => this.#uploads.get(row.id)?.renew();
    const telling = await Telling.open({ identity: this.#identity, store: this.#store, row, own: this.#own, request: this.#request, holders, renew, now: this.#now });
    telling.plan();
    return telling;
  }

  /** This device as a holder of grants. */
  get #own() {
    const { user, device: name, wrap, keys } = this.#identity;
    return { user, device: name, wrap, publicKey: fromBase64(wrapOf(keys).publicKey) };
  }

  async #row(id) {
    const row = await this.#store.get('recordings', id);
    if (!row || row.owner !== ownerOf(this.#identity)) throw new Refusal('a recording that was not made here');
    return row;
  }

  // Grants

  #holders(users, options = {}) {
    return holdersOf(users, { identity: this.#identity, directory: this.#directory, ...options });
  }

  /** Grants the recording with this private key to `holders`. Returns how many devices of each user can open it. */
  async #grant(scalar, { id, st }, holders) {
    const { grants, devices } = await makeGrants(this.#identity, scalar, { id, st, holders, at: this.#now() });
    if (grants.length > 0) await this.#request('recordings/share', { id, grants });
    return devices;
  }

  // The manifest and the files

  /** A page of the manifest: the first one, or what follows `from`, as `recordings/get` takes it. */
  async #page(id, from = {}) {
    const manifest = manifestIn(await this.#request('recordings/get', { id, ...from }));
    if (manifest.statement.id !== id) throw new Unreadable('not-signed', 'a manifest of another recording');
    return manifest;
  }

  /** All pages as one manifest. */
  async #manifest(id) {
    const manifest = await this.#page(id);
    for (let page = manifest, count = 1; pageIsFull(page) && count < PAGES; count += 1) {
      const from = Math.max(...manifest.reels.map(({ segments }) => segments.length));
      page = await this.#page(id, { from });
      for (const { reel, from: first, segments } of page.reels) {
        const known = manifest.reels.find((each) => each.reel === reel);
        if (segments.length === 0 && known?.segments.length <= first) continue; // it is shorter than others
        if (first !== known?.segments.length) throw new Refusal('a page of segments that does not follow the one before it');
        known.segments.push(...segments);
      }
    }
    return manifest;
  }

  /** The keys of a device as they are pinned here: the manifest's count only if they hash to the pinned fingerprint. */
  async #trusted(entry) {
    const { user, device: name, fingerprint, keys } = entry;
    if (sameDevice(entry, this.#identity)) return { keys: this.#identity.keys, level: 'verified' };
    const options = { pinsNews: false };
    const examined = fingerprint ? await this.#directory.examine([{ user, device: name, fingerprint, keys }], options) : await this.#directory.devicesOf([user], options);
    const found = examined.find((each) => sameDevice(each.entry, entry));
    return found?.keys && (!found.problem || found.problem === 'unverified') ? { keys: found.keys, level: found.level } : undefined;
  }

  async #segment(id, reel, n) {
    const path = `${this.#base}/${id}/${reel}/${n}`;
    let response = await this.#get(path, await this.#token(false));
    if (response.status === 401) response = await this.#get(path, await this.#token(true));
    if (GONE.includes(response.status)) return undefined;
    if (response.status !== 200) throw new Error(`the server answers ${response.status}`);
    if (Number(response.headers.get('content-length') ?? 0) > MAX_SEGMENT) return undefined;
    return new Uint8Array(await response.arrayBuffer());
  }

  #get(path, token) {
    return this.#fetch(path, { headers: { authorization: `Bearer ${token}` }, credentials: 'omit', cache: 'no-store', redirect: 'error' });
  }
}

/** The memory of a reel: the longest that was seen. */
function seenOf(number, reel, seen) {
  const before = seen.find(([other]) => other === number);
  const isLonger = reel.seen && (before?.[1].segments ?? 0) <= reel.length && reel.state !== 'changed';
  return isLonger ? [[number, reel.seen]] : before ? [before] : [];
}

/** How long a call was recorded, in ms, but for the length of the last segments; undefined if nothing was. */
function lengthOf(reels) {
  const recorded = reels.filter(({ segments }) => segments.length > 0);
  if (recorded.length === 0) return undefined;
  const last = Math.max(...recorded.map(({ segments }) => segments.at(-1).start));
  return (last - Math.min(...recorded.map(({ segments }) => segments[0].start))) / 1_000;
}

const wrapOf = (keys) => keys.find(({ use }) => use === 'wrap');
