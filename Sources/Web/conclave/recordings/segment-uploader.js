// Sends a recording's segments to the server, from the store, one at a time and in order. `Upload` has the rules. A ticket is all that it needs, so it goes on when
// the token has ended, in another network, and on the next visit.

import { Refusal, equal, hashIn, isWhole, objectIn, whole } from '../wire/index.js';
import { MAX_SEGMENTS, NO_SEGMENT, REEL } from './segment.js';
import { Upload } from './upload.js';
import { witnessHeader } from './witnesses.js';

const ANSWER_MS = 20_000; // for an answer, and for each 8,000 bytes of a file a second more
const SLOWEST = 8; // bytes per ms
const STUCK_MS = 3_000; // when the network changes, an attempt that is older is given up
const KEPT_BYTES = 64 * 1_048_576; // of confirmed segments, while there is room
const UNSENT_BYTES = 2 ** 31; // that may wait here: more than five hours of picture and sound
/** Errors of `register` after which it is not tried again. */
const FINAL = {
  'recording.ended': 'ended', 'recording.not-found': 'ended', 'recording.not-allowed': 'refused', 'request.invalid': 'refused', 'auth.forbidden': 'refused', 'keys.not-allowed': 'refused',
};

/** `{next, head}`: how far the server is with a reel. */
function positionIn(value) {
  const { next, head } = objectIn(value, 'a position');
  const count = whole(next, 0, MAX_SEGMENTS, 'a number of segments');
  return { next: count, head: count === 0 ? NO_SEGMENT : hashIn(head, 'a head') };
}

/**
 * `register(row)` asks the server for a ticket, and rejects with an error that has a `code`. `base` is the address of `/recordings`. `fetch`, `now` (ms) and
 * `jitter` are the browser's, but in tests.
 *
 * Events: `change` of `state` or of how far it is.
 */
export class SegmentUploader extends EventTarget {
  /** How many seconds of a recording the server takes; undefined as long as it has not said so on this visit. */
  longest;
  /** The error with which the server has refused to register the recording, if it has. @type {any} */
  error;
  #store;
  #row;
  #register;
  #base;
  #fetch;
  #now;
  #jitter;
  #upload;
  #ticket;
  #running;
  #timer;
  #attempt; // {abort, since}
  #isClosed = false;
  #sealed = 0; // on this visit
  #sent = 0; // bytes, on all visits
  #keptBytes = 0; // of the files that were sent on this visit
  #unsent = 0; // bytes

  constructor({ store, row, register, base, fetch = (url, options) => globalThis.fetch(url, options), now = () => Date.now(), jitter = Math.random }) {
    super();
    this.#store = store;
    this.#row = row;
    this.#register = register;
    this.#base = base;
    this.#fetch = fetch;
    this.#now = now;
    this.#jitter = jitter;
  }

  /** See `Upload.state`; undefined before `start`. */
  get state() {
    return this.#upload?.state;
  }

  /** `{sealed, stored, confirmed}`: how many segments. */
  get progress() {
    const { sealed = 0, stored = 0, confirmed = 0 } = this.#upload ?? {};
    return { sealed, stored, confirmed };
  }

  /** Whether another segment of `bytes` may wait here. */
  hasRoomFor(bytes) {
    return this.#unsent + bytes <= UNSENT_BYTES;
  }

  /** Goes on from what is stored here, on this visit or a former one. */
  async start() {
    const { id } = this.#row;
    const [chain, { stored, confirmed, kept = 0, ticket, bytes = 0 }] = [await this.#store.get('chains', id), await this.#store.get('uploads', id)];
    this.#ticket = ticket;
    this.#sent = bytes;
    this.#unsent = Math.max(this.#unsent, (chain.bytes ?? 0) - bytes);
    this.#upload = new Upload({ sealed: Math.max(chain.n, this.#sealed), stored, confirmed, kept, hasTicket: ticket !== undefined, jitter: this.#jitter });
    return this.#go();
  }

  /** Segment `n` of `bytes` was put into the store. */
  add(n, bytes = 0) {
    this.#sealed = Math.max(this.#sealed, n + 1);
    this.#unsent += bytes;
    this.#upload?.add(n);
    return this.#upload && this.#go();
  }

  /** Has the recording registered once more. */
  renew() {
    this.#upload?.renew();
    return this.#upload && this.#go();
  }

  /** The network is back, or is another one. */
  hurry() {
    if (this.#attempt && this.#now() - this.#attempt.since > STUCK_MS) this.#attempt.abort();
    this.#upload?.hurry();
    return this.#upload && this.#go();
  }

  /** Sends nothing more on this visit. */
  close() {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#attempt?.abort();
  }

  /** Resolves when there is nothing to do now. */
  #go() {
    this.#running ??= this.#run().finally(() => (this.#running = undefined));
    return this.#running;
  }

  async #run() {
    clearTimeout(this.#timer);
    while (!this.#isClosed) {
      const before = this.#upload.state;
      const { act, n, ms } = this.#upload.next(this.#now());
      if (this.#upload.state !== before) this.#changed();
      if (act === 'rest') return;
      if (act === 'wait') {
        this.#timer = setTimeout(() => this.#go(), ms);
        return;
      }
      // A store that fails is tried again like a network that fails.
      await this.#do(act, n).catch(() => this.#upload.failed(this.#now()));
      this.#changed();
    }
  }

  async #do(act, n) {
    if (act === 'register') await this.#askForTicket();
    else if (act === 'ask') await this.#askPosition();
    else await this.#put(n);
  }

  #changed() {
    this.dispatchEvent(new Event('change'));
  }

