// The ring dialog: one ring at a time, with a soft tone.

import { byID, joinNames, setInitials, setText } from './dom.js';
import { labelFor, nameFor } from './names.js';
import { Tone, incoming } from './tone.js';

export class RingDialog {
  #dialog = byID('ring');
  #tone = new Tone(incoming);
  #waiting = [];
  #shown;

  /** `accept(ring, withCamera)` and `decline(ring)` are called when a button is pressed. */
  constructor({ accept, decline, isInCall }) {
    this.isInCall = isInCall;
    const answer = (action) => () => {
      const ring = this.#shown;
      this.remove(ring);
      action(ring);
    };
    byID('ring-accept-video').addEventListener('click', answer((ring) => accept(ring, true)));
    byID('ring-accept-audio').addEventListener('click', answer((ring) => accept(ring, false)));
    byID('ring-decline').addEventListener('click', answer(decline));
    // Escape neither answers nor declines by accident; a second one closes whatever we say.
    this.#dialog.addEventListener('cancel', (event) => event.preventDefault());
    this.#dialog.addEventListener('close', () => this.#shown && !this.#dialog.open && this.#dialog.showModal());
  }

  get current() {
    return this.#shown;
  }

  add(ring) {
    this.#waiting.push(ring);
    this.#next();
  }

  remove(ring) {
    this.#waiting = this.#waiting.filter((other) => other.call !== ring.call);
    if (this.#shown?.call !== ring.call) return;
    this.#shown = undefined;
    this.#tone.stop();
    this.#dialog.close();
    this.#next();
  }

  #next() {
    if (this.#shown || this.#waiting.length === 0) return;
    const ring = this.#waiting.shift();
    this.#shown = ring;
    const others = ring.members.filter(({ user, state }) => user !== ring.from && state === 'joined').map(({ user }) => labelFor(user));
    setInitials(byID('ring-avatar'), nameFor(ring.from));
    setText(byID('ring-title'), `${labelFor(ring.from)} is calling`);
    const kind = ring.media === 'video' ? 'Video call' : 'Audio call';
    const company = others.length > 0 ? ` with ${joinNames(others)}` : '';
    const consequence = this.isInCall() ? '. Answering puts your present call on hold.' : '';
    setText(byID('ring-text'), `${kind}${company}${consequence}`);
    this.#dialog.showModal();
    this.#tone.start();
    navigator.vibrate?.([300, 200, 300]);
  }
}
