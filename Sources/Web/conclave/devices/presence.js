// Presence: the watched users, and their states (protocol section 7).

const WATCHED = 100; // the people called last; nobody looks at more

/** Events: `change`. */
export class Presence extends EventTarget {
  #states = new Map();
  #watched = [];
  #user;
  #own = 'available';
  #request;

  /** `request(path, body)` is `Conclave.request`. */
  constructor(request) {
    super();
    this.#request = request;
  }

  /** `available`, `ringing`, `in-call`, `unavailable` or `offline`; undefined if the server does not say. */
  of(user) {
    return this.#states.get(user);
  }

  /** This user's own setting: `available` or `unavailable`. */
  get own() {
    return this.#own;
  }

  /** Watches the presence of `users`, except those that this user may not watch. */
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

  /** A new connection watches nothing yet. The user's own setting is sent again; one made before a reload or on another device is read. */
  async connectionReady(user) {
    this.#user = user;
    if (this.#own !== 'available') await this.set(this.#own).catch(() => {});
    await this.#ask().catch(() => {});
  }

  /** The event `presence`. */
  take({ user, state }) {
    this.#states.set(user, state);
    this.#learnOwn();
    this.#changed();
  }

  async #ask() {
    const { users } = await this.#request('presence/watch', { users: [this.#user, ...this.#watched].filter(Boolean) });
    this.#states = new Map((users ?? []).map(({ user, state }) => [user, state]));
    this.#learnOwn();
    this.#changed();
  }

  /** `ringing` and `in-call` hide the setting. */
  #learnOwn() {
    const state = this.of(this.#user);
    if (state === 'available' || state === 'unavailable') this.#own = state;
  }

  #changed() {
    this.dispatchEvent(new Event('change'));
  }
}
