// Transient notices, and warnings about keys that people must decide on.

import { RequestError, readable } from '../conclave/index.js';
import { byID, element, icon, nameOf, openDialog, rest } from './dom.js';
import { labelFor, learnNames } from './names.js';
import { wordsForDevice } from './permissions.js';
import { hasText, t } from './texts.js';

const NOTICE_MS = 6_000;
const NOTICES = 3;
const NOTICES_OF_KEYS = 8;

/** Where notices are shown and announced: in the open dialog, because the page behind it is inaccessible; else in a call's bar, where they cover no face. */
export function placeNotices() {
  const bar = byID('call').hidden ? document.body : byID('call-bar');
  const host = openDialog() ?? bar;
  const list = byID('notices');
  if (list.parentElement !== host) host.append(list);
  return list;
}
addEventListener('close', placeNotices, true);

/**
 * A line at the top that disappears by itself; a screen reader says it. Returns a function that removes it at once. A notice that `isOfKeys` is pushed out only
 * by others of its kind, and stays last, where a small window shows it: the server decides when other notices come.
 */
export function notice(text, { isOfKeys = false } = {}) {
  const list = placeNotices();
  const same = [...list.children].find(({ textContent }) => textContent === text);
  const line = same ?? element('p', { className: 'notice', textContent: text });
  line.dataset.isOfKeys = String(isOfKeys);
  const ofKeys = [...list.children].find(({ dataset }) => dataset.isOfKeys === 'true');
  if (!same && ofKeys && !isOfKeys) ofKeys.before(line);
  else if (!same) list.append(line);
  const alike = [...list.children].filter(({ dataset }) => dataset.isOfKeys === line.dataset.isOfKeys);
  for (const other of alike.slice(0, -(isOfKeys ? NOTICES_OF_KEYS : NOTICES))) other.remove();
  setTimeout(() => line.remove(), NOTICE_MS);
  return () => line.remove();
}

/** Removes all notices: those of one call are not for the next. */
export function clearNotices() {
  byID('notices').replaceChildren();
}

/** Removes the notices with these texts, which are shown elsewhere now. */
export function withdrawNotices(texts) {
  for (const line of [...byID('notices').children]) if (texts.includes(line.textContent)) line.remove();
}

/**
 * A warning that stays until it is dismissed; one with the same `key` replaces it. `action` is `{label, run}`: if the previous warning had another text its
 * button is disabled for a moment, because a press may have been meant for that. With `action.isRepeatable` the warning stays when it is pressed. `dismissal`
 * is a `{label, run}` in place of dismissing it. `advice` is a second paragraph. `detail` is shown unchanged, for people to compare. `isOfCall`: it is removed with
 * the call that is shown.
 * @param {string} key
 * @param {string} text
 * @param {{ action?: { label: string, run: () => void, isRepeatable?: boolean }, dismissal?: { label: string, run: () => void }, advice?: string, detail?: string,
 *   isOfCall?: boolean }} options
 */
