// The chat beside the call: messages, and the reactions among them, encrypted like the call, and deleted with it.

import { byID, element, setText } from './dom.js';
import { labelFor } from './names.js';
import { notice, wordsForError } from './notices.js';
import { t } from './texts.js';

const KEPT = 200;
const TOLD = 80; // characters of a message that is announced while the chat is closed

const chats = new WeakMap(); // the lines of each call's chat
const unread = []; // functions that remove each message's notice
let call;

/** The chat of `shown` so far: a call on hold keeps its own. */
export function beginChat(shown) {
  call = shown;
  if (!chats.has(shown)) {
    chats.set(shown, []);
    shown.addEventListener('message', ({ detail }) => add(shown, detail));
  }
  byID('chat-list').replaceChildren(...chats.get(shown));
  setOpen(false);
}

function setOpen(isOpen) {
  byID('chat').hidden = !isOpen;
  const button = byID('toggle-chat');
  button.ariaExpanded = isOpen;
  button.classList.toggle('on', isOpen);
  for (const dismiss of unread.splice(0)) dismiss();
  showUnread();
}

function showUnread() {
  setText(byID('toggle-chat').querySelector('span'), unread.length > 0 ? t('tool.chat-unread', { count: unread.length }) : t('tool.chat'));
}

function add(to, { participant, text, reaction, isPrivate }) {
  if (text === undefined && reaction === undefined) return; // a hand
  const isOwn = participant === to.participant;
  const owner = to.ownerOf(participant);
  const sender = isOwn ? t('tile.you') : owner ? labelFor(owner.user) : t('chat.somebody');
  const name = isPrivate ? t('chat.private', { name: sender }) : sender;
  const words = text ?? reaction;
  keep(to, lineOf({ name, words, isOwn, isReaction: Boolean(reaction) }));
  if (isOwn || (to === call && !byID('chat').hidden)) return;
  // A reaction is shown on its sender's tile.
  const dismiss = reaction && to === call ? () => {} : notice(`${name}: ${words.length > TOLD ? `${words.slice(0, TOLD)}…` : words}`);
  if (to !== call) return;
  unread.push(dismiss);
  showUnread();
}

function lineOf({ name, words, isOwn, isReaction }) {
  const line = element('li', {}, element('span', { className: 'row-sub', textContent: name }), element('p', { textContent: words, dir: 'auto' }));
  line.classList.toggle('reaction', isReaction);
  line.classList.toggle('own', isOwn);
  return line;
}

function keep(to, line) {
  const lines = chats.get(to);
  lines.push(line);
  if (lines.length > KEPT) lines.shift().remove();
  if (to !== call) return;
  byID('chat-list').append(line);
  line.scrollIntoView({ block: 'nearest' });
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
