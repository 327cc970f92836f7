// Running calls: those on hold here, those on another device of this user, and those that can be joined.

import { avatar, byID, element } from './dom.js';
import { replaceRows, rowButton } from './dialogs.js';
import { clock } from './history-words.js';
import { labelFor, learnNames, nameFor } from './names.js';
import { listNames, t } from './texts.js';

const NAMED = 3; // in a title

/** "Call with Bob and Carol": who is in it, else who was. */
export function titleOf(facts) {
  const present = facts.others.filter(({ participants }) => participants.length > 0);
  const others = present.length > 0 ? present : facts.others;
  return others.length > 0 ? t('running.with', { names: listNames(others.map(({ user }) => labelFor(user)), NAMED) }) : t('running.own');
}

function rowOf(kind, facts, below, ...buttons) {
  learnNames(facts.members.values());
  const title = titleOf(facts);
  const text = element('div', { className: 'row-text' });
  text.append(element('span', { textContent: title }), element('span', { className: 'row-sub', textContent: below }));
  const user = (facts.others[0] ?? facts.members.values().next().value)?.user ?? '';
  const made = element('li', {}, avatar(nameFor(user), user), text);
  Object.assign(made.dataset, { kind, call: facts.id });
  for (const [label, action, className] of buttons) made.append(rowButton(label, title, action, className));
  return made;
}

/** Rows for calls on hold and on other devices; `actions` has `resume(call)`, `leave(call)`, `transfer(facts)`, `join(facts)`. */
export function otherCalls({ held, elsewhere, open = [] }, { resume, leave, transfer, join }) {
  return [
    ...held.map((call) =>
      rowOf('held', call.facts, t('running.held'), [t('running.resume'), () => resume(call)], [t('running.leave'), () => leave(call), 'quiet']),
    ),
    ...elsewhere.map((facts) =>
      facts.isLost
        ? rowOf('lost', facts, t('running.lost'), [t('running.rejoin'), () => join(facts)])
        : rowOf('elsewhere', facts, t('running.elsewhere'), [t('running.take'), () => transfer(facts)]),
    ),
    ...open.map((facts) => rowOf('open', facts, t('running.since', { time: clock(facts.startedAt) }), [t(facts.wasIn ? 'running.rejoin' : 'running.join'), () => join(facts)])),
  ];
}

/** In the lobby. */
export function showRunning(calls, actions) {
  const rows = otherCalls(calls, actions);
  byID('running').hidden = rows.length === 0;
  replaceRows(byID('running-list'), rows, byID('lobby-title'));
}

/** Above the active call: not the calls whose connection is lost, which wait in the lobby. */
export function showBeside({ held, elsewhere }, actions) {
  const rows = otherCalls({ held, elsewhere: elsewhere.filter(({ isLost }) => !isLost) }, actions);
  byID('held').hidden = rows.length === 0;
  replaceRows(byID('held'), rows, byID('call-title'));
}
