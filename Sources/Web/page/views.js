// Which view of the page is shown.

import { byID } from './dom.js';

const VIEWS = ['welcome', 'guest', 'waiting', 'farewell', 'lobby', 'call', 'unanswered', 'message', 'record', 'elsewhere'];

export function show(view) {
  for (const name of VIEWS) byID(name).hidden = name !== view;
  document.body.classList.toggle('in-call', view === 'call');
  byID('account').hidden = ['welcome', 'guest', 'waiting', 'farewell', 'elsewhere'].includes(view) || document.body.classList.contains('as-guest');
  byID(`${view}-title`).focus({ preventScroll: true });
  document.dispatchEvent(new Event('view'));
}
