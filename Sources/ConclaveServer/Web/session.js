// Who is signed in here: demo mode or a token, and what a reload of this tab must remember.

import { toHex } from './bytes.js';

const kept = sessionStorage;

export class SignInError extends Error {
  constructor(message, isFinal = true) {
    super(message);
    this.isFinal = isFinal;
  }
}

/** One device for each tab, so that tabs can be different people. */
export function tabDevice() {
  if (!kept.getItem('device')) {
    kept.setItem('device', `web-${toHex(crypto.getRandomValues(new Uint8Array(5)))}`);
  }
  return kept.getItem('device');
}

export function savedSignIn() {
  return JSON.parse(kept.getItem('sign-in') ?? 'null');
}

export const saveSignIn = (signIn) => kept.setItem('sign-in', JSON.stringify(signIn));
export const forgetSignIn = () => ['sign-in', 'call'].forEach((key) => kept.removeItem(key));

/** The call that a reload comes back to: `{id, camera}`. */
export const saveCall = (call) => kept.setItem('call', JSON.stringify(call));
export const savedCall = () => JSON.parse(kept.getItem('call') ?? 'null');
export const forgetCall = () => kept.removeItem('call');

export async function isDemo() {
  try {
    return (await fetch('demo')).ok;
  } catch {
    return false;
  }
}

/** A fresh token for demo mode. An error that is not final may pass: the server is away. */
export async function demoToken(signIn, device) {
  let response;
  try {
    response = await fetch('demo/token', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ user: signIn.user, device, name: signIn.name }),
    });
  } catch {
    throw new SignInError('The server cannot be reached.', false);
  }
  if (response.status >= 500) throw new SignInError('The server cannot be reached.', false);
  if (!response.ok) {
    throw new SignInError('The demo signs in only people at this machine. Ask for a token, or open the page there.');
  }
  const { token } = await response.json();
  return { token };
}