export function warn(key, text, { action, dismissal = { label: t('dismiss'), run: () => {} }, advice, detail, isOfCall = false } = {}) {
  const before = [...byID('warnings').children].find(({ dataset }) => dataset.key === key);
  const close = element('button', { type: 'button', className: 'secondary', textContent: dismissal.label });
  const actions = element('div', { className: 'actions' });
  const words = element('div', { className: 'warning-text' }, element('p', { textContent: text }));
  if (advice) words.append(element('p', { textContent: advice }));
  if (detail) words.append(element('p', { className: 'fingerprint', textContent: detail, translate: false }));
  const node = element('div', { className: 'warning' }, icon('warning'), words, actions);
  node.dataset.key = key;
  if (isOfCall) node.dataset.ofCall = 'true';
  close.addEventListener('click', () => {
    node.remove();
    dismissal.run();
  });
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

/** Removes the warnings for which `matches(key)` is true; without it those of the call that is shown. */
export function clearWarnings(matches) {
  for (const node of [...byID('warnings').children]) if (matches ? matches(node.dataset.key) : node.dataset.ofCall) node.remove();
}

const PASSING = ['waiting'];
const LASTING = [
  'stranger', 'uninvited', 'by-service', 'gone', 'unverified', 'revoked', 'fell', 'disagree', 'old-join-key', 'wrong-confirmation', 'taken-number', 'namesake', 'refused-list', 'refused-envelope', 'refused-ring',
  'withheld-join-key', 'no-key', 'unconfirmed', 'false-confirmation', 'removed-from-list', 'refused-track', 'old-epoch', 'changed-key', 'refused-recording',
]; // others: the device could not be verified
const COMPARED = ['unverified', 'unconfirmed', 'wrong-confirmation']; // comparing the call code helps
const ADVISED = ['stranger', 'uninvited', 'gone', 'revoked', 'taken-number', 'refused-list', 'removed-from-list', 'refused-track']; // the server may be lying: nothing on this page helps
const shownInTheCall = ['stopped', 'broken-history']; // above the stage, as long as it lasts

/**
 * Warns the person about keys. `trust(fingerprint)` accepts a changed key, `compare()`, in a call, opens its code; `label` is the person's name for the user,
 * `isOwn` says that it is their own device, `deviceName(device)` is the name that the server reports for one of the user's devices.
 *
 * @param {any} detail
 * @param {{label: string, deviceName?: (device: string) => string | undefined, isOwn: boolean, trust: (fingerprint: string) => unknown, isOfCall?: boolean, compare?: () => void}} options
 */
export function warnOfKey(detail, { label, deviceName = () => undefined, isOwn, trust, isOfCall = false, compare = undefined }) {
  const { problem, user, device, fingerprint } = detail;
  if (shownInTheCall.includes(problem)) return undefined;
  const nameOfDevice = (id) => id && nameOf({ user: id, name: deviceName(id) });
  const values = { ...detail, name: label, device: nameOfDevice(device), by: nameOfDevice(detail.by) };
  const text = (name) => {
    const key = `key.${name}`;
    return t(isOwn && hasText(`${key}.own`) ? `${key}.own` : key, values);
  };
  if (problem === 'new-device') return tellNewDevice(detail, { label, isOwn, shown: values.device });
  if (PASSING.includes(problem)) return notice(text(problem), { isOfKeys: true });
  const key = [problem, user, device].filter(Boolean).join('/');
  const words = text(detail.isSelfRevoked ? 'self-revoked' : LASTING.includes(problem) ? problem : 'unverifiable');
  if (problem === 'changed-key') {
    return warn(key, words, { isOfCall, detail: readable(fingerprint), action: { label: t('key.trust-new'), run: () => trust(fingerprint) } });
  }
  const action = compare && COMPARED.includes(problem) && !isOwn ? { label: t('key.compare'), run: compare, isRepeatable: true } : undefined;
  return warn(key, words, { action, advice: ADVISED.includes(problem) ? t('key.advice') : undefined, isOfCall });
}

/**
 * The notice is transient. If the person has verified another device of the user it is a warning, which stays until it is dismissed, even after the end of the
 * call: anyone with the user's sign-in could speak through this device.
 */
function tellNewDevice({ user, device, isOfVerified }, { label, isOwn, shown }) {
  const key = isOfVerified ? 'key.unverified-device' : 'key.new-device';
  const words = t(isOwn ? `${key}.own` : key, { name: label, device: shown });
  if (!isOfVerified) return notice(words, { isOfKeys: true });
  const action = isOwn ? { label: t('devices'), run: () => byID('show-devices').click() } : undefined;
  return warn(`new-device/${user}/${device}`, words, { action });
}

const STOPS = ['stranger', 'uninvited', 'gone', 'revoked', 'changed-key', 'broken-history', 'epoch-1', 'no-key', 'unverified', 'not-shown', 'withdrawn'];

/** Why nothing is sent; `who` names the devices concerned. */
export function wordsForStop({ cause, devices }, who) {
  const isBySelf = cause === 'revoked' && devices.every(({ isSelfRevoked }) => isSelfRevoked);
  return t(`stop.${isBySelf ? 'self-revoked' : STOPS.includes(cause) ? cause : 'other'}`, { who });
}

const EVENTS = ['joined', 'rejoined', 'declined', 'missed', 'left', 'disconnected', 'failed', 'transferred'];

const FULL = ['disk-full', 'quota'];

/**
 * The words for a call's `notice`; undefined if nothing needs saying. `by` is the member who removed a guest, as `Removals` knows it, `starter` the user whose recording has ended,
 * for `reason`.
 */
export function wordsFor({ kind, cause, member, source, error, by = undefined, starter = '', reason = '' }) {
  if (member) learnNames([member]);
  const name = member && labelFor(member.user);
  // `disconnected` with another state: only the media is gone, possibly for a moment.
  if (cause === 'disconnected' && member.state !== 'disconnected') return undefined;
  if (cause === 'held') return t(member.participants.some(({ held }) => held) ? 'event.held' : 'event.resumed', { name });
  if (cause === 'removed') return by ? t('event.removed', { name, by: labelFor(by) }) : wordsForCause('left', name);
  if (kind === 'member') return wordsForCause(cause, name);
  if (kind === 'recording-ended') return FULL.includes(reason) ? t('event.recording-full') : t('event.recording-ended', { name: labelFor(starter) });
  if (kind === 'lost-device') return t(`${source}.lost`);
  if (kind === 'no-device') return wordsForDevice(source, error);
  return hasText(`event.${kind}`) ? t(`event.${kind}`, { name }) : undefined;
}

function wordsForCause(cause, name) {
  const shown = cause === 'accepted' ? 'joined' : cause;
  return EVENTS.includes(shown) ? t(`event.${shown}`, { name }) : undefined;
}

/** Reports how each ring ended, from the server's results. */
export function tellResults(results) {
  for (const [user, result] of Object.entries(results ?? {})) {
    if (hasText(`result.${result}`)) notice(t(`result.${result}`, { name: labelFor(user) }));
  }
}

/** Why a call is over; undefined if this person ended it. With `others`, who were called: a single one is named, as elsewhere. */
export function wordsForEnd({ reason, by }, user, others) {
  if (by === user || reason === 'failed') return undefined;
  const alone = { declined: 'declined', 'no-answer': 'missed', 'all-left': 'left' }[reason];
  if (alone && others.length === 1 && others[0].state === alone) return wordsForCause(alone, labelFor(others[0].user));
  if (reason === 'ended-by-initiator') return by ? t('over.ended-by', { name: labelFor(by) }) : t('over.ended-by-caller');
  return hasText(`over.${reason}`) ? t(`over.${reason}`) : undefined;
}

/** A text that says what went wrong and what to do. The texts of the server and of the browser are for programmers, and in English: they are not shown. */
export function wordsForError(error) {
  const isRefused = error instanceof RequestError || error.code === 'reply.refused';
  const code = isRefused ? (error.code === 'call.not-found' ? 'call.ended' : error.code) : error.name;
  return t(hasText(`error.${code}`) ? `error.${code}` : 'error.other');
}
