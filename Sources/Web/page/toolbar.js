// The bar of a call. On a narrow page rarely used buttons are in "More", so that the bar is one row of buttons that a thumb can hit. For people who want it so, it
// is one large button, with which they hang up.

import { byID, setText } from './dom.js';
import { saveSetting, savedSetting } from './session.js';
import { t } from './texts.js';

const narrow = matchMedia('(max-width: 640px)');
const PLACES = { 'toggle-hand': 'show-reactions', 'add-people': 'show-more' }; // each button, and the button that it precedes in the bar

function arrange() {
  const first = byID('toggle-hold');
  for (const [id, next] of Object.entries(PLACES)) (narrow.matches ? first : byID(next)).before(byID(id));
  if (!narrow.matches && byID('more-dialog').open) byID('more-dialog').close();
}

/** Shows only the button to hang up, if the person has chosen so and not opened all controls. */
function simplify(isOpen = false) {
  const isChosen = byID('hang-up-only').checked;
  const isSimple = isChosen && !isOpen;
  byID('call').classList.toggle('simple', isSimple);
  byID('all-controls').hidden = !isChosen;
  byID('all-controls').ariaExpanded = !isSimple;
  setText(byID('all-controls'), t(isSimple ? 'tool.all' : 'tool.fewer'));
  setText(byID('leave').querySelector('.tool-label'), t(isSimple ? 'tool.hang-up' : 'tool.leave'));
}

export function beginToolbar() {
  narrow.addEventListener('change', arrange);
  arrange();
  // Before the button's own action, which may open another dialog.
  for (const id of Object.keys(PLACES)) byID(id).addEventListener('click', () => byID('more-dialog').close(), true);
  byID('hang-up-only').checked = savedSetting('hang-up-only') ?? false;
  byID('hang-up-only').addEventListener('change', () => {
    saveSetting('hang-up-only', byID('hang-up-only').checked);
    simplify();
  });
  byID('all-controls').addEventListener('click', () => simplify(byID('call').classList.contains('simple')));
  document.addEventListener('view', () => simplify()); // each call begins with the one button
  simplify();
}
