// Whether somebody may be looking at the page. A page that has been hidden for a while shows nobody's video, so video need not be sent.

const AWAY_MS = 5_000; // a glance at another tab costs no key frames

/** Events: `change`. */
export class Attention extends EventTarget {
  /** The page has been hidden for 5 s. */
  isAway = false;
  #timer;

  constructor() {
    super();
    document.addEventListener('visibilitychange', () => this.#update());
    this.#update();
  }

  #update() {
    clearTimeout(this.#timer);
    if (document.hidden) this.#timer = setTimeout(() => this.#set(true), AWAY_MS);
    else this.#set(false);
  }

  #set(isAway) {
    if (this.isAway === isAway) return;
    this.isAway = isAway;
    this.dispatchEvent(new Event('change'));
  }
}
