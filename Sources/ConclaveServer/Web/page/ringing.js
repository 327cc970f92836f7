// Rings: a dialog with a soft tone, one at a time; during a call a banner beside it, which leaves the call usable.

import { busy, byID, listNames, setInitials, setText } from './dom.js';
import { labelFor, nameFor } from './names.js';
import { Tone, incoming, waiting } from './tone.js';

/** Whom a ring is from, and everybody else who is in the call or rung with this person: `{title, text}`. */
export function wordsForRing({ from, media, members }, own) {
  const others = members.filter(({ user }) => user !== from && user !== own);
  const inState = (wanted) => listNames(others.filter(({ state }) => state === wanted).map(({ user }) => labelFor(user)));
  const kind = media === 'video' ? 'Video call' : 'Audio call';
  const parts = [inState('joined') && `${inState('joined')} ${others.filter(({ state }) => state === 'joined').length > 1 ? 'are' : 'is'} in it`];
  if (inState('ringing')) parts.push(`also rings ${inState('ringing')}`);
  return { title: `${labelFor(from)} is calling`, text: [kind, ...parts.filter(Boolean)].join(' · ') };
}

export class Ringing {
  #dialog = byID('ring');
  #banner = byID('second-ring');
  #tone = new Tone(incoming);
  #waitingTone = new Tone(waiting);
  #queue = [];
  #shown;
  #own;
  #isInCall;

  /**
   * `accept(ring, withCamera)`, `end(ring)`, which ends the present call for it, and `decline(ring)` follow the buttons. `own()` is this user's id.
   */
  constructor({ accept, end, decline, isInCall, own }) {
    this.#isInCall = isInCall;
    this.#own = own;
    const answer = (action) => () => {
      const ring = this.#shown;
      this.remove(ring);
      return action(ring);
    };
    const withMedia = (ring) => accept(ring, ring.media === 'video');
    byID('ring-accept-video').addEventListener('click', answer((ring) => accept(ring, true)));
    byID('ring-accept-audio').addEventListener('click', answer((ring) => accept(ring, false)));
    byID('ring-decline').addEventListener('click', answer(decline));
    for (const [id, action] of [['hold', withMedia], ['end', end], ['decline', decline]]) {
      const button = byID(`second-ring-${id}`);
      button.addEventListener('click', busy(button, answer(action)));
    }
    // Escape neither answers nor declines by accident; a second one closes whatever we say.
    this.#dialog.addEventListener('cancel', (event) => event.preventDefault());
    this.#dialog.addEventListener('close', () => this.#shown && this.#banner.hidden && !this.#dialog.open && this.#dialog.showModal());
  }

  get current() {
    return this.#shown;
  }

  add(ring) {
    this.#queue.push(ring);
    this.#next();
  }

  remove(ring) {
    this.#queue = this.#queue.filter((other) => other.call !== ring.call);
    if (this.#shown?.call !== ring.call) return;
    this.#shown = undefined;
    this.#hide();
    this.#next();
  }

  /** A call has begun here or is over: a ring moves between banner and dialog. */
  callChanged() {
    if (!this.#shown || this.#isInCall() === !this.#banner.hidden) return;
    const ring = this.#shown;
    this.#shown = undefined;
    this.#hide();
    this.#show(ring);
  }

  #next() {
    if (!this.#shown && this.#queue.length > 0) this.#show(this.#queue.shift());
  }

  #show(ring) {
    this.#shown = ring;
    const isSecond = this.#isInCall();
    const prefix = isSecond ? 'second-ring' : 'ring';
    const { title, text } = wordsForRing(ring, this.#own());
    setInitials(byID(`${prefix}-avatar`), nameFor(ring.from));
    setText(byID(`${prefix}-title`), title);
    setText(byID(`${prefix}-text`), text);
    if (isSecond) {
      this.#banner.hidden = false;
      this.#waitingTone.start();
      return;
    }
    this.#dialog.showModal();
    this.#tone.start();
    navigator.vibrate?.([300, 200, 300]);
  }

  #hide() {
    this.#tone.stop();
    this.#waitingTone.stop();
    this.#banner.hidden = true;
    this.#dialog.close();
  }
}
