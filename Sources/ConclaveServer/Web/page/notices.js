// Notices that pass, and warnings about keys that people must decide on.

import { RequestError, readable } from '../conclave/index.js';
import { byID, element, icon, nameOf, openDialog, rest } from './dom.js';

const NOTICE_MS = 6_000;
const NOTICES = 3;

/** Where notices are seen and said: in the dialog that is open, for the page behind it is neither; else in a call's bar, where they cover no face. */
export function placeNotices() {
  const bar = byID('call').hidden ? document.body : byID('call-bar');
  const host = openDialog() ?? bar;
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

/** What was said of one call is not for the next. */
export function clearNotices() {
  byID('notices').replaceChildren();
}

/**
 * A warning that stays until it is dismissed; one of the same `key` takes its place. `action` is `{label, run}`: where the warning before had another text its button rests, for
 * a press that was meant for that. With `action.isRepeatable` the warning stays when it is pressed. `detail` is shown as it is, for people to compare.
 * @param {string} key
 * @param {string} text
 * @param {{ action?: { label: string, run: () => void, isRepeatable?: boolean }, detail?: string }} options
 */
export function warn(key, text, { action, detail } = {}) {
  const before = [...byID('warnings').children].find(({ dataset }) => dataset.key === key);
  const close = element('button', { type: 'button', className: 'secondary', textContent: 'Dismiss' });
  const actions = element('div', { className: 'actions' });
  const words = element('div', { className: 'warning-text' }, element('p', { textContent: text }));
  if (detail) words.append(element('p', { className: 'fingerprint', textContent: detail, translate: false }));
  const node = element('div', { className: 'warning' }, icon('warning'), words, actions);
  node.dataset.key = key;
  close.addEventListener('click', () => node.remove());
  if (action) {
    const button = element('button', { type: 'button', className: 'primary', textContent: action.label });
    button.addEventListener('click', () => {
      if (!action.isRepeatable) node.remove();
      action.run();
    });
    actions.append(button);
    if (before && before.querySelector('.warning-text').textContent !== words.textContent) rest(button);
  }
  actions.append(close);
  before?.remove();
  byID('warnings').append(node);
}

/** Takes the warnings away of which `matches(key)` is true. */
export function clearWarnings(matches = (_) => true) {
  for (const node of [...byID('warnings').children]) if (matches(node.dataset.key)) node.remove();
}

// Words that pass, and words that stay until they are dismissed. `label` is the person's name, `device` the device's id; `whose` and `has` speak to the person about their own.

const passing = {
  'new-device': ({ has, device }) => `${has} a new device (${device})`,
  waiting: ({ whose, device }) => `${whose} device ${device} does not trust yours yet, so it cannot hear you`,
};

const lasting = {
  stranger: ({ whose, device }) => `${whose} device ${device} can hear this call, but the server does not show it as a member.`,
  gone: ({ isOwn, label, device }) => `${isOwn ? 'Your device' : label} (${device}) has left, but may still hear the call.`,
  unverified: ({ whose, isOwn, label, device }) =>
    `${whose} device ${device} is not verified. While it is in the call you are neither heard nor seen: ${isOwn ? 'pair it with this device' : `compare the call code with ${label}, by phone or in person if you do not hear each other here`}.`,
  revoked: ({ has, device }) => `${has} removed the device ${device} for good. It gets no keys from you.`,
  fell: ({ whose, device }) => `${whose} device ${device} is no longer vouched for by a device that you have verified.`,
  disagree: ({ whose, isOwn, label, device, by }) =>
    `${whose} devices disagree: ${by} says that ${device} must not be trusted, but you have verified ${device}. One of them may be stolen.${isOwn ? '' : ` Ask ${label}.`}`,
  'old-join-key': ({ whose, device }) => `${whose} device ${device} gets no keys from you: the server shows an outdated key of it.`,
  'wrong-confirmation': ({ whose, device }) => `${whose} device ${device} does not share the key of this call: it may hear others than you do.`,
  'taken-number': () => 'The server gave a device a number that is somebody else’s. It is not heard.',
  namesake: ({ label, other }) => `${label} has the same name as ${other}, but is somebody else.`,
  'refused-list': () => 'The server sent a list of devices that does not fit this call. It was refused: you may not be heard.',
  'refused-envelope': () => 'A key for this call did not fit and was refused. You may hear nothing until the next one comes.',
  'refused-ring': () => 'The call rang with a key that did not fit. It was not used.',
  'withheld-join-key': () => 'The server holds back this device’s fresh key.',
  'no-key': () => 'The key of this call did not come. You are neither heard nor seen until it does.',
  unconfirmed: () => 'Not everybody has confirmed the key of this call. See Call code.',
  'false-confirmation': () => 'The server passed on a false confirmation of the call’s key.',
  'removed-from-list': () => 'The server left this device out of the list of those who can hear. You are neither heard nor seen until it is back on it.',
  'refused-track': () => 'The server named a track that is not this device’s. Nothing is sent on it.',
  'old-epoch': () => 'The key of this call should have been replaced long ago. The server may be holding that back.',
};

const unverifiable = ({ whose, device }) => `${whose} device ${device} could not be verified. It gets no keys, and is neither heard nor seen.`;

const COMPARED = ['unverified', 'unconfirmed', 'wrong-confirmation']; // comparing the call code helps
const shownInTheCall = ['stopped', 'broken-history']; // above the stage, as long as it lasts

/** What the person should know about keys. `trust(fingerprint)` accepts a changed key, `compare()`, in a call, opens its code; `label` is what the person calls the user, `isOwn` says that it is their own device. */
export function warnOfKey(detail, { label, isOwn, trust, compare = undefined }) {
  const { problem, user, device, fingerprint } = detail;
  if (shownInTheCall.includes(problem)) return undefined;
  const about = { ...detail, label, isOwn, whose: isOwn ? 'Your' : `${label}’s`, has: isOwn ? 'You have' : `${label} has` };
  if (passing[problem]) return notice(passing[problem](about));
  const key = [problem, user, device].filter(Boolean).join('/');
  const action = compare && COMPARED.includes(problem) && !isOwn ? { label: 'Compare the call code', run: compare, isRepeatable: true } : undefined;
  if (problem !== 'changed-key') return warn(key, (lasting[problem] ?? unverifiable)(about), { action });
  const owner = isOwn ? 'your' : `${label}’s`;
  const ask = isOwn ? 'Look first whether that device shows this key:' : `Ask ${label} first whether this is the new key:`;
  const words = `The security key of ${owner} device ${device} has changed. Until you trust it, it neither hears nor sees you. ${ask}`;
  return warn(key, words, { detail: readable(fingerprint), action: { label: 'Trust the new key', run: () => trust(fingerprint) } });
}

const stops = {
  stranger: (who) => `You are neither heard nor seen: ${who} can hear this call, but is not shown as a member.`,
  gone: (who) => `You are neither heard nor seen: ${who} has left, but may still hear the call.`,
  'broken-history': () => 'You are neither heard nor seen: the server’s record of who was in this call does not fit what this device saw.',
  'epoch-1': () => 'Securing the call… You are heard again in a moment.',
  'no-key': () => 'Waiting for the key of the call… You are neither heard nor seen until it comes.',
  unverified: () => 'You are neither heard nor seen while a device that is not verified is in the call.',
};

/** Why nothing is sent; `who` names the device that it is about. */
export const wordsForStop = (cause, who) => stops[cause]?.(who) ?? 'You are neither heard nor seen for now.';

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
  if (kind === 'screen-stopped') return `${name} stopped sharing the screen`;
  if (kind === 'screen-replaced') return 'Your screen is not shared any more';
  if (kind === 'media-failed') return 'Your sound and pictures cannot be sent now. Leave the call and join again.';
  if (kind === 'lost-device') return `The ${source} was disconnected`;
  return kind === 'no-device' ? wordsForDevice(source, error) : undefined;
}

