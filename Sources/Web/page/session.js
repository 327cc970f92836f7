// The sign-in of this tab: demo mode or a token, which device this tab is, and what must survive a reload or a restart.

const tab = sessionStorage;
const browser = localStorage;
const DEVICES_KEPT = 8;
const NAMES_KEPT = 1_000;
const RELOAD_MS = 1_500; // until the previous page has released its device
const COME_BACK_MS = 120_000; // a call left longer ago is offered, not entered

export class SignInError extends Error {
  /** `code` becomes `Conclave.reason` if the error is final. */
  constructor(code, isFinal = true) {
    super(code);
    this.isFinal = isFinal;
  }
}

const read = (storage, key) => JSON.parse(storage.getItem(key) ?? 'null');
const write = (storage, key, value) => storage.setItem(key, JSON.stringify(value));

// The device

/** Claims a device for this tab until it closes; `ms` is how long to wait for another to release it. */
function claim(device, ms) {
  if (!navigator.locks) return true;
  const patience = new AbortController();
  if (ms > 0) setTimeout(() => patience.abort(), ms);
  const options = ms > 0 ? { signal: patience.signal } : { ifAvailable: true };
  return new Promise((resolve) => {
    const held = (lock) => {
      resolve(Boolean(lock));
      return lock ? new Promise(() => {}) : undefined;
    };
    navigator.locks.request(`conclave/${device}`, options, held).catch(() => resolve(false));
  });
}

/** The devices that this browser has for `user`. */
export const devicesOf = (user) => read(browser, `devices/${user}`) ?? [];

/** The next tab is this device if it can: it has made lasting links, which no other device can start. */
export function preferDevice(user, device) {
  const others = devicesOf(user).filter((other) => other !== device);
  write(browser, `devices/${user}`, [device, ...others]);
  write(browser, `links-device/${user}`, device);
}

/**
 * This tab's device: the one before the reload, else one that this browser had for `user` and no tab uses, else a new one. So a device and its pins outlive the
 * browser, and two tabs are still two devices.
 */
export async function claimDevice(user) {
  const before = read(tab, 'device');
  if (before?.user === user && (await claim(before.device, RELOAD_MS))) return before.device;
  const known = navigator.locks ? devicesOf(user) : [];
  for (const device of known) {
    if (!(await claim(device, 0))) continue;
    write(tab, 'device', { user, device });
    return device;
  }
  const device = `web-${crypto.randomUUID().replace('-', '').slice(0, 10)}`;
  await claim(device, 0);
  write(tab, 'device', { user, device });
  const preferred = read(browser, `links-device/${user}`);
  const others = known.filter((other) => other !== preferred);
  const first = others.length < known.length ? [preferred] : [];
  write(browser, `devices/${user}`, [...first, device, ...others].slice(0, DEVICES_KEPT));
  return device;
}

function claimsOf(token) {
  try {
    const bytes = Uint8Array.from(atob(token.split('.')[1].replaceAll('-', '+').replaceAll('_', '/')), (character) => character.charCodeAt(0));
    return JSON.parse(new TextDecoder().decode(bytes)) ?? {};
  } catch {
    return {};
  }
}

/** The user of a token, as far as the page can read it: the server must name the same. */
export const userOf = ({ user, token }) => user || (claimsOf(token ?? '').sub ?? '');

/** The name of the person who signs in, for people. */
export const nameIn = ({ user, token, name }) => name || claimsOf(token ?? '').name || userOf({ user, token });

/** The device of a token, if it names one. */
export const deviceOf = ({ token }) => claimsOf(token ?? '').device;

/** The name that the person gave this device, if any. */
export const savedDeviceName = (device) => read(browser, `device-name/${device}`) ?? '';
export const saveDeviceName = (device, name) => write(browser, `device-name/${device}`, name);

/** This device was removed: the page is reloaded and says so once. */
export const saveRemoval = () => write(tab, 'removed', true);

export function takeRemoval() {
  const wasRemoved = read(tab, 'removed');
  tab.removeItem('removed');
  return wasRemoved;
}

// Signing in

export const savedSignIn = () => read(tab, 'sign-in');

export function saveSignIn(signIn) {
  write(tab, 'sign-in', signIn);
  if (signIn.name && !signIn.guest) write(browser, 'name', signIn.name);
}

export const savedName = () => read(browser, 'name') ?? '';

/** For the page that a notification opens, because a new tab has nothing of this one's. */
export const keepSignIn = () => write(browser, 'push-sign-in', savedSignIn());
export const keptSignIn = () => read(browser, 'push-sign-in');

export function forgetSignIn() {
  tab.removeItem('sign-in');
  browser.removeItem('push-sign-in');
}

