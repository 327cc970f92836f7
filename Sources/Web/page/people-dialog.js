// The dialog of people: those in the call and those who are rung, adding people, the link, and reporting somebody.

import { isGuest } from '../conclave/index.js';
import { wordsForAdmission } from './admission-words.js';
import { busy, byID, setText } from './dom.js';
import { replaceRows, row, rowButton } from './dialogs.js';
import { askRemoval, mayRemove } from './guest-removal.js';
import { addressOf } from './link.js';
import { labelFor, nameFor } from './names.js';
import { notice, tellResults, wordsForError } from './notices.js';
import { PeopleField, checkNames, chosenIDs } from './people.js';
import { t } from './texts.js';

const added = new PeopleField(byID('add-name'), (names) => checkNames(added, names, byID('add-error'), options));
const links = new WeakMap(); // the link that was made here, by call
let call;
let options;
let reported;

/** `fieldOptions` is the argument of `chosenIDs`. */
export function openPeople(shown, fieldOptions) {
  call = shown;
  options = fieldOptions;
  added.clear();
  setText(byID('add-error'), '');
  showLink();
  showPeople(call);
  byID('people-dialog').showModal();
  if (call.mayInvite) added.focus();
}

/** Opens the dialog and makes a link. */
export async function openWithLink(shown, fieldOptions) {
  openPeople(shown, fieldOptions);
  await makeLink();
}

export function showPeople(shown) {
  if (shown !== call) return;
  byID('add-form').hidden = !call.mayInvite;
  byID('link-part').hidden = !call.mayInvite;
  replaceRows(byID('member-list'), [...[...call.members.values()].map(memberRow), ...listeners().map(listenerRow)], byID('people-dialog-title'));
}

/** Devices that can decrypt the call although the server does not name them as members' devices. */
const listeners = () => call.roster.filter(({ state }) => state === 'stranger' || state === 'gone');

function listenerRow({ user, device, state, isUninvited }) {
  const words = [t(`members.${state}`), isUninvited && t('admission.nobody')].filter(Boolean).join(' · ');
  const made = row(nameFor(user), `${labelFor(user)} · ${device}`, words, user);
  made.dataset.listener = user;
  return made;
}

function memberRow(member) {
  const isOwn = member.user === call.user;
  const name = labelFor(member.user);
  const isHeld = member.participants.length > 0 && member.participants.every(({ held }) => held);
  const state = t(isHeld ? 'running.held' : member.state === 'ringing' ? 'call.ringing' : `members.${member.state}`);
  const words = [state, admissionWords(member)].filter(Boolean).join(' · ');
  const made = row(name, isOwn ? t('members.you', { name }) : name, words, member.user);
  Object.assign(made.dataset, { user: member.user, state: member.state });
  const canRing = ['left', 'declined', 'missed', 'cancelled'].includes(member.state) && call.mayInvite && !isOwn && !isGuest(member.user);
  const again = async () => tellResults(await call.invite([member.user]));
  if (canRing) made.append(rowButton(t('members.ring-again'), name, again));
  if (member.state === 'ringing' && call.isInitiator) made.append(rowButton(t('members.stop-ringing'), name, () => call.cancel(member.user)));
  if (mayRemove(call, member)) made.append(rowButton(t('members.remove'), name, () => askRemoval(call, member.user)));
  if (!isOwn && !canRing && member.state !== 'ringing') made.append(rowButton(t('members.report'), name, async () => askReport(member), 'quiet'));
  return made;
}

/** The text about who let the member in, according to the member's devices on the list of keys. */
function admissionWords({ user, link }) {
  const theirs = call.roster.filter((person) => person.user === user && person.state !== 'unlisted');
  if (theirs.some(({ isUninvited }) => isUninvited)) return t('admission.nobody');
  return wordsForAdmission(theirs.find(({ admission }) => admission)?.admission ?? call.admissionOf({ user })) || (link ? t('members.by-link') : '');
}

const invite = busy(byID('add-button'), async () => {
  const ids = chosenIDs(added, byID('add-error'), options);
  if (!ids) return;
  try {
    tellResults(await call.invite(ids));
    byID('people-dialog').close();
  } catch (error) {
    setText(byID('add-error'), wordsForError(error));
  }
});
byID('add-form').addEventListener('submit', (event) => {
  event.preventDefault();
  invite();
});

// The link

/** As the operator has chosen (`page.guestsWait` of the server's configuration, which marks the page), until the person chooses otherwise. */
byID('link-waits').checked = 'guestsWait' in document.documentElement.dataset;

/** `other` is a call of the lasting link `{secret, name}`, which people may have: it is shown as the call's link. */
export function useLastingLink(other, { secret, name = '' }) {
  links.set(other, { secret, name, isLasting: true });
}

/** Whether somebody may join `other` by a link that was made here. */
export const hasLink = (other) => links.has(other);

/** The links of `other` are void. Returns whether one was made here. */
export function forgetLink(other) {
  const hadLink = links.delete(other);
  if (hadLink && other === call) showLink();
  return hadLink;
}

function showLink() {
  const link = links.get(call);
  byID('link-make').hidden = Boolean(link);
  byID('link-waits-field').hidden = Boolean(link);
  for (const part of ['made', 'copy', 'revoke']) byID(`link-${part}`).hidden = !link;
  byID('link-share').hidden = !link || !navigator.share;
  byID('link-name-field').hidden = !link;
  setText(byID('link-help'), t(link?.isLasting ? 'links.in-call' : 'link.help'));
  byID('link-name').value = link?.name ?? '';
  showAddress();
}

function showAddress() {
  const link = links.get(call);
  byID('link-text').value = link ? addressOf({ id: call.id, ...link }) : '';
}

/** The name is in the address only: the same link has another one as soon as it is typed. */
byID('link-name').addEventListener('input', () => {
  const link = links.get(call);
  if (link) link.name = byID('link-name').value;
  showAddress();
});

function onClick(id, action) {
  byID(id).addEventListener('click', busy(byID(id), () => action().catch((error) => notice(wordsForError(error)))));
}

async function makeLink() {
  links.set(call, await call.makeLink(undefined, { guestsWait: byID('link-waits').checked }));
  showLink();
  byID('link-text').select();
}

onClick('link-make', makeLink);
onClick('link-copy', async () => {
  await navigator.clipboard.writeText(byID('link-text').value);
  notice(t('link.copied'));
});
onClick('link-share', async () => {
  try {
    await navigator.share({ title: links.get(call)?.name?.trim() || t('link.title'), url: byID('link-text').value });
  } catch (error) {
    if (error.name !== 'AbortError') throw error; // the person closed the system's sheet
  }
});
onClick('link-revoke', async () => {
  await call.revokeLinks();
  links.delete(call);
  showLink();
  byID('link-make').focus();
  notice(t('link.revoked'));
});

// Reports

async function askReport(member) {
  reported = member;
  setText(byID('report-title'), t('report.title', { name: labelFor(member.user) }));
  byID('report-words').value = '';
  byID('report-dialog').showModal();
}

byID('report-form').addEventListener('submit', async (event) => {
  event.preventDefault();
  const words = byID('report-words').value.trim();
  if (!words) return byID('report-words').focus();
  byID('report-dialog').close();
  try {
    await call.report(reported.user, words);
    notice(t('report.sent'));
  } catch (error) {
    notice(wordsForError(error));
  }
  return undefined;
});
