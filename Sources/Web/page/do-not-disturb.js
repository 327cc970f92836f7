// *Do not disturb*: its choice of an end, its sign beside the own name, and its end.
//
// The server keeps only whether this user may be rung, the same for all devices. It knows of no end: the page that set one turns it off by a timer, and one that was
// closed at that moment does so when it starts. Until then it stays on if another device of the user is connected; without any the server forgets it after 20 s
// (protocol section 7). Other browsers show that it is on, without its end.

import { busy, byID, setText } from './dom.js';
import { clock, when } from './history-words.js';
import { notice, wordsForError } from './notices.js';
import * as session from './session.js';
import { t } from './texts.js';

const HOUR_MS = 3_600_000;
const MORNING = 7; // o'clock
const NIGHT_ENDS = 4; // before that, "tomorrow" begins in a few hours

/** The end of each choice, in ms, seen from `now`; undefined if there is none. */
export function endsFrom(now) {
  const morning = new Date(now);
  if (morning.getHours() >= NIGHT_ENDS) morning.setDate(morning.getDate() + 1);
  morning.setHours(MORNING, 0, 0, 0);
  return { hour: now + HOUR_MS, tomorrow: morning.getTime(), always: undefined };
}

export class DoNotDisturb {
  #conclave;
  #ended;
  #timer;
  #ends = endsFrom(Date.now()); // as they are shown

  /** `ended()` is called when it was turned off. */
  constructor({ conclave, ended }) {
    this.#conclave = conclave;
    this.#ended = ended;
    conclave.addEventListener('presence', () => this.#look());
    document.addEventListener('visibilitychange', () => this.#look()); // timers stand still while a computer sleeps
    const button = byID('availability');
    button.addEventListener('click', busy(button, () => (this.#isOn ? this.#turnOff() : this.#ask())));
    for (const choice of Object.keys(this.#ends)) {
      const chosen = byID(`quiet-${choice}`);
      chosen.addEventListener('click', busy(chosen, () => this.#turnOn(this.#ends[choice])));
    }
  }

  get #isOn() {
    return this.#conclave.presence.own === 'unavailable';
  }

  get #user() {
    return this.#conclave.user;
  }

  #ask() {
    this.#ends = endsFrom(Date.now());
    setText(byID('quiet-hour-end'), clock(this.#ends.hour));
    setText(byID('quiet-tomorrow-end'), when(this.#ends.tomorrow));
    byID('quiet-dialog').showModal();
  }

  async #turnOn(end) {
    byID('quiet-dialog').close();
    session.saveQuietEnd(this.#user, undefined); // one that was not noticed to have passed
    try {
      await this.#conclave.presence.set('unavailable');
      session.saveQuietEnd(this.#user, end);
      this.#look();
    } catch (error) {
      notice(wordsForError(error));
    }
  }

  async #turnOff() {
    try {
      await this.#conclave.presence.set('available');
      session.saveQuietEnd(this.#user, undefined);
      this.#look();
      this.#ended();
    } catch (error) {
      notice(wordsForError(error)); // it is tried again when the connection is back
    }
  }

  /** Shows what is so now, and turns it off if its end has passed. */
  #look() {
    clearTimeout(this.#timer);
    if (!this.#user) return;
    const isOn = this.#isOn;
    // While the user is in a call, the server does not say whether they may be rung otherwise.
    if (!isOn && this.#conclave.presence.of(this.#user) === 'available') session.saveQuietEnd(this.#user, undefined); // turned off on another device
    const end = session.savedQuietEnd(this.#user);
    this.#show(isOn, end);
    if (end === undefined) return;
    const left = end - Date.now();
    if (left > 0) this.#timer = setTimeout(() => this.#look(), left);
    else if (this.#conclave.status === 'ready' && !byID('availability').disabled) busy(byID('availability'), () => this.#turnOff())();
  }

  #show(isOn, end) {
    const button = byID('availability');
    button.ariaPressed = isOn;
    button.ariaHasPopup = isOn ? null : 'dialog';
    button.classList.toggle('pressed', isOn);
    byID('quiet-sign').hidden = !isOn;
    byID('quiet-sign').title = isOn && end !== undefined ? when(end) : '';
    setText(byID('quiet-end'), isOn && end !== undefined ? t('quiet.until', { time: clock(end) }) : '');
  }
}