// The call that a reload or a restart comes back to

/** Saved again while the call runs, so that it is known how long ago that was. */
export const saveCall = (device, call) => write(browser, `call/${device}`, { ...call, at: Date.now() });
export const forgetCall = (device) => browser.removeItem(`call/${device}`);

/** `{id, camera, root}` of the call that this device was in a moment ago. */
export function savedCall(device) {
  const saved = read(browser, `call/${device}`);
  return saved && Date.now() - saved.at < COME_BACK_MS ? saved : undefined;
}

// The user's settings

export const savedSetting = (name) => read(browser, `setting/${name}`);
export const saveSetting = (name, value) => write(browser, `setting/${name}`, value);

// People from earlier calls, for recognizing a name that somebody else uses

export const savedNames = (user) => read(browser, `names/${user}`) ?? [];

/** Names that another tab has saved meanwhile stay, before these. */
export function saveNames(user, names) {
  const own = new Map(names);
  const others = savedNames(user).filter(([other]) => !own.has(other));
  write(browser, `names/${user}`, [...others, ...names].slice(-NAMES_KEPT));
}

// Favourites, user ids

export const savedFavourites = (user) => read(browser, `favourites/${user}`) ?? [];
export const saveFavourites = (user, favourites) => write(browser, `favourites/${user}`, favourites);

// The choices for the last recording for others, its people included

export const savedRecordChoice = (user) => read(browser, `record/${user}`) ?? {};
export const saveRecordChoice = (user, choice) => write(browser, `record/${user}`, choice);

// The end of *Do not disturb*, in ms

export const savedQuietEnd = (user) => read(browser, `quiet-end/${user}`) ?? undefined;

/** Without `end` it has none. */
export function saveQuietEnd(user, end) {
  if (end === undefined) browser.removeItem(`quiet-end/${user}`);
  else write(browser, `quiet-end/${user}`, end);
}

/** Another device for this tab: the previous one no longer has keys. */
export function forgetDevice(user) {
  const device = read(tab, 'device')?.device;
  tab.removeItem('device');
  browser.removeItem(`device-name/${device}`);
  const others = devicesOf(user).filter((other) => other !== device);
  if (others.length > 0) write(browser, `devices/${user}`, others);
  else browser.removeItem(`devices/${user}`);
}

/** Everything that this browser remembers of `user`, and of the last sign-in. */
export function forgetAll(user) {
  for (const device of devicesOf(user)) {
    forgetCall(device);
    browser.removeItem(`device-name/${device}`);
  }
  for (const key of [`devices/${user}`, `links-device/${user}`, `names/${user}`, `favourites/${user}`, `quiet-end/${user}`, `record/${user}`, 'name', 'push-sign-in']) browser.removeItem(key);
  for (const key of Object.keys(browser)) if (key.startsWith('setting/')) browser.removeItem(key);
  tab.clear();
}

// Guests

/** For the page that is loaded after a guest's visit: `{words, name, mayReturn}`; with `isError` the visit did not begin. */
export const saveFarewell = (farewell) => write(tab, 'farewell', farewell);

export function takeFarewell() {
  const farewell = read(tab, 'farewell');
  tab.removeItem('farewell');
  return farewell;
}

/** Whether this server admits people without an account by a link. */
export async function allowsGuests() {
  try {
    return (await fetch('guest')).ok;
  } catch {
    return false;
  }
}

const REFUSALS = { 400: 'sign-in.no-name', 403: 'error.call.link-invalid', 429: 'error.rate.limited' };

/**
 * A guest's `{token, user}`: for `{call, link, name}`, or a fresh one for `{token}`. For `{lasting, name}` also the `call` and the `link` to join it with, or, while
 * no call of the lasting link runs, only `{expiresAt, name}`. The message of an error is the key of its text.
 */
export async function guestToken(body) {
  let response;
  try {
    response = await fetch('guest/token', { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
  } catch {
    throw new SignInError('error.timeout', false);
  }
  if (!response.ok) throw new SignInError(REFUSALS[response.status] ?? 'error.other', response.status === 403);
  return response.json();
}

// Demo mode

export async function isDemo() {
  try {
    return (await fetch('demo')).ok;
  } catch {
    return false;
  }
}

/** A fresh token for demo mode. An error that is not final may pass: the server is down. */
export async function demoToken(signIn, device) {
  let response;
  try {
    response = await fetch('demo/token', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ user: signIn.user, device, name: signIn.name }),
    });
  } catch {
    throw new SignInError('unreachable', false);
  }
  if (response.status >= 500) throw new SignInError('unreachable', false);
  if (!response.ok) {
    throw new SignInError('demo-refused');
  }
  const { token } = await response.json();
  return { token };
}
