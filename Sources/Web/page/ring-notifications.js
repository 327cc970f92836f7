// Rings as system notifications while the page is in the background. The service worker shows them, because only its notifications have buttons (Notifications
// API, "showNotification").

import { byID } from './dom.js';
import { notice } from './notices.js';
import { openedFor, subscribe, unsubscribe } from './push.js';
import { wordsForRing } from './ringing.js';
import { t } from './texts.js';

const WORKER = new URL('../sw.js', import.meta.url).href;
let policy;

/** The service worker's URL with the texts that it shows. If trusted types are required, the policy permits only this URL. */
function workerURL() {
  const texts = {
    offline: t('offline'),
    answer: t('ring.answer'),
    decline: t('ring.decline'),
    ring: t('ring.title', { name: '{name}' }),
    audio: t('call.audio'),
    video: t('call.video'),
    over: t('notifications.over'),
    waiting: t('links.somebody'),
    message: t('recordings.arrived', { name: '{name}' }),
    alert: t('alert.title', { name: '{name}' }),
  };
  const url = `${WORKER}?${new URLSearchParams({ texts: JSON.stringify(texts) })}`;
  policy ??= globalThis.trustedTypes?.createPolicy('conclave-page', {
    createScriptURL(asked) {
      if (!asked.startsWith(`${WORKER}?`)) throw new TypeError(`${asked} is not the page’s service worker`);
      return asked;
    },
  });
  return policy ? policy.createScriptURL(url) : url;
}

/**
 * The registration once it is active; undefined if the browser has no service workers, or refuses this one (a private window, a certificate that it does not
 * trust).
 */
async function register() {
  try {
    await navigator.serviceWorker.register(workerURL());
    return await navigator.serviceWorker.ready;
  } catch {
    return undefined;
  }
}

export class RingNotifications {
  #rings = new Map(); // by call
  #own;
  #registration;
  #push;
  #actions;
  #openedFor;

  /** `answer(call)` and `decline(call)` are called by the buttons, for a ringing call; `own()` is this user's id, `push` the connection's `Push`. */
  constructor({ answer, decline, own, push }) {
    this.#own = own;
    this.#push = push;
    this.#actions = { answer, decline };
    this.#openedFor = openedFor(location.hash);
    if (this.#openedFor) history.replaceState(null, '', location.pathname);
    if (!('serviceWorker' in navigator) || typeof Notification !== 'function') return;
    this.#registration = register();
    navigator.serviceWorker.addEventListener('message', ({ data: { type, call } }) => {
      if (this.#rings.has(call)) this.#act(type, call);
    });
    document.addEventListener('visibilitychange', () => {
      for (const ring of this.#rings.values()) this.#tell(ring);
    });
    // The worker would show this page's rings forever, because nobody else knows about them.
    addEventListener('pagehide', () => {
      for (const call of this.#rings.keys()) this.#post({ type: 'ring-over', call });
    });
    this.#offer();
  }

  add(ring) {
    const { call } = ring;
    this.#rings.set(call, ring);
    if (this.#openedFor === call) {
      this.#openedFor = undefined;
      this.#post({ type: 'opened', call });
    } else if (document.hidden) this.#tell(ring);
  }

  #act(type, call) {
    if (Object.hasOwn(this.#actions, type)) this.#actions[type](call);
  }

  /** Makes calls ring in this browser while the page is closed, too, if the person allows it. Resolves with whether they do. */
  async subscribe() {
    return subscribe(await this.#registration, this.#push);
  }

  async unsubscribe() {
    return unsubscribe(await this.#registration, this.#push);
  }

  remove(ring) {
    if (this.#rings.delete(ring.call)) this.#post({ type: 'ring-over', call: ring.call });
  }

  /** Shown only in the background: in the foreground the page itself rings. */
  #tell(ring) {
    const { call } = ring;
    if (!document.hidden) this.#post({ type: 'ring-over', call });
    else if (Notification.permission === 'granted') this.#post({ type: 'ring', call, ...wordsForRing(ring, this.#own()) });
  }

  async #post(message) {
    (await this.#registration)?.active?.postMessage(message);
  }

  /** Permission is requested when the person presses the button: an unsolicited question is refused by most people, and by some browsers. */
  async #offer() {
    const button = byID('allow-notifications');
    button.hidden = !(await this.#registration) || Notification.permission !== 'default';
    button.addEventListener('click', async () => {
      const isAllowed = (await Notification.requestPermission()) === 'granted';
      if (isAllowed) notice(t((await this.subscribe()) ? 'notifications.push-on' : 'notifications.on'));
      if (Notification.permission === 'default') return;
      button.hidden = true;
      byID('lobby-title').focus();
    });
  }
}
