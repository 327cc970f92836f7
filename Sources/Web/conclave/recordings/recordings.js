// This device's recordings: those that it makes, from the first frame until they are sent, and those that it may read.

import { SENT_TO, sameDevice } from '../trust/index.js';
import { Refusal, callIDIn, fromBase64, idIn, listOf, numberIn, shape, wordsIn } from '../wire/index.js';
import { grantIn, makeGrant, openGrant } from './grants.js';
import { manifestIn } from './manifest.js';
import { RecordingReader, Unreadable } from './recording-reader.js';
import { RecordingWriter, endWitness, ownerOf } from './recording-writer.js';
import { ReelSource } from './reel-source.js';
import { MAX_SEGMENT, REEL } from './segment.js';
import { SegmentUploader } from './segment-uploader.js';

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
 * `store` is that of `openRecordings`; `directory` knows whom this device trusts; `request(path, body)` asks the server, `base` is the address of `/recordings`,
 * and `token()` this user's token. `fetch` and `now` (ms) are the browser's, but in tests.
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

  constructor({ identity, directory, store, request, base, token, fetch = (url, options) => globalThis.fetch(url, options), now = () => Date.now() }) {
    this.#identity = identity;
    this.#directory = directory;
    this.#store = store;
    this.#request = request;
    this.#base = base;
    this.#token = token;
    this.#fetch = fetch;
    this.#now = now;
  }

  // Making

  /**
   * A new recording of `kind`, `message` or `own`, for `readers` besides this user: `{writer, upload}`, a `RecordingWriter` and the `SegmentUploader` that sends
   * its segments while it records. It needs no network.
   */
  async begin({ kind, call = undefined, readers = [], hasPicture, streams }) {
    const names = [...new Set([this.#identity.user, ...readers])];
    const writer = await RecordingWriter.begin(this.#identity, this.#store, { kind, call, media: mediaOf(hasPicture), readers: names, streams, at: this.#now() });
    return { writer, upload: this.#uploadFor(writer) };
  }

  /** The recordings of this device that were begun and neither sent nor deleted, `{id, kind, call?, readers, startedAt}`: those that a closed tab left, too. */
  async unfinished() {
    const rows = (await this.#store.all('recordings')).filter(({ owner }) => owner === ownerOf(this.#identity));
    return rows.map(({ id, kind, statement: { call, readers }, startedAt }) => ({ id, kind, call, readers, startedAt }));
  }

  /** Goes on with the upload of what a closed tab left. */
  async upload(id) {
    if (!this.#uploads.has(id)) await this.#open(await this.#row(id)).start();
    return this.#uploads.get(id);
  }

  /** Records on, after a closed tab: `{writer, upload}`, as `begin`. */
  async resume(id) {
    const writer = await RecordingWriter.resume(this.#identity, this.#store, id, this.#now() * 1_000);
    return { writer, upload: this.#uploadFor(writer) };
  }

  /**
   * Ends a recording of this device whose segments were all uploaded, and grants it to its readers and to this user's own devices; with `onlyOwn`, only to the latter.
   * Returns how many devices of each reader can open it. Throws `RequestError`, or `Refusal` while segments are missing at the server.
   */
  async send(id, { onlyOwn = false } = {}) {
    const row = await this.#row(id);
    if (!row.isFinished) await this.#finish(row);
    const readers = onlyOwn ? [this.#identity.user] : row.statement.readers;
    const { grants, devices } = await this.#grantsOf(row, await this.#holders(readers));
    await this.#request('recordings/share', { id, grants });
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
    return countBy(await this.#holders(users));
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
    await this.#store.forget(id);
  }

  /** The network is back, or another one. */
  hurry() {
    for (const upload of this.#uploads.values()) upload.hurry();
  }

  close() {
    for (const upload of this.#uploads.values()) upload.close();
  }

  // Reading

  /** Newest first: `{id, kind, role, by, call?, startedAt, bytes, state, expiresAt}`, as the server says. `open` knows who has signed it. */
  async list({ before = undefined } = {}) {
    return listed(await this.#request('recordings/list', { limit: LISTED, ...(before === undefined ? {} : { before }) })).recordings;
  }

  /** `{reader, reel, source}` of a recording: a `RecordingReader`, a `ReelReader`, and the `ReelSource` that a player takes. Throws `Unreadable` or `RequestError`. */
  async open(id) {
    const manifest = await this.#manifest(id);
        const seen = (await this.#store.get('seen', id)) ?? [];
    const reader = await RecordingReader.open(manifest, { trusted: (entry) => this.#trusted(entry), own: this.#own, now: this.#now(), remembered: new Map(seen) });
    const reel = reader.reels.get(REEL);
    if (!reel) throw new Unreadable('no-key', 'a recording whose reel has no key that counts');
    const longest = seen.find(([number]) => number === REEL)?.[1];
    if (reel.seen && (longest?.segments ?? 0) <= reel.length && reel.state !== 'changed') await this.#store.put(['seen', id, [[REEL, reel.seen]]]);
    return { reader, reel, source: new ReelSource(reel, (n) => this.#segment(id, n)) };
  }

  // The upload

  #uploadFor(writer) {
    const upload = this.#open(writer.row);
    writer.addEventListener('sealed', ({ detail: { n } }) => upload.add(n));
    upload.start().catch(() => {}); // a store that fails ends the recording, too: the writer says so
    return upload;
  }

  #open(row) {
    const register = ({ statement, reelKey }) => this.#request('recordings/start', { statement, reelKey });
    const upload = new SegmentUploader({ store: this.#store, row, register, base: this.#base, fetch: this.#fetch, now: this.#now });
    this.#uploads.get(row.id)?.close();
    this.#uploads.set(row.id, upload);
    return upload;
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

  /** The devices of `users` that get a grant. This user's own have to be paired: the server lists devices, and could list one of its own. */
  async #holders(users) {
    const { user } = this.#identity;
    const devices = await this.#directory.devicesOf([...new Set([user, ...users])], { pinsNews: false });
    const isTrusted = ({ entry, keys, problem, level, isNew }) => {
      if (sameDevice(entry, this.#identity)) return false;
      if (!keys || problem) return false;
      return entry.user === user ? SENT_TO.includes(level) : !isNew || level === 'vouched';
    };
    const trusted = devices.filter(isTrusted).map(({ entry, keys }) => ({ user: entry.user, device: entry.device, keys }));
    return [{ user, device: this.#identity.device, keys: this.#identity.keys }, ...trusted];
  }

  async #grantsOf(row, holders) {
    const { id, st, statement } = row;
    const { scalar } = await openGrant(grantIn(row.grant), { id, st, publicKey: fromBase64(statement.publicKey), own: this.#own, keys: this.#identity.keys });
    const at = this.#now();
    const made = await Promise.all(holders.map((to) => makeGrant(this.#identity, scalar, { id, st, to: { user: to.user, device: to.device }, target: wrapOf(to.keys), at })));
    scalar.fill(0);
    return { grants: made.filter(Boolean), devices: countBy(holders.filter((_, index) => made[index])) };
  }

  // The manifest and the files

  /** All pages as one manifest. */
  async #manifest(id) {
    const manifest = manifestIn(await this.#request('recordings/get', { id }));
    if (manifest.statement.id !== id) throw new Unreadable('not-signed', 'a manifest of another recording');
    for (let page = manifest, count = 1; pageIsFull(page) && count < PAGES; count += 1) {
      const from = Math.max(...manifest.reels.map(({ segments }) => segments.length));
      page = manifestIn(await this.#request('recordings/get', { id, from }));
      for (const { reel, from: first, segments } of page.reels) {
        const known = manifest.reels.find((each) => each.reel === reel);
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

  async #segment(id, n) {
    const headers = { authorization: `Bearer ${this.#token()}` };
    const response = await this.#fetch(`${this.#base}/${id}/${REEL}/${n}`, { headers, credentials: 'omit', cache: 'no-store', redirect: 'error' });
    if (GONE.includes(response.status)) return undefined;
    if (response.status !== 200) throw new Error(`the server answers ${response.status}`);
    if (Number(response.headers.get('content-length') ?? 0) > MAX_SEGMENT) return undefined;
    return new Uint8Array(await response.arrayBuffer());
  }
}

const PAGE = 1_000;
const pageIsFull = ({ reels }) => reels.some(({ segments }) => segments.length > 0 && segments.length % PAGE === 0);
const wrapOf = (keys) => keys.find(({ use }) => use === 'wrap');

function countBy(holders) {
  const counts = {};
  for (const { user } of holders) counts[user] = (counts[user] ?? 0) + 1;
  return counts;
}
