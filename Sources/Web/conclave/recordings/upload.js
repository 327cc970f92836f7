// The rules of an upload: what to do next, and what an answer means. It has no clock, network or store.

const FIRST_MS = 500;
const LONGEST_MS = 30_000;
const FULL_MS = 30_000; // between attempts while the server has no room
const MAX_RETRY_AFTER_MS = 300_000;
const ASKS_AFTER = 3; // failures in a row, then the server is asked how far it is
const GIVES_UP_AFTER = 3; // refusals in a row that contradict what the server said
const CONFIRMS_EVERY = 8; // segments

/**
 * One recording's upload, in order. `sealed` segments are in the store, the server has said that it stored `stored`, and has shown the hash of the last of
 * `confirmed` when it was asked. `kept` is the first whose file is still here. `jitter()` is from 0 to 1.
 */
export class Upload {
  /**
   * `uploading`; `waiting` for the network or the server; `full`: the server has no room, and is asked again; `stored`: everything is confirmed. Or it is over:
   * `lost`, because the server has other segments, or no longer those that are not here either; `ended`, deleted or finished; `refused`.
   */
  state = 'uploading';
  sealed;
  stored;
  confirmed;
  kept;
  #hasTicket;
  #jitter;
  #failures = 0;
  #contradictions = 0;
  #registrations = 0;
  #mustAsk;
  #until = 0;

  constructor({ sealed, stored, confirmed, kept = confirmed, hasTicket, jitter }) {
    Object.assign(this, { sealed, stored, confirmed, kept });
    this.#hasTicket = hasTicket;
    this.#jitter = jitter;
    this.#mustAsk = hasTicket; // an answer may have been lost with the tab
  }

  get isOver() {
    return ['lost', 'ended', 'refused'].includes(this.state);
  }

  /** `{act}` to do at `now` (ms): `register`, `ask`, `put` with `n`, `wait` with `ms`, or `rest` until a segment is sealed. */
  next(now) {
    if (this.isOver) return { act: 'rest' };
    if (now < this.#until) return { act: 'wait', ms: this.#until - now };
    if (!this.#hasTicket) return { act: 'register' };
    const isAll = this.stored === this.sealed;
    if (this.#mustAsk || this.stored - this.confirmed >= CONFIRMS_EVERY || (isAll && this.confirmed < this.stored)) return { act: 'ask' };
    if (!isAll) return { act: 'put', n: this.stored };
    this.state = 'stored';
    return { act: 'rest' };
  }

  /** Segment `n` is in the store. */
  add(n) {
    this.sealed = Math.max(this.sealed, n + 1);
    if (this.state === 'stored') this.state = 'uploading';
  }

  /** The network is back, or another one: no pause. */
  hurry() {
    if (this.state !== 'full') this.#until = 0;
  }

  registered() {
    this.#hasTicket = true;
    this.#mustAsk = true; // it may be registered for the second time
    this.#succeeded();
  }

  /** It is to be registered once more: there is more to be said with it. */
  renew() {
    this.#hasTicket = false;
  }

  /** The server has refused to register it, for good. */
  refuse(state = 'refused') {
    this.state = state;
  }

  /**
   * The server's answer to `put`: its `status`, 0 if there was none; `retryAfter` in ms; and of a 409 `position`, `{next, isOurs}`: how far it is, and whether
   * its head is the hash of that segment here.
   */
  put({ status, retryAfter = 0, position = undefined }, now) {
    if (status === 200 || status === 201) {
      this.stored += 1;
      this.#contradictions = 0;
      return this.#succeeded();
    }
    if (status === 409 && position) {
      const before = this.stored;
      this.#place(position);
      if (this.stored === before) this.#contradict(now);
      return undefined;
    }
    return this.#refused(status, retryAfter, now);
  }

  /** The server's answer to `ask`. */
  ask({ status, retryAfter = 0, position = undefined }, now) {
    if (status !== 200 || !position) return this.#refused(status === 200 ? 0 : status, retryAfter, now);
    this.#mustAsk = false;
    this.#succeeded();
    return this.#place(position);
  }

  /** There was no answer to `register`, or one that is not final; `isFull`: there is no room for this user. */
  failed(now, { isFull = false } = {}) {
    if (isFull) this.#pause(FULL_MS, now, 'full');
    else this.#fail(0, now);
  }

  /** A server that has lost segments gets the same bytes again; one that has others, or more than there are, cannot be helped. */
  #place({ next, isOurs }) {
    if (!isOurs || next > this.sealed || next < this.kept) {
      this.state = 'lost';
      return;
    }
    [this.stored, this.confirmed] = [next, next];
  }

  #refused(status, retryAfter, now) {
    if (status === 410) this.state = 'ended';
    else if (status === 401 || status === 403 || status === 404) this.#registerAgain(now);
    else if (status === 507) this.#pause(Math.max(FULL_MS, retryAfter), now, 'full');
    else if (status === 0 || status === 408 || status === 409 || status === 429 || status >= 500) this.#fail(retryAfter, now);
    else this.state = 'refused';
  }

  /** A ticket that does not count, or a server that has forgotten the recording: it is registered once more. */
  #registerAgain(now) {
    this.#registrations += 1;
    if (this.#registrations > GIVES_UP_AFTER) this.state = 'refused';
    this.#hasTicket = false;
    this.#fail(0, now);
  }

  #contradict(now) {
    if (this.isOver) return;
    this.#contradictions += 1;
    if (this.#contradictions >= GIVES_UP_AFTER) this.state = 'refused';
    else this.#fail(0, now);
  }

  #fail(retryAfter, now) {
    if (this.isOver) return;
    this.#failures += 1;
    if (this.#failures % ASKS_AFTER === 0) this.#mustAsk = true;
    const pause = Math.min(LONGEST_MS, FIRST_MS * 2 ** (this.#failures - 1));
    this.#pause(Math.max(pause * (0.5 + this.#jitter() / 2), Math.min(retryAfter, MAX_RETRY_AFTER_MS)), now, 'waiting');
  }

  #pause(ms, now, state) {
    this.state = state;
    this.#until = now + ms;
  }

  #succeeded() {
    this.#failures = 0;
    this.#until = 0;
    this.state = 'uploading';
  }
}
