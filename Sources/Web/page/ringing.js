// Rings: a dialog with a soft tone, one at a time; during a call a banner, which leaves the call usable.

import { avatar, busy, byID, element, openDialog, setInitials, setText } from './dom.js';
import { labelFor, nameFor } from './names.js';
import { preview } from './preview.js';
import { listNames, t } from './texts.js';
import { showRingLight } from './video-first.js';
import { Tone, incoming, waiting } from './tone.js';

const NAMED = 6; // of the people in a call, and of those who are rung
const OTHERS = 3; // rings beside the one that is shown

/** The texts of a ring, `{title, text}`: its caller, and everyone else who is in the call or rung. */
export function wordsForRing({ from, media, members }, own) {
  const others = members.filter(({ user }) => user !== from && user !== own);
  const inState = (wanted) => others.filter(({ state }) => state === wanted).map(({ user }) => labelFor(user));
  const [joined, ringing] = [inState('joined'), inState('ringing')];
  const parts = [t(media === 'video' ? 'call.video' : 'call.audio')];
  if (joined.length > 0) parts.push(t('ring.in-it', { names: listNames(joined, NAMED), count: joined.length }));
  if (ringing.length > 0) parts.push(t('ring.also', { names: listNames(ringing, NAMED) }));
  return { title: t('ring.title', { name: labelFor(from) }), text: parts.join(' · ') };
}

export class Ringing {
  #dialog = byID('ring');
  #banner = byID('second-ring');
  #tone = new Tone(incoming);
  #waitingTone = new Tone(waiting);
  #opened = new MutationObserver(() => this.#placeBanner());
  #queue = [];
  #shown;
  #own;
  #isInCall;
  #accept;
  #decline;
  #canReply;

  /**
   * `accept(ring, {camera, microphone})`, with which devices, `end(ring)`, which ends the current call for it, `decline(ring)` and `reply(ring)`, which declines and
   * records a message, are called by the buttons. `own()` is this user's id.
   */
  constructor({ accept, end, decline, reply = () => {}, canReply = () => false, isInCall, own }) {
    this.#isInCall = isInCall;
    this.#own = own;
    const answer = (action) => () => this.#take(this.#shown, action);
    const withMedia = (ring, microphone) => accept(ring, { camera: ring.media === 'video', microphone });
    this.#accept = withMedia;
    this.#decline = decline;
    this.#canReply = canReply;
    byID('ring-reply').addEventListener('click', answer(reply));
    byID('ring-accept-video').addEventListener('click', answer((ring, microphone) => accept(ring, { camera: true, microphone })));
    byID('ring-accept-audio').addEventListener('click', answer((ring, microphone) => accept(ring, { camera: false, microphone })));
    byID('ring-decline').addEventListener('click', answer(decline));
    for (const [id, action] of [['hold', withMedia], ['end', end], ['decline', decline]]) {
      const button = byID(`second-ring-${id}`);
      button.addEventListener('click', busy(button, answer(action)));
    }
    // Escape must not answer or decline by accident; a second one closes the dialog in any case.
    this.#dialog.addEventListener('cancel', (event) => event.preventDefault());
    this.#dialog.addEventListener('close', () => this.#shown && this.#banner.hidden && !this.#dialog.open && this.#dialog.showModal());
  }

  get current() {
    return this.#shown;
  }

  /** Like the buttons, for a ringing call; with a camera if it is a video call. */
  answer(call) {
    return this.#take(this.#find(call), this.#accept);
  }

  decline(call) {
    return this.#take(this.#find(call), this.#decline);
  }

  /** Whether this user is calling now. */
  isFrom(user) {
    return [this.#shown, ...this.#queue].some((ring) => ring?.from === user);
  }

  #find(call) {
    return [this.#shown, ...this.#queue].find((ring) => ring?.call === call);
  }

  #take(ring, action) {
    if (!ring) return undefined;
    const microphone = ring === this.#shown && this.#dialog.open ? preview.wants.microphone : true; // before the next ring is shown
    this.remove(ring);
    return action(ring, microphone);
  }

  add(ring) {
    this.#queue.push(ring);
    this.#next();
    this.#showOthers();
  }

  remove(ring) {
    this.#queue = this.#queue.filter((other) => other.call !== ring.call);
    if (this.#shown?.call === ring.call) {
      this.#shown = undefined;
      this.#hide();
      this.#next();
    }
    this.#showOthers();
  }

  /** Everybody else who calls now: a press puts that ring in front. */
  #showOthers() {
    const shown = this.#queue.slice(0, OTHERS);
    byID('ring-others').hidden = shown.length === 0;
    byID('ring-reply').hidden = shown.length > 0 || !this.#canReply();
    byID('ring-others').replaceChildren(...shown.map((ring) => this.#rowOf(ring)));
  }

  #rowOf(ring) {
    const row = element('button', { type: 'button', className: 'secondary' }, avatar(nameFor(ring.from), ring.from), wordsForRing(ring, this.#own()).title);
    row.addEventListener('click', () => {
      const waiting = this.#shown;
      this.#queue = [waiting, ...this.#queue.filter((other) => other !== ring)];
      this.#shown = undefined;
      this.#hide();
      this.#show(ring);
      this.#showOthers();
    });
    return element('li', {}, row);
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
    showRingLight(true);
    const isSecond = this.#isInCall();
    if (isSecond) this.#banner.append(byID('ring-others'));
    else byID('ring-text').after(byID('ring-others'));
    const prefix = isSecond ? 'second-ring' : 'ring';
    const { title, text } = wordsForRing(ring, this.#own());
    setInitials(byID(`${prefix}-avatar`), nameFor(ring.from), ring.from);
    setText(byID(`${prefix}-title`), title);
    setText(byID(`${prefix}-text`), text);
    if (isSecond) {
      this.#banner.hidden = false;
      this.#placeBanner();
      for (const node of [byID('call'), ...document.querySelectorAll('dialog')]) this.#opened.observe(node, { attributeFilter: ['hidden', 'open'] });
      this.#waitingTone.start();
      return;
    }
    this.#dialog.showModal();
    // One's own picture and level, where the browser allows camera and microphone already: nobody is asked for them in order to look.
    preview.show(byID('ring-preview'), { sources: ring.media === 'video' ? ['camera', 'microphone'] : ['microphone'], switches: ['microphone'], mayAsk: false });
    this.#tone.start();
    navigator.vibrate?.([300, 200, 300]);
  }

  /** Where it can be pressed: in the open dialog, else in the call; in the lobby while the call is being joined. */
  #placeBanner() {
    const host = openDialog() ?? byID(byID('call').hidden ? 'lobby' : 'call');
    if (this.#banner.parentElement === host) return;
    if (host === byID('call')) byID('call-bar').after(this.#banner);
    else host.prepend(this.#banner);
  }

  #hide() {
    this.#opened.disconnect();
    showRingLight(false);
    this.#tone.stop();
    this.#waitingTone.stop();
    this.#banner.hidden = true;
    preview.leave(byID('ring-preview'));
    this.#dialog.close();
  }
}
