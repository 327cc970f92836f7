// The person's own microphone: the hint that nobody hears what is said while it is muted, and push to talk.

import { byID, openDialog, setText } from './dom.js';
import { wakeControls } from './idle.js';
import { Level } from './level.js';
import { MutedSpeech } from './muted-speech.js';
import { notice, wordsForError } from './notices.js';
import { PushToTalk, isTalkKey } from './push-to-talk.js';
import { saveSetting, savedSetting } from './session.js';
import { t } from './texts.js';

const set = (call, isOn) => call?.setMicrophone(isOn).catch((error) => notice(wordsForError(error)));

const hasTouch = () => matchMedia('(pointer: coarse)').matches;

export class OwnVoice {
  #call;
  #talk = new PushToTalk();
  #isPushToTalk = savedSetting('push-to-talk') ?? false;
  #begun = new WeakSet(); // calls that push to talk has muted at their beginning
  #isOfTouch = false; // the press of the button under way is push to talk's: its click does nothing more
  #listened; // the track that is muted
  #copy;
  #level;
  #speech;

  constructor() {
    byID('push-to-talk').checked = this.#isPushToTalk;
    byID('push-to-talk').addEventListener('change', () => this.#choose(byID('push-to-talk').checked));
    byID('muted-hint-unmute').addEventListener('click', () => {
      byID('toggle-microphone').focus();
      set(this.#call, true);
    });
    document.addEventListener('keydown', (event) => this.#keyDown(event));
    document.addEventListener('keyup', (event) => event.key === ' ' && this.#mute(this.#talk.release('key', event.timeStamp)));
    addEventListener('blur', () => this.#mute(this.#talk.interrupt()));
    document.addEventListener('visibilitychange', () => document.hidden && this.#mute(this.#talk.interrupt()));
    const button = byID('toggle-microphone');
    button.addEventListener('pointerdown', (event) => this.#buttonDown(event));
    button.addEventListener('pointerup', (event) => this.#mute(this.#talk.release('button', event.timeStamp)));
    button.addEventListener('pointercancel', () => this.#mute(this.#talk.interrupt()));
    button.addEventListener('contextmenu', (event) => this.#isOfTouch && event.preventDefault());
    byID('toolbar').addEventListener('click', (event) => this.#clicked(event), true);
    document.addEventListener('click', (event) => this.#freeSpace(event));
  }

  /** Draws what belongs to `call`. */
  show(call) {
    if (call !== this.#call && this.#talk.interrupt()) set(this.#call, false); // it does not speak when it comes back from hold
    this.#call = call;
    byID('call').classList.toggle('talks', this.#isPushToTalk);
    const { isOn, track } = call.local('microphone');
    if (isOn && this.#isPushToTalk) this.#begin(call);
    this.#listen(isOn || call.isHeld ? undefined : track);
    this.#showSign();
  }

  /** No call is shown any longer. */
  clear() {
    this.#talk.interrupt();
    this.#call = undefined;
    this.#listen(undefined);
    this.#showSign();
  }

  #choose(isPushToTalk) {
    this.#isPushToTalk = isPushToTalk;
    saveSetting('push-to-talk', isPushToTalk);
    if (!isPushToTalk) this.#mute(this.#talk.interrupt());
    if (this.#call) this.show(this.#call);
  }

  /** With push to talk a call begins muted. */
  #begin(call) {
    if (this.#begun.has(call)) return;
    this.#begun.add(call);
    queueMicrotask(() => set(call, false)); // the page is being drawn
    notice(t(hasTouch() ? 'talk.touch' : 'talk.keys'));
  }

  // Push to talk

  get #mayTalk() {
    return this.#isPushToTalk && this.#call && !this.#call.isHeld && !byID('call').hidden && !openDialog();
  }

  #press(by, now) {
    const isMuted = !this.#call.local('microphone').isOn;
    if (!this.#talk.press(by, { isMuted, now })) return false;
    set(this.#call, true);
    this.#showSign();
    return true;
  }

  #mute(isToMute) {
    if (isToMute) set(this.#call, false);
    this.#showSign();
  }

  #keyDown(event) {
    if (!this.#mayTalk || !isTalkKey(event)) return;
    event.preventDefault(); // the page does not scroll
    if (!event.repeat) this.#press('key', event.timeStamp);
  }

  #buttonDown(event) {
    this.#isOfTouch = event.pointerType === 'touch' && Boolean(this.#mayTalk) && this.#press('button', event.timeStamp);
  }

  #clicked(event) {
    // The click of a keyboard or a screen reader has no pointer, and no detail.
    if (!this.#isOfTouch || event.detail === 0 || !byID('toggle-microphone').contains(event.target)) return;
    this.#isOfTouch = false;
    event.stopPropagation();
  }

  /** A button that was clicked keeps the focus, and the space bar would press it again: with a mouse nobody meant that. */
  #freeSpace({ detail, target }) {
    const button = this.#isPushToTalk && detail > 0 && target.closest?.('#toolbar button');
    if (button && button === document.activeElement) button.blur();
  }

  #showSign() {
    const { isTalking } = this.#talk;
    byID('call').classList.toggle('talking', isTalking);
    byID('talk-sign').hidden = !isTalking;
    setText(byID('talk-sign'), isTalking ? t('talk.on') : '');
  }

  // Speech into a muted microphone

  /** `muted` is the track of a muted microphone. The browser gives its silence to everybody; a copy of it, which is sent nowhere, has the sound. */
  #listen(muted) {
    if (muted === this.#listened) return;
    this.#level?.stop();
    this.#copy?.stop();
    this.#level = undefined;
    this.#copy = undefined;
    this.#listened = muted;
    this.#hint(false);
    if (!muted) return;
    this.#speech = new MutedSpeech();
    this.#copy = muted.clone();
    this.#copy.enabled = true;
    this.#level = new Level(this.#copy, (level) => this.#hint(this.#speech.hear(level, performance.now())));
  }

  /** It does not leave under a pointer or the keyboard. */
  #hint(isWanted) {
    const button = byID('muted-hint-unmute');
    if (isWanted === !button.hidden) return;
    if (!isWanted && this.#listened && button.matches(':hover, :focus')) return;
    button.hidden = !isWanted;
    setText(byID('muted-hint'), isWanted ? t('muted.hint') : '');
    if (isWanted) wakeControls();
  }
}
