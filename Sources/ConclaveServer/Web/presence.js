// Who is there: the users that were asked about, and how they are (protocol section 7).

const WATCHED = 100; // the people called last; more nobody looks at

/** Events: `change`. */
export class Presence extends EventTarget {
  #states = new Map();
  #watched = [];
  #own = 'available';
  #request;

  /** `request(path, body)` is `Conclave.request`. */
  constructor(request) {
    super();
    this.#request = request;
  }

  /** `available`, `ringing`, `in-call`, `unavailable` or `offline`; undefined where the server does not say. */
  of(user) {
    return this.#states.get(user);
  }

  /** What this user has set: `available` or `unavailable`. */
  get own() {
    return this.#own;
  }

  /** From now on it is known how `users` are. Those whom this user may not watch are not. */
  async watch(users) {
    const wanted = [...new Set(users)].slice(0, WATCHED);
    if (wanted.join() === this.#watched.join()) return;
    this.#watched = wanted;
    await this.#ask();
  }

  async set(state) {
    await this.#request('presence/set', { state });
    this.#own = state;
    this.#changed();
  }

  /** On a new connection nothing is watched, and a user's own wish is said again. */
  async connectionReady() {
    if (this.#own !== 'available') await this.set(this.#own).catch(() => {});
    await this.#ask().catch(() => {});
  }

  /** The event `presence`. */
  take({ user, state }) {
    this.#states.set(user, state);
    this.#changed();
  }

  async #ask() {
    if (this.#watched.length === 0) return;
    const { users } = await this.#request('presence/watch', { users: this.#watched });
    this.#states = new Map((users ?? []).map(({ user, state }) => [user, state]));
    this.#changed();
  }

  #changed() {
    this.dispatchEvent(new Event('change'));
  }
}
