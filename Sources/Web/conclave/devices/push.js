// Web Push (protocol section 5): rings reach this device while it is not connected.

import { fromBase64, toBase64 } from '../wire/index.js';

export class Push {
  #request;
  /** The server's key, for `PushManager.subscribe`; undefined if the server sends none. */
  key;

  constructor(request) {
    this.#request = request;
  }

  /** The reply to `devices/register`. */
  registered({ pushKey }) {
    this.key = pushKey === undefined ? undefined : fromBase64(pushKey);
  }

  /** Registers the browser's `PushSubscription` for this device; `null` ends it. */
  subscribe(subscription) {
    const key = (name) => toBase64(new Uint8Array(subscription.getKey(name)));
    return this.#request('devices/push', {
      subscription: subscription && { endpoint: subscription.endpoint, p256dh: key('p256dh'), auth: key('auth') },
    });
  }
}
