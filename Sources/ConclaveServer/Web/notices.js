// What people are told in passing, and what they must decide about keys.

import { byID, element, icon } from './dom.js';

const NOTICE_MS = 6_000;
const NOTICES = 3;

/** A line at the top that goes by itself; a screen reader says it. */
export function notice(text) {
  const list = byID('notices');
  const line = element('p', { className: 'notice', textContent: text });
  list.append(line);
  while (list.childElementCount > NOTICES) list.firstElementChild.remove();
  setTimeout(() => line.remove(), NOTICE_MS);
}

/** A warning that stays until it is dismissed. `action` is `{label, run}`. */
export function warn(text, action) {
  const close = element('button', { type: 'button', className: 'secondary', textContent: 'Dismiss' });
  const actions = element('div', { className: 'actions' });
  const node = element('div', { className: 'warning' }, icon('warning'), element('p', { textContent: text }), actions);
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

export const clearWarnings = () => byID('warnings').replaceChildren();

const causes = {
  accepted: 'joined',
  joined: 'joined',
  rejoined: 'is back',
  declined: 'declined',
  missed: 'did not answer',
  left: 'left',
  disconnected: 'lost the connection',
  failed: 'could not connect',
};

/** The words for a call's `notice`; undefined where nothing needs saying. */
export function wordsFor({ kind, cause, member, source, error }) {
  const name = member?.name || member?.user;
  // `disconnected` with another state: only the media is gone, perhaps for a moment.
  if (cause === 'disconnected' && member.state !== 'disconnected') return undefined;
  if (kind === 'member') return causes[cause] && `${name} ${causes[cause]}`;
  if (kind === 'screen') return `${name} is sharing a screen`;
  if (kind === 'screen-replaced') return 'Somebody else shares a screen now';
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

/** Why a call is over; undefined where this person ended it. */
export function wordsForEnd({ reason, by }, nameFor, user) {
  if (by === user) return undefined;
  return {
    'ended-by-initiator': `${by ? nameFor(by) : 'The caller'} ended the call`,
    'all-left': 'Everybody has left the call',
    declined: 'The call was declined',
    'no-answer': 'Nobody answered',
    cancelled: 'The call was cancelled',
    expired: 'The call was too long and has ended',
    elsewhere: 'The call goes on at another device of yours',
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
};

export const wordsForError = (error) => codes[error.code] ?? error.message ?? 'That did not work.';
