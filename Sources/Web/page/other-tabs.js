// Tabs of this browser tell each other who is signed in, so that a link opened in a new tab finds its user.

import { deviceOf } from './session.js';

const NAME = 'conclave/sign-in';
const PATIENCE_MS = 300;

const isSignIn = (value) => [value?.user, value?.token].some((text) => typeof text === 'string' && text !== '');

/**
 * Answers other tabs with `signIn()`, undefined while nobody is signed in. The sign-in of a guest, or one that is only for this tab's device, is not shared
 * with other tabs.
 */
export function answerTabs(signIn) {
  const channel = new BroadcastChannel(NAME);
  channel.addEventListener('message', ({ data }) => {
    const own = signIn();
    if (data !== 'who' || !own || own.guest || deviceOf(own)) return;
    const { user, name, token } = own;
    channel.postMessage({ user, name, token });
  });
}

/** The sign-in of another tab: `{user, name}` or `{token}`; undefined if none answers. */
export function askTabs() {
  const channel = new BroadcastChannel(NAME);
  const answer = new Promise((resolve) => {
    channel.addEventListener('message', ({ data }) => isSignIn(data) && resolve({ user: data.user, name: data.name, token: data.token }));
    setTimeout(resolve, PATIENCE_MS);
  });
  channel.postMessage('who');
  return answer.finally(() => channel.close());
}
