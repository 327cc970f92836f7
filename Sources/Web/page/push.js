// Calls ring in this browser while the page is closed: the browser's subscription to Web Push, and the page that a notification opens.

import * as session from './session.js';

/** The call for which a notification opened this page. Any site can link to such an address, so it does not say what the person pressed: `sw.js` does. */
export const openedFor = (hash) => /^#ring=([\w.~@+-]+)$/.exec(hash)?.[1];

const isSame = (a, b) => a?.length === b.length && a.every((byte, place) => byte === b[place]);

/** Subscribes this browser and tells the server, for the device of `push`. Resolves with whether calls ring while the page is closed. */
export async function subscribe(registration, push) {
  const manager = registration?.pushManager;
  const isGuest = Boolean(session.savedSignIn()?.guest); // nobody rings a guest
  if (!manager || isGuest || !push.key || Notification.permission !== 'granted') return false;
  try {
    let subscription = await manager.getSubscription();
    if (subscription && !isSame(new Uint8Array(subscription.options.applicationServerKey), push.key)) {
      await subscription.unsubscribe(); // the server has another key now
      subscription = null;
    }
    subscription ??= await manager.subscribe({ userVisibleOnly: true, applicationServerKey: push.key });
    await push.subscribe(subscription);
    session.keepSignIn();
    return true;
  } catch {
    return false; // a browser without a push service, or a server that is down: the page rings while it is open
  }
}

const PATIENCE_MS = 1_000;

/** Ends it, before signing out. A server that is not told finds out: the push service no longer knows the browser. */
export async function unsubscribe(registration, push) {
  const subscription = await registration?.pushManager?.getSubscription().catch(() => null);
  if (!subscription) return;
  await subscription.unsubscribe().catch(() => {});
  const patience = new Promise((resolve) => setTimeout(resolve, PATIENCE_MS));
  await Promise.race([push.subscribe(null).catch(() => {}), patience]);
}
