// The door of a call: guests who wait until a member admits them, as a member's client knows them (protocol section 5.13).

const MOST = 32; // as many as a call may have

/**
 * A server could invent people at the door, so only those are shown whose word the key of a link of this call has signed. `admissions` are the call's. Events:
 * `change`, when somebody came or is gone.
 */
export class Door extends EventTarget {
  #admissions;
  #knocks = new Map(); // user -> {word, name, expiresAt}
  #shown = [];
  #checking = new Map(); // user -> the newest knock whose word is being checked

  constructor(admissions) {
    super();
    this.#admissions = admissions;
    admissions.addEventListener('change', () => this.#look());
  }

  /** The guests who wait, first the one that waits longest: `{user, name, expiresAt}`. The name is as the guest says. */
  get waiting() {
    return this.#shown;
  }

  /** `guest.knock`. */
  async knocked(body) {
    const { user, name = '', expiresAt } = body;
    this.#checking.set(user, body);
    const word = await this.#admissions.knock(user, body);
    if (this.#checking.get(user) !== body) return; // it was answered in the meantime
    this.#checking.delete(user);
    if (!word || (this.#knocks.size >= MOST && !this.#knocks.has(user))) return;
    this.#knocks.set(user, { user, name, expiresAt, word });
    await this.#look();
  }

  /** `guest.knock-over`, or the guest was answered already. */
  async over(user) {
    this.#checking.delete(user);
    if (this.#knocks.delete(user)) await this.#look();
  }

  /** The word with which a guest who is shown has knocked. */
  wordOf(user) {
    return this.#shown.some((guest) => guest.user === user) ? this.#knocks.get(user)?.word : undefined;
  }

  async #look() {
    const knocks = [...this.#knocks.values()].sort((one, other) => one.expiresAt - other.expiresAt);
    const isShown = await Promise.all(knocks.map(({ word }) => this.#admissions.isWaiting(word.link)));
    // Somebody may have left in the meantime.
    const shown = knocks.filter(({ user }, at) => isShown[at] && this.#knocks.has(user)).map(({ user, name, expiresAt }) => ({ user, name, expiresAt }));
    if (JSON.stringify(shown) === JSON.stringify(this.#shown)) return;
    this.#shown = shown;
    this.dispatchEvent(new Event('change'));
  }
}
