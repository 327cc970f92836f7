// Captions: what people say, in writing, if they share it. Each browser recognises the speech of its own person, on the device.

import { CaptionLines, CaptionReading } from './caption-lines.js';
import { CaptionSender } from './caption-sender.js';
import { byID, element, setText } from './dom.js';
import { labelFor } from './names.js';
import { notice } from './notices.js';
import { Recogniser, canRecognise, install, recognisable } from './recogniser.js';
import { saveSetting, savedSetting } from './session.js';
import { LANGUAGES, language, locale, t } from './texts.js';

const DRAWN_EVERY_MS = 500;
/** The most common region of each language, for browsers that want one. */
const REGIONS = {
  en: 'en-US', de: 'de-DE', es: 'es-ES', fr: 'fr-FR', it: 'it-IT', nl: 'nl-NL', pl: 'pl-PL', pt: 'pt-BR', tr: 'tr-TR', vi: 'vi-VN', ru: 'ru-RU',
  uk: 'uk-UA', ar: 'ar-EG', hi: 'hi-IN', th: 'th-TH', km: 'km-KH', zh: 'zh-CN', ja: 'ja-JP', ko: 'ko-KR',
};

const rowOf = ({ name, caption, lang }) => element('li', {}, element('b', { textContent: name, dir: 'auto' }), ' ', element('span', { textContent: caption, dir: 'auto', lang }));

/** The tags to try for a language of the page: the browser's own region first. */
const tagsOf = (spoken) => [...new Set([...(spoken === language ? [locale] : []), REGIONS[spoken], spoken])];

export class Captions {
  #call;
  #isShown = savedSetting('captions') ?? false;
  #lines = new CaptionLines();
  #reading = new CaptionReading();
  #look = ''; // of the lines on the page, which are drawn again only if they differ
  #timer;
  #offered = new WeakSet(); // calls in which the person was told that there are captions
  #tag; // of the language that is recognised; undefined while this person's speech is not
  #attempt = 0;
  #sender;
  #heard; // the track that is recognised
  #recogniser = new Recogniser({
    said: (text, isFinal) => this.#sender?.say(text, isFinal, this.#tag),
    failed: () => this.#turnOff('captions.failed'),
  });

  constructor() {
    const [isOn, share, spoken] = ['captions-on', 'captions-share', 'captions-language'].map(byID);
    isOn.checked = this.#isShown;
    isOn.addEventListener('change', () => {
      this.#isShown = isOn.checked;
      saveSetting('captions', this.#isShown);
      this.#draw();
    });
    spoken.append(...Object.entries(LANGUAGES).map(([value, textContent]) => element('option', { value, textContent, lang: value })));
    spoken.value = savedSetting('caption-language') ?? language;
    spoken.addEventListener('change', () => {
      saveSetting('caption-language', spoken.value);
      if (share.checked) this.#turnOn();
    });
    share.addEventListener('change', () => (share.checked ? this.#turnOn() : this.#turnOff('')));
    if (!canRecognise()) this.#say('captions.no-browser');
    share.disabled = !canRecognise();
    byID('show-captions').addEventListener('click', () => {
      byID('more-dialog').close();
      byID('captions-dialog').showModal();
    });
  }

  /** Draws what belongs to `call`. Sharing is a choice for one call. */
  show(call) {
    if (call !== this.#call) {
      this.clear();
      this.#call = call;
      this.#sender = new CaptionSender((caption) => call.send(caption));
      this.#timer = setInterval(() => this.#draw(), DRAWN_EVERY_MS);
    }
    this.#listen();
  }

  /** No call is shown any longer. */
  clear() {
    clearInterval(this.#timer);
    if (this.#tag || byID('captions-share').checked) this.#turnOff('');
    this.#call = undefined;
    this.#lines = new CaptionLines();
    this.#reading = new CaptionReading();
    this.#draw();
  }

  /** Takes a message of `call`; others than captions, and those of another call, are not for here. */
  take(call, message) {
    if (message.caption === undefined || call !== this.#call) return;
    const name = this.#nameOf(message.participant);
    this.#lines.add({ ...message, name }, performance.now());
    if (message.participant !== call.participant) {
      if (!this.#isShown) this.#offer(name);
      else if (message.final) this.#reading.add(`${name}: ${message.caption}`);
    }
    this.#draw();
  }

  #offer(name) {
    if (this.#offered.has(this.#call)) return;
    this.#offered.add(this.#call);
    notice(t('captions.offered', { name }));
  }

  /** The sender whose key sealed the message, as the list of the call names it: nothing in the message says who speaks. */
  #nameOf(participant) {
    if (participant === this.#call.participant) return t('tile.you');
    const owner = this.#call.ownerOf(participant);
    return owner ? labelFor(owner.user) : t('chat.somebody');
  }

  #draw() {
    const now = performance.now();
    const lines = this.#isShown && this.#call ? this.#lines.at(now) : [];
    const look = JSON.stringify(lines);
    if (look !== this.#look) {
      this.#look = look;
      byID('captions').hidden = lines.length === 0;
      byID('captions').replaceChildren(...lines.map(rowOf));
    }
    const text = this.#isShown && this.#call ? this.#reading.take(now) : undefined;
    if (text !== undefined) byID('captions-read').textContent = text;
  }

  // This person's own speech

  async #turnOn() {
    const attempt = ++this.#attempt;
    this.#stop();
    const isCurrent = () => attempt === this.#attempt;
    const found = await recognisable(tagsOf(byID('captions-language').value));
    if (!isCurrent()) return;
    if (!found) return this.#turnOff('captions.no-language');
    if (!found.isHere) {
      this.#say('captions.loading');
      const isHere = await install(found.tag);
      if (!isCurrent()) return;
      if (!isHere) return this.#turnOff('captions.no-language');
    }
    this.#tag = found.tag;
    this.#say('captions.sharing');
    this.#listen();
  }

  #turnOff(state) {
    this.#attempt += 1;
    this.#stop();
    byID('captions-share').checked = false;
    this.#say(state);
    // The dialog may be closed: the others wait for words that do not come.
    if (state === 'captions.failed' && !byID('captions-dialog').open) notice(t(state));
  }

  #stop() {
    this.#tag = undefined;
    this.#sender?.drop();
    this.#listen();
  }

  #say(state) {
    setText(byID('captions-state'), state && t(state));
  }

  /** Only what the others hear is recognised: nothing of a muted microphone, or of a call on hold. */
  #listen() {
    const { isOn, track } = (this.#tag && this.#call && !this.#call.isHeld && this.#call.local('microphone')) || {};
    const heard = isOn ? track : undefined;
    if (heard === this.#heard) return;
    this.#heard = heard;
    if (heard) return this.#recogniser.start(heard, this.#tag);
    this.#recogniser.stop();
    return this.#sender?.end();
  }
}
