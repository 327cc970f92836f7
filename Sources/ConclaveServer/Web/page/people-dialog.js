// The dialog of people: those in the call and those who are rung, adding people, the link, and reporting somebody.

import { busy, byID, setText } from './dom.js';
import { replaceRows, row, rowButton } from './dialogs.js';
import { labelFor, nameFor } from './names.js';
import { notice, tellResults, wordsForError } from './notices.js';
import { PeopleField, checkNames, chosenIDs } from './people.js';

const phases = {
  ringing: 'Ringing…',
  joined: 'In the call',
  left: 'Left',
  declined: 'Declined',
  missed: 'Did not answer',
  cancelled: 'No longer rung',
  disconnected: 'Connection lost',
};

const added = new PeopleField(byID('add-name'), (names) => checkNames(added, names, byID('add-error'), options));
const links = new WeakMap(); // the link that was made here, by call
let call;
let options;
let reported;

/** `fieldOptions` is what `chosenIDs` wants. */
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

/** Opens the dialog with a link made. */
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

/** Devices that can decrypt the call, though the server does not name them as members' devices. */
const listeners = () => call.roster.filter(({ state }) => state === 'stranger' || state === 'gone');

function listenerRow({ user, device, state }) {
  const made = row(nameFor(user), `${labelFor(user)} · ${device}`, state === 'stranger' ? 'Can hear the call, but is not in it' : 'Has left, may still hear the call');
  made.dataset.listener = user;
  return made;
}

function memberRow(member) {
  const isOwn = member.user === call.user;
  const name = labelFor(member.user);
  const isHeld = member.participants.length > 0 && member.participants.every(({ held }) => held);
  const state = isHeld ? 'On hold' : phases[member.state];
  const made = row(name, isOwn ? `${name} (you)` : name, member.link ? `${state} · came by a link` : state);
  Object.assign(made.dataset, { user: member.user, state: member.state });
  const canRing = ['left', 'declined', 'missed', 'cancelled'].includes(member.state) && call.mayInvite && !isOwn;
  const again = async () => tellResults(await call.invite([member.user]), labelFor);
  if (canRing) made.append(rowButton('Ring again', name, again));
  if (member.state === 'ringing' && call.isInitiator) made.append(rowButton('Stop ringing', name, () => call.cancel(member.user)));
  if (!isOwn && !canRing && member.state !== 'ringing') made.append(rowButton('Report', name, async () => askReport(member), 'quiet'));
  return made;
}

const invite = busy(byID('add-button'), async () => {
  const ids = chosenIDs(added, byID('add-error'), options);
  if (!ids) return;
  try {
    tellResults(await call.invite(ids), labelFor);
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

/** The address that opens this page with the link in it. What is behind `#` is sent to no server. */
function addressOf(link) {
  return `${location.origin}${location.pathname}#join=${call.id}/${link}`;
}

function showLink() {
  const link = links.get(call);
  byID('link-make').hidden = Boolean(link);
  for (const part of ['made', 'copy', 'revoke']) byID(`link-${part}`).hidden = !link;
  byID('link-text').value = link ? addressOf(link) : '';
}

function onClick(id, action) {
  byID(id).addEventListener('click', busy(byID(id), () => action().catch((error) => notice(wordsForError(error)))));
}

async function makeLink() {
  const { link } = await call.makeLink();
  links.set(call, link);
  showLink();
  byID('link-text').select();
}

onClick('link-make', makeLink);
onClick('link-copy', async () => {
  await navigator.clipboard.writeText(byID('link-text').value);
  notice('The link is copied');
});
onClick('link-revoke', async () => {
  await call.revokeLinks();
  links.delete(call);
  showLink();
  byID('link-make').focus();
  notice('All links to this call are void');
});

// Reports

async function askReport(member) {
  reported = member;
  setText(byID('report-title'), `Report ${labelFor(member.user)}`);
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
    notice('Your report was sent');
  } catch (error) {
    notice(wordsForError(error));
  }
  return undefined;
});