const refusals = {
  NotAllowedError: (device) => `The browser does not allow the ${device}. Allow it in the browser’s settings for this site, then start it here`,
  NotFoundError: (device) => `No ${device} was found. Connect one, then start it here`,
  NotReadableError: (device) => `The ${device} is in use by another program. Close that, then start it here`,
  OverconstrainedError: (device) => `The ${device} that you chose is not there. Choose another under “Camera and sound”`,
};

/** Why the browser did not open a camera or microphone, and what to do; `error` is the name of its error. */
export function wordsForDevice(source, error) {
  const device = source === 'camera' ? 'camera' : 'microphone';
  const words = refusals[error]?.(device) ?? `The ${device} could not be started. Connect it anew, then start it here`;
  return source === 'camera' ? `${words}. The call goes on with sound.` : `${words}. Until then the others do not hear you.`;
}

const results = {
  offline: 'is offline: it rings if they come back in time',
  unavailable: 'is not available',
  busy: 'is in another call',
  'no-keys': 'has no device for encrypted calls yet',
  'already-joined': 'is in the call already',
};

/** What became of a ring, by the server's results. */
export function tellResults(results_, labelFor) {
  for (const [user, result] of Object.entries(results_ ?? {})) {
    if (results[result]) notice(`${labelFor(user)} ${results[result]}`);
  }
}

/** Why a call is over; undefined where this person ended it. With `others`, who were called: one alone is told of by name, as in passing. */
export function wordsForEnd({ reason, by }, labelFor, user, others) {
  if (by === user) return undefined;
  const alone = { declined: 'declined', 'no-answer': 'missed', 'all-left': 'left' }[reason];
  if (alone && others.length === 1 && others[0].state === alone) return `${labelFor(others[0].user)} ${causes[alone]}`;
  return {
    'ended-by-initiator': `${by ? labelFor(by) : 'The caller'} ended the call`,
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
  'device.not-found': 'Your other device is not connected. Open Conclave there.',
};

const browserErrors = {
  NotAllowedError: 'The browser does not allow that. Allow it in the browser’s settings for this site, and try again.',
  NotFoundError: 'This computer has nothing of that kind. Connect one and try again.',
  NotReadableError: 'Another program uses that. Close it and try again.',
  NotSupportedError: 'This browser cannot do that. A current Chrome, Edge, Firefox or Safari can.',
  AbortError: 'That was interrupted. Try again.',
  QuotaExceededError: 'The browser has no room left. Free some space on this device and try again.',
};

/** What went wrong and what to do. The server's errors bring a text for people; the browser's are for programmers and are not shown. */
export function wordsForError(error) {
  if (error instanceof RequestError) return codes[error.code] ?? error.message;
  return browserErrors[error.name] ?? 'That did not work. Try again; if it fails again, load the page anew.';
}