  async #askForTicket() {
    try {
      const { ticket, limits } = await this.#register(this.#row);
      if (typeof ticket !== 'string' || ticket === '' || ticket.length > 256) throw new Refusal('a ticket of another form');
      this.#ticket = ticket;
      if (isWhole(limits?.seconds, 1, Number.MAX_SAFE_INTEGER)) this.longest = limits.seconds;
      this.#upload.registered();
      await this.#store.put(this.#uploadRow);
    } catch (error) {
      if (Object.hasOwn(FINAL, error?.code ?? '')) {
        this.error = error;
        this.#upload.refuse(FINAL[error.code]);
      } else this.#upload.failed(this.#now(), { isFull: error?.code === 'recording.full' });
    }
  }

  async #askPosition() {
    const { status, retryAfter, body } = await this.#request(this.#base + `/${this.#row.id}`, { method: 'GET' }, 0);
    const reels = status === 200 && body?.reels;
    const position = reels && (await this.#positionOf(reels[REEL] ?? { next: 0 }));
    this.#upload.ask({ status, retryAfter, position }, this.#now());
    if (!position) return;
    await this.#store.put(this.#uploadRow);
    await this.#drop();
  }

  async #put(n) {
    const { file, witness } = (await this.#store.get('segments', [this.#row.id, n])) ?? {};
    if (!file) return this.#upload.refuse('lost'); // the browser has deleted it
    const headers = { 'conclave-witness': witnessHeader(witness), 'content-type': 'application/octet-stream' };
    const path = `${this.#base}/${this.#row.id}/${REEL}/${n}`;
    const { status, retryAfter, body } = await this.#request(path, { method: 'PUT', headers, body: file }, file.length);
    const position = status === 409 ? await this.#positionOf(body) : undefined;
    this.#upload.put({ status, retryAfter, position }, this.#now());
    if (this.#upload.stored > n) {
      this.#keptBytes += file.length;
      this.#sent += file.length;
      this.#unsent = Math.max(0, this.#unsent - file.length);
    }
    return this.#store.put(this.#uploadRow);
  }

  /** `{next, isOurs}` of what the server says; undefined if it says nothing that makes sense. */
  async #positionOf(value) {
    try {
      const { next, head } = positionIn(value);
      const own = next === 0 ? { hash: NO_SEGMENT } : await this.#store.get('segments', [this.#row.id, next - 1]);
      return { next, isOurs: own !== undefined && equal(own.hash, head) };
    } catch {
      return undefined;
    }
  }

  /** `{status, retryAfter, body}`; status 0 if there is no answer in time. */
  async #request(path, { headers = {}, ...options }, bytes) {
    const abort = new AbortController();
    this.#attempt = { since: this.#now(), abort: () => abort.abort() };
    const timer = setTimeout(() => abort.abort(), ANSWER_MS + bytes / SLOWEST);
    const safe = /** @type {const} */ ({ credentials: 'omit', cache: 'no-store', redirect: 'error', signal: abort.signal });
    try {
      const response = await this.#fetch(path, { ...options, headers: { ...headers, authorization: `Bearer ${this.#ticket}` }, ...safe });
      const body = await response.json().catch(() => undefined);
      return { status: response.status, retryAfter: Number(response.headers.get('retry-after') ?? 0) * 1_000 || 0, body };
    } catch {
      return { status: 0, retryAfter: 0, body: undefined };
    } finally {
      clearTimeout(timer);
      this.#attempt = undefined;
    }
  }

  get #uploadRow() {
    const { stored, confirmed, kept } = this.#upload;
    return ['uploads', this.#row.id, { stored, confirmed, kept, ticket: this.#ticket, bytes: this.#sent }];
  }

  /**
   * Segments that the server has shown to have are kept here as long as there is room: a server that loses them gets them again. Without a copy on this device they go
   * at once.
   */
  async #drop() {
    const { id } = this.#row;
    const upload = this.#upload;
    while ((this.#keptBytes > KEPT_BYTES || this.#row.keepsCopy === false) && upload.kept < upload.confirmed) {
      const n = upload.kept;
      const { file, hash, witness } = await this.#store.get('segments', [id, n]);
      upload.kept += 1;
      this.#keptBytes -= file?.length ?? 0;
      await this.#store.put(['segments', [id, n], { hash, witness }], this.#uploadRow);
    }
  }
}
