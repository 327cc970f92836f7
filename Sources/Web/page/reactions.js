// Reactions: beside the raised hand, or in "More" where there is no room for another button.

import { byID, element } from './dom.js';
import { t } from './texts.js';

const REACTIONS = { '👍': 'reaction.thumbs-up', '👏': 'reaction.applause', '❤️': 'reaction.heart', '😂': 'reaction.laughing', '🎉': 'reaction.party' };

const roomy = matchMedia('(min-width: 900px)');

function arrange() {
  const isInBar = roomy.matches;
  if (isInBar) byID('show-reactions').after(byID('reactions'));
  else byID('more-menu').before(byID('reactions'));
  byID('show-reactions').hidden = !isInBar;
  setOpen(false);
  byID('reactions').hidden = isInBar; // "More" shows them with its other buttons
}

function setOpen(isOpen) {
  byID('reactions').hidden = !isOpen;
  byID('show-reactions').ariaExpanded = isOpen;
}

/** In the bar they are closed again, and the keyboard is back at their button. */
function close() {
  if (!roomy.matches) return byID('more-dialog').close();
  const hadFocus = byID('reactions').contains(document.activeElement);
  setOpen(false);
  if (hadFocus) byID('show-reactions').focus();
  return undefined;
}

/** `send(reaction)` sends one to everybody in the call. */
export function beginReactions(send) {
  byID('reactions').append(
    ...Object.entries(REACTIONS).map(([reaction, key]) => {
      const button = element('button', { type: 'button', textContent: reaction, ariaLabel: t(key), title: t(key) });
      button.addEventListener('click', () => {
        close();
        send(reaction);
      });
      return button;
    }),
  );
  byID('show-reactions').addEventListener('click', () => setOpen(byID('reactions').hidden));
  byID('reactions').addEventListener('keydown', ({ key }) => key === 'Escape' && roomy.matches && close());
  document.addEventListener('view', arrange);
  roomy.addEventListener('change', arrange);
  arrange();
}
