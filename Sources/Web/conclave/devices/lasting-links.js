// Lasting links: made without a call, and started by the device that made them (protocol section 4, "Lasting links").

import { RequestError } from '../connection/index.js';
import { LinkSecret } from '../trust/index.js';

const AGAIN_MS = 60_000; // an event may be lost
const LEAST_MS = 1_000; // between two questions, whatever the server reports
const PASSING = ['connection-lost', 'timeout', 'rate.limited', 'server.busy', 'server.draining'];

/**
 * The links of this device: only `store` has their secrets and names. Events: `change`, when a link was made, deleted or renamed; `waiting` with the id of a
 * link at which somebody waits.
 */
export class LastingLinks extends EventTarget {
  #identity;
  #store;
  #request;
  #making = new Set();
  /** @type {Map<string, Set<() => void>>} */
  #waits = new Map(); // what is to be done when a link may have changed, by id

  /** `request(path, body)` sends to `/app/links/…`. */
  constructor({ identity, store, request }) {
    super();
    this.#identity = identity;
    this.#store = store;
    this.#request = request;
  }

  /**
   * Makes a link that lasts `expiresIn` seconds. If `guestsWait`, people without an account wait in its calls until a member admits them. Resolves with the link
   * as in `list`.
   */
  async make({ expiresIn, name = '', guestsWait = false }) {
    const secret = LinkSecret.make(this.#identity);
    const id = await secret.id();
    const record = { secret: secret.text, name, guestsWait, expiresAt: Date.now() + 1_000 * expiresIn };
    this.#making.add(id);
    try {
      // Before the server knows of it: without the secret the link would be of no use.
      await this.#store.put('links', this.#key(id), record);
      const made = await this.#request('make', { link: id, expiresIn });
      if (made.link !== id || made.device !== this.#identity.device) throw new RequestError({ code: 'reply.refused', message: 'The server has made another link.' });
      return this.#shown(made, record);
    } catch (error) {
      await this.#store.delete('links', this.#key(id));
      throw error;
    } finally {
      this.#making.delete(id);
      this.#changed();
    }
  }

  /**
   * `{links, days}`: the links of this user, and the most days that a new one may last. Each has `id`, `device`, `expiresAt` and, while a call of it runs, `call`;
   * those that were made here also have `secret`, `name` and `guestsWait`, and can be started.
   */
  async list() {
    const { links, days } = await this.#request('list');
    const records = new Map(await this.#records());
    for (const [id, { expiresAt }] of records) {
      const isListed = links.some(({ link }) => link === id) || this.#making.has(id);
      if (isListed && expiresAt > Date.now()) continue;
      records.delete(id);
      await this.#store.delete('links', this.#key(id));
    }
    return { links: links.map((link) => this.#shown(link, records.get(link.link))), days };
  }

  /** Gives a link another name, which only those who get its address from now on read. */
  async rename(id, name) {
    const record = await this.#store.get('links', this.#key(id));
    if (!record) return;
    await this.#store.put('links', this.#key(id), { ...record, name });
    this.#changed();
  }

  /** Deletes a link. Without its secret nobody can start it any more, whatever the server does. */
  async delete(id) {
    await this.#store.delete('links', this.#key(id));
    this.#changed();
    await this.#request('delete', { link: id });
  }

  /** `{secret, guestsWait}` of a link that this device may start: it has made it, and it has not expired by this device's clock. */
  async startable(id) {
    const record = await this.#store.get('links', this.#key(id));
    if (!record) throw new RequestError({ code: 'link.elsewhere', message: 'Only the device that made a link starts it.' });
    if (record.expiresAt <= Date.now()) throw new RequestError({ code: 'call.link-invalid', message: 'The link has expired.' });
    return record;
  }

  // Somebody else's

  /**
   * `{call, link, name, expiresAt}` of the link with this secret, as soon as a call of it runs: `link` is the token to join it with, `name` its owner as the server
   * says. `waiting({name, expiresAt})` is called while nobody has started it. Rejects with `call.link-invalid` when the link is over.
   * @param {string} text
   * @param {{ waiting?: (link: { name?: string, expiresAt: number }) => void, signal?: AbortSignal }} options
   */
  async wait(text, { waiting = () => {}, signal = undefined } = {}) {
    const id = await LinkSecret.from(text).id();
    for (;;) {
      signal?.throwIfAborted();
      const asked = performance.now();
      const changed = this.#change(id, signal); // an event that comes during the request counts
      try {
        const { call, token, name, expiresAt } = await this.#request('open', { link: id });
        if (call) return { call, link: token, name, expiresAt };
        waiting({ name, expiresAt });
        await changed.promise;
      } catch (error) {
        if (!PASSING.includes(error.code)) throw error;
        await changed.promise;
      } finally {
        changed.end();
      }
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, asked + LEAST_MS - performance.now())));
    }
  }

  /** The event `link.changed`. */
  changed(id) {
    for (const act of [...(this.#waits.get(id) ?? [])]) act();
  }

  /** The event `link.waiting`. */
  waiting(id) {
    this.dispatchEvent(new CustomEvent('waiting', { detail: id }));
  }

  /** A new connection waits at no link yet. */
  connectionReady() {
    for (const id of [...this.#waits.keys()]) this.changed(id);
  }

  /** Resolves when the link may have changed; rejects when `signal` does. */
  #change(id, signal) {
    /** @type {{ promise: Promise<void>, end: () => void }} */
    const change = { promise: Promise.resolve(), end: () => {} };
    change.promise = new Promise((resolve, reject) => {
      const timer = setTimeout(resolve, AGAIN_MS);
      const act = () => resolve();
      const stop = () => reject(signal?.reason);
      const acts = this.#waits.get(id) ?? new Set();
      this.#waits.set(id, acts.add(act));
      signal?.addEventListener('abort', stop);
      change.end = () => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', stop);
        acts.delete(act);
        if (acts.size === 0 && this.#waits.get(id) === acts) this.#waits.delete(id);
      };
    });
    change.promise.catch(() => {}); // whoever waits for it is told
    return change;
  }

  #key(id) {
    return `${this.#prefix}${id}`;
  }

  get #prefix() {
    const { user, device } = this.#identity;
    return `${user}/${device}>`;
  }

  async #records() {
    const entries = await this.#store.entries('links', this.#prefix);
    return entries.map(([key, record]) => [key.slice(this.#prefix.length), record]);
  }

  #shown({ link, device, expiresAt, call }, record) {
    const own = record ? { secret: record.secret, name: record.name, guestsWait: record.guestsWait } : {};
    return { id: link, device, expiresAt, call, ...own };
  }

  #changed() {
    this.dispatchEvent(new Event('change'));
  }
}
