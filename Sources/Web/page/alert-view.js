// Somebody needs this user: the warning of an alert, its sound, and the notification while the page is in the background. Only what the person's device has signed is
// shown as the person's word.

import { clock } from './history-words.js';
import { labelFor, learnNames } from './names.js';
import { clearWarnings, notice, warn } from './notices.js';
import { wordsForUnreadable } from './recordings-words.js';
import { t } from './texts.js';
import { Tone, incoming } from './tone.js';

const SOUNDS_MS = 12_000;
const OLD_MS = 24 * 3_600_000; // an alert is given up after a day (protocol section 13.6): an older one is replayed
const VIBRATION = [300, 150, 300];

const keyOf = (id) => `alert/${id}`;

export class AlertView {
  #recordings;
  #watch;
  #call;
  #shown = new Set(); // ids
  #tone = new Tone(incoming);
  #now;

  /** `watch(id, name)` opens the player, `call(user)` rings. */
  constructor({ watch, call, now = () => Date.now() }) {
    [this.#watch, this.#call, this.#now] = [watch, call, now];
  }

  /** The recordings of the user who is signed in. */
  use(recordings) {
    this.#recordings = recordings;
    for (const id of this.#shown) this.#close(id);
  }

  /** The server says that somebody alerts this user, or shares a recording: `{recording, by, isAlert}`. The server may say so again as often as it likes. */
  async arrived({ recording: id, by, isAlert }) {
    const recordings = this.#recordings;
    if (this.#shown.has(id) || (await recordings.isKnown(id))) return;
    if (this.#shown.has(id)) return;
    this.#shown.add(id);
    const told = await recordings.announced(id).catch((error) => ({ error }));
    if (recordings !== this.#recordings) return;
    if (told.error) this.#tellUnchecked(id, by, isAlert, told.error);
    else {
      learnNames([{ user: told.by.user, name: told.name }]);
      this.#tell(id, told);
    }
  }

  /** It is opened: there is nothing more to warn of. */
  opened(id) {
    this.#close(id);
  }

  #tell(id, { by, at, isAlert }) {
    const name = labelFor(by.user);
    if (!isAlert || this.#now() - at > OLD_MS) return notice(t('alert.shared', { name }));
    const watch = () => {
      this.#close(id);
      this.#watch(id, name);
    };
    warn(keyOf(id), t('alert.text', { name, time: clock(at) }), { action: { label: t('alert.watch'), run: watch }, dismissal: this.#dismissal(id) });
    return this.#alarm(id, name);
  }

  /** This device cannot check it: the person's device may be unknown here, or this one has no key. */
  #tellUnchecked(id, { user }, isAlert, error) {
    const name = labelFor(user);
    if (!isAlert || error.code === 'not-signed') {
      if (error.code !== 'recording.not-found') notice(wordsForUnreadable(error, name));
      return;
    }
    const call = () => {
      this.#close(id);
      this.#call(user);
    };
    const advice = error.code === 'no-key' ? undefined : wordsForUnreadable(error, name);
    warn(keyOf(id), t('alert.unchecked', { name }), { advice, action: { label: t('live.call', { name }), run: call }, dismissal: this.#dismissal(id) });
    this.#alarm(id, name);
  }

  #dismissal(id) {
    return { label: t('alert.later'), run: () => (this.#close(id), this.#recordings.putAside(id)) };
  }

  #alarm(id, name) {
    this.#tone.start();
    setTimeout(() => this.#tone.stop(), SOUNDS_MS);
    navigator.vibrate?.(VIBRATION);
    if (document.hidden) this.#notify(id, name);
  }

  /** As a push of the server would: the service worker opens the page when it is pressed. */
  async #notify(id, name) {
    if (globalThis.Notification?.permission !== 'granted') return;
    const registration = await navigator.serviceWorker?.getRegistration().catch(() => undefined);
    registration?.showNotification(t('alert.title', { name }), { tag: `recording/${id}`, requireInteraction: true, data: {} }).catch(() => {}); // the person may have revoked the permission
  }

  #close(id) {
    this.#shown.delete(id);
    this.#tone.stop();
    clearWarnings((key) => key === keyOf(id));
  }
}
