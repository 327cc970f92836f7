// Recordings on this page, if the server stores any: what records and plays is loaded only then, and soon after the sign-in, so that it is of the same version as
// the rest.

const ABSENT = ['request.unknown', 'recording.unavailable', 'auth.forbidden'];

export class Messages {
  #conclave;
  #options;
  #page; // a promise
  #isLoaded = false;
  #isAbsent = false;

  #found;

  /**
   * `found()` is called when messages can be recorded here; the others are the options of `RecordingsPage`.
   * @param {any} options
   */
  constructor({ found, ...options }) {
    this.#options = options;
    this.#found = found;
    this.#conclave = options.conclave;
    this.#conclave.addEventListener('ready', () => (this.#isAbsent = false));
    this.#conclave.addEventListener('recording', ({ detail }) => this.#arrived(detail));
  }

  /** Whether messages can be recorded here. */
  get isHere() {
    return this.#isLoaded;
  }

  /** Shows what the server has. */
  async refresh() {
    if (this.#isAbsent || !(await this.#isServed())) return;
    const page = await this.#load();
    await page?.refresh().catch(() => {}); // the list stays as it was, until the next time
    if (!page || this.#isLoaded) return;
    this.#isLoaded = true;
    document.body.classList.add('keeps-recordings');
    this.#found();
  }

  /** For `users`, whom `call` did not reach. */
  async record(users, call) {
    return (await this.#page)?.record({ users, call });
  }

  /** For people of this user's choice, who can follow it. */
  async recordOwn() {
    (await this.#page)?.recordOwn();
  }

  /** Somebody rings. */
  async interrupt() {
    (await this.#page)?.interrupt();
  }

  async forgetAll() {
    if (this.#isLoaded) await (await this.#page).forgetAll();
  }

  async #arrived(told) {
    if (!this.#isLoaded) await this.refresh();
    if (this.#isLoaded) await (await this.#page).arrived(told).catch(() => {});
  }

  async #isServed() {
    if (this.#isLoaded) return true;
    try {
      await this.#conclave.request('recordings/list', { limit: 1 });
      return true;
    } catch (error) {
      this.#isAbsent = ABSENT.includes(error.code);
      return false;
    }
  }

  #load() {
    this.#page ??= import('./recordings-page.js').then(
      ({ RecordingsPage }) => new RecordingsPage(this.#options),
      () => (this.#page = undefined), // no network: the next time
    );
    return this.#page;
  }
}
