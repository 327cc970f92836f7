// The people of a call's recording in the player: a tile for each reel, with the pictures of its camera and of its screen.

import { avatar, element } from './dom.js';
import { labelFor, nameFor } from './names.js';

export class PlayerPeople {
  #tiles;

  /** `reels` are those of `Recordings.open`, `list` is the element for their tiles. */
  constructor(list, reels) {
    this.#tiles = reels.map(({ user }) => {
      const pictures = new Map(['camera', 'screen'].map((source) => [source, element('canvas', { hidden: true, ariaHidden: 'true' })]));
      const face = avatar(nameFor(user), user);
      const node = element('li', {}, face, ...pictures.values(), element('span', { className: 'player-name', textContent: labelFor(user) }));
      node.dataset.user = user;
      return { node, face, pictures };
    });
    list.replaceChildren(...this.#tiles.map(({ node }) => node));
  }

  /** Shows a picture of a source of the reel `lane`, or that there is none. A screen is before a camera. */
  draw(picture, { lane, source }) {
    const { node, face, pictures } = this.#tiles[lane];
    const canvas = pictures.get(source);
    if (!canvas) return;
    canvas.hidden = !picture;
    const isSeen = [...pictures.values()].some(({ hidden }) => !hidden);
    face.hidden = isSeen;
    node.dataset.picture = isSeen ? 'on' : 'off';
    if (!picture) return;
    const { displayWidth, displayHeight } = picture;
    if (canvas.width !== displayWidth || canvas.height !== displayHeight) Object.assign(canvas, { width: displayWidth, height: displayHeight });
    canvas.getContext('2d').drawImage(picture, 0, 0, displayWidth, displayHeight);
  }
}
