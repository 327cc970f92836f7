// What people are told in passing, and what they must decide about keys.

import { byID, element, icon, nameOf } from './dom.js';

const NOTICE_MS = 6_000;
const NOTICES = 3;

/** Where notices are seen and said: in the dialog that is open, for the page behind it is neither. */
function placeNotices() {
  const host = [...document.querySelectorAll('dialog[open]')].at(-1) ?? document.body;
  const list = byID('notices');
  if (list.parentElement !== host) host.append(list);
  return list;
}
addEventListener('close', placeNotices, true);

/** A line at the top that goes by itself; a screen reader says it. Brings what takes it away at once. */
export function notice(text) {
  const list = placeNotices();
  const same = [...list.children].find(({ textContent }) => textContent === text);
  const line = same ?? element('p', { className: 'notice', textContent: text });
  if (!same) list.append(line);
  while (list.childElementCount > NOTICES) list.firstElementChild.remove();
  setTimeout(() => line.remove(), NOTICE_MS);
  return () => line.remove();
}

/** A warning that stays until it is dismissed; one of the same `key` takes its place. `action` is `{label, run}`. */
export function warn(key, text, action) {
  for (const node of byID('warnings').children) if (node.dataset.key === key) node.remove();
  const close = element('button', { type: 'button', className: 'secondary', textContent: 'Dismiss' });
  const actions = element('div', { className: 'actions' });
  const node = element('div', { className: 'warning' }, icon('warning'), element('p', { textContent: text }), actions);
  node.dataset.key = key;
  close.addEventListener('click', () => node.remove());
  if (action) {
    const button = element('button', { type: 'button', className: 'primary', textContent: action.label });
    button.addEventListener('click', () => {
      node.remove();
      action.run();
    });
    actions.append(button);
  }
  actions.append(close);
  byID('warnings').append(node);
}

/** Of all warnings of which `matches(key)` is true. */
export function clearWarnings(matches = () => true) {
  for (const node of [...byID('warnings').children]) if (matches(node.dataset.key)) node.remove();
}

/**
 * What the user should know of a device's keys. `trust` is what the button for a changed key does.
 */
export function warnOfKey({ problem, user, device }, nameFor, trust) {
  const name = nameFor(user);
  const key = `${problem}/${user}/${device}`;
  if (problem === 'new-device') return notice(`${name} has a new device (${device})`);
  if (problem === 'unverified') {
    return warn(key, `${name}’s device ${device} is not verified. While it is in the call you are neither heard nor seen: compare the call code with ${name}.`);
  }
  if (problem !== 'changed-key') {
    return warn(key, `${name}’s device ${device} could not be verified. It gets no keys, and is neither heard nor seen.`);
  }
  const words = `The security key of ${name}’s device ${device} has changed. Until you trust it, it neither hears nor sees you. Ask ${name} first.`;
  return warn(key, words, { label: 'Trust the new key', run: trust });
}

const causes = {
  accepted: 'joined',
  joined: 'joined',
  rejoined: 'is back',
  declined: 'declined',
  missed: 'did not answer',
  left: 'left',
  disconnected: 'lost the connection',
  failed: 'could not connect',
  transferred: 'went on to another device',
};

/** The words for a call's `notice`; undefined where nothing needs saying. */
export function wordsFor({ kind, cause, member, source, error }) {
  const name = nameOf(member);
  // `disconnected` with another state: only the media is gone, perhaps for a moment.
  if (cause === 'disconnected' && member.state !== 'disconnected') return undefined;
  if (cause === 'held') return `${name} ${member.participants.some(({ held }) => held) ? 'put the call on hold' : 'is back in the call'}`;
  if (kind === 'member') return causes[cause] && `${name} ${causes[cause]}`;
  if (kind === 'screen') return `${name} is sharing a screen`;
  if (kind === 'screen-replaced') return 'Your screen is not shared any more';
  if (kind === 'media-failed') return `The server did not take this device’s media (${error})`;
  if (kind !== 'no-device') return undefined;
  const device = source === 'camera' ? 'camera' : 'microphone';
  return error === 'NotAllowedError' ? `The browser does not allow the ${device}` : `No ${device} was found`;
}

const results = {
  offline: 'is offline: it rings if they come back in time',
  unavailable: 'is not available',
  busy: 'is in another call',
  'no-keys': 'has no device for encrypted calls yet',
  'already-joined': 'is in the call already',
};

/** What became of a ring, by the server's results. */
export function tellResults(results_, nameFor) {
  for (const [user, result] of Object.entries(results_ ?? {})) {
    if (results[result]) notice(`${nameFor(user)} ${results[result]}`);
  }
}

/** Why a call is over; undefined where this person ended it. With `others`, who were called: one alone is told of by name, as in passing. */
export function wordsForEnd({ reason, by }, nameFor, user, others) {
  if (by === user) return undefined;
  const alone = { declined: 'declined', 'no-answer': 'missed', 'all-left': 'left' }[reason];
  if (alone && others.length === 1 && others[0].state === alone) return `${nameFor(others[0].user)} ${causes[alone]}`;
  return {
    'ended-by-initiator': `${by ? nameFor(by) : 'The caller'} ended the call`,
    'all-left': 'Everybody has left the call',
    declined: 'The call was declined',
    'no-answer': 'Nobody answered',
    cancelled: 'The call was cancelled',
    expired: 'The call was too long and has ended',
    elsewhere: 'The call goes on at another device of yours',
    removed: 'This device was taken out of the call',
    lost: 'The call could not be continued',
    failed: undefined,
  }[reason];
}

const codes = {
  'connection-lost': 'The connection to the server was lost. Try again.',
  timeout: 'The server did not answer. Try again.',
  'rate.limited': 'That was too much at once. Try again in a moment.',
  'call.invite-not-allowed': 'Only who started the call may add people.',
  'call.not-ringing': 'The call does not ring any more.',
  'call.answered-elsewhere': 'The call was answered on another device.',
  'call.ended': 'The call is over.',
  'call.not-found': 'The call is over.',
  'call.full': 'The call is full.',
  'call.busy': 'You are in too many calls: leave one first.',
  'call.link-invalid': 'The link is no longer good. Ask for a new one.',
  'server.draining': 'The server is being restarted. Try again in a moment.',
  'role.not-allowed': 'You may not start calls.',
  'request.unknown': 'This server cannot do that.',
};

export const wordsForError = (error) => codes[error.code] ?? error.message ?? 'That did not work.';
