// The bar of a call on a narrow page: rarely used buttons are in "More", so that the bar is one row of buttons that a thumb can hit.

import { byID } from './dom.js';

const narrow = matchMedia('(max-width: 640px)');
const PLACES = { 'toggle-hand': 'toggle-chat', 'add-people': 'show-more' }; // each button, and the button that it precedes in the bar

function arrange() {
  const first = byID('toggle-hold');
  for (const [id, next] of Object.entries(PLACES)) (narrow.matches ? first : byID(next)).before(byID(id));
  if (!narrow.matches && byID('more-dialog').open) byID('more-dialog').close();
}

export function beginToolbar() {
  narrow.addEventListener('change', arrange);
  arrange();
  // Before the button's own action, which may open another dialog.
  for (const id of Object.keys(PLACES)) byID(id).addEventListener('click', () => byID('more-dialog').close(), true);
}
