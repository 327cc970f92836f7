// The service worker: shows rings as system notifications, and a clear text if there is no network. It stores no file, so every page is as new as the server's.
// A browser stops and starts it at will: what it must know is in its own address and in the notifications.

/** In the language of the page that registered it: `{offline, answer, decline, ring, audio, video, over, waiting, message, alert}`; `ring`, `message` and `alert` have `{name}`. */
const texts = JSON.parse(new URLSearchParams(location.search).get('texts') ?? '{}');

addEventListener('install', (event) => {
  skipWaiting();
  // If the browser has routes, requests other than for a page do not wait for the worker (Service Workers, section 4.5, "addRoutes").
  const modes = ['cors', 'no-cors', 'same-origin'].map((requestMode) => ({ requestMode }));
  event.addRoutes?.({ condition: { or: modes }, source: 'network' }).catch(() => {});
});
addEventListener('activate', (event) => event.waitUntil(clients.claim()));

addEventListener('fetch', (event) => {
  if (event.request.mode !== 'navigate') return;
  const offline = () => new Response(texts.offline, { status: 503, headers: { 'content-type': 'text/plain; charset=utf-8' } });
  event.respondWith(fetch(event.request).catch(offline));
});

/**
 * A page reports what rings on it: `{type: 'ring', call, title, text}`, `{type: 'ring-over', call}`, and `{type: 'opened', call}` for the call of the
 * notification that opened it. From then on a push of the call is not needed.
 */
addEventListener('message', (event) => {
  const { type, call, title, text } = event.data;
  const page = event.source.id;
  event.waitUntil(inTurn(() => close(tagOf(PUSH, call))));
  if (type === 'ring') event.waitUntil(inTurn(() => show({ call, title, text, page })));
  if (type === 'ring-over') event.waitUntil(inTurn(() => close(tagOf(page, call))));
  if (type === 'opened' && pressed?.call === call) {
    event.source.postMessage({ type: pressed.action, call });
    pressed = undefined;
  }
});

/** The server's push rings if no page is open: `{type: 'ring', call, from, name, media}`, and `{type: 'ring-over', call}`. Somebody who waits at a lasting link: `{type: 'link-waiting', link}`. A recording: `{type: 'message' or 'alert', recording, from, name}`. */
addEventListener('push', (event) => event.waitUntil(inTurn(() => pushed(event.data.json()))));

/** Represents the page that is not open. */
const PUSH = 'push';

/**
 * The button of a pushed ring that the person pressed last, `{call, action}`, until the opened page asks for it. The page's address must not contain it: a site
 * that links there would answer for the person.
 */
let pressed;

async function pushed({ type, call, link, recording, from, name, media }) {
  if (type === 'link-waiting') return registration.showNotification('Conclave', { body: texts.waiting, tag: `link/${link}`, data: {} });
  if (type === 'message' || type === 'alert') {
    const title = texts[type].replace('{name}', () => name ?? from);
    return registration.showNotification(title, { tag: `recording/${recording}`, requireInteraction: type === 'alert', data: {} });
  }
  if (type === 'ring') {
    const title = texts.ring.replace('{name}', () => name ?? from);
    return show({ call, title, text: media === 'video' ? texts.video : texts.audio, page: PUSH });
  }
  // A browser requires each push to be visible: the ring turns into a quiet note.
  const tag = tagOf(PUSH, call);
  const [before] = await registration.getNotifications({ tag });
  return registration.showNotification(before?.title ?? 'Conclave', { body: texts.over, tag, silent: true, data: {} });
}

let turn = Promise.resolve();

/** A notification that is still being shown cannot be found, and so not closed. */
function inTurn(action) {
  turn = turn.then(action).catch(() => {}); // the person may have revoked the permission
  return turn;
}

/** Two tabs are two devices, and each rings for itself. */
const tagOf = (page, call) => `ring/${page}/${call}`;

function show({ call, title, text, page }) {
  const actions = [{ action: 'answer', title: texts.answer }, { action: 'decline', title: texts.decline }];
  return registration.showNotification(title, { body: text, tag: tagOf(page, call), requireInteraction: true, actions, data: { call, page } });
}

async function close(tag) {
  for (const notification of await registration.getNotifications({ tag })) notification.close();
}

addEventListener('notificationclick', (event) => {
  const { notification, action } = event;
  notification.close();
  event.waitUntil(clicked(notification.data, action));
});

/**
 * The page that rings gets `{type: 'answer' | 'decline', call}`; a click beside the buttons only brings it to the front, where it rings. A page that is opened
 * for a push signs in as last time, and gets it when it asks.
 */
async function clicked({ call, page }, action) {
  if (page === PUSH) {
    pressed = action ? { call, action } : undefined;
    return clients.openWindow(`./#ring=${call}`);
  }
  if (!page) return clients.openWindow('./');
  const client = await clients.get(page);
  if (!client) return action === 'decline' ? undefined : clients.openWindow('./');
  if (action) client.postMessage({ type: action, call });
  if (action !== 'decline') await client.focus().catch(() => {}); // a browser may refuse
  return undefined;
}
