// The chat beside the call: messages and reactions, encrypted as the call is, and gone with it.

import { byID, element, nameOf, setText } from './dom.js';
import { notice, wordsForError } from './notices.js';

const REACTIONS = { '👍': 'Thumbs up', '👏': 'Applause', '❤️': 'Heart', '😂': 'Laughing', '🎉': 'Party', '✋': 'Raised hand' };
const KEPT = 200;

let call;
let unread = 0;

byID('chat-reactions').append(
  ...Object.entries(REACTIONS).map(([reaction, label]) => {
    const button = element('button', { type: 'button', textContent: reaction, ariaLabel: label, title: label });
    button.addEventListener('click', () => send({ reaction }));
    return button;
  }),
);

/** The chat of `shown`, empty at first. */
export function beginChat(shown) {
  call = shown;
  byID('chat-list').replaceChildren();
  unread = 0;
  setOpen(false);
  call.addEventListener('message', ({ detail }) => shown === call && add(detail));
}

function setOpen(isOpen) {
  byID('chat').hidden = !isOpen;
  const button = byID('toggle-chat');
  button.ariaExpanded = isOpen;
  button.classList.toggle('on', isOpen);
  if (isOpen) unread = 0;
  showUnread();
}

function showUnread() {
  setText(byID('toggle-chat').querySelector('span'), unread > 0 ? `Chat (${unread})` : 'Chat');
}

function add({ participant, text, reaction }) {
  const { member } = call.members.find(participant);
  const isOwn = participant === call.participant;
  const name = isOwn ? 'You' : nameOf(member);
  const words = text ?? reaction;
  const line = element('li', { className: reaction ? 'reaction' : '' });
  line.classList.toggle('own', isOwn);
  line.append(element('span', { className: 'row-sub', textContent: name }), element('p', { textContent: words }));
  const list = byID('chat-list');
  list.append(line);
  while (list.childElementCount > KEPT) list.firstElementChild.remove();
  line.scrollIntoView({ block: 'nearest' });
  if (!byID('chat').hidden || isOwn) return;
  unread += 1;
  showUnread();
  notice(`${name}: ${words.slice(0, 80)}`);
}

async function send(message) {
  try {
    await call.send(message);
    return true;
  } catch (error) {
    notice(wordsForError(error));
    return false;
  }
}

byID('toggle-chat').addEventListener('click', () => {
  setOpen(byID('chat').hidden);
  if (!byID('chat').hidden) byID('chat-text').focus();
});
byID('chat-close').addEventListener('click', () => {
  setOpen(false);
  byID('toggle-chat').focus();
});
byID('chat-form').addEventListener('submit', async (event) => {
  event.preventDefault();
  const field = byID('chat-text');
  const text = field.value.trim();
  if (!text) return;
  field.value = '';
  if (!(await send({ text })) && !field.value) field.value = text;
});
