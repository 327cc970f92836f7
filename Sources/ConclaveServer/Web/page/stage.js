// The stage of a call: a tile for each person and each shared screen, laid out to be as large as they can.

import { avatar, element, icon, nameOf, setInitials, setText } from './dom.js';
import { labelFor } from './names.js';

const GAP = 12; // as in style.css
const WIDEST = 16 / 9;
const NARROWEST = 3 / 4;

/** The tile size for `count` tiles in a box: the number of columns that makes them largest. */
export function layout(count, width, height) {
  let best = { area: 0, width, height };
  for (let columns = 1; columns <= count; columns += 1) {
    const rows = Math.ceil(count / columns);
    const cell = { width: (width - GAP * (columns - 1)) / columns, height: (height - GAP * (rows - 1)) / rows };
    const tileWidth = Math.min(cell.width, cell.height * WIDEST);
    const tileHeight = Math.min(cell.height, tileWidth / NARROWEST);
    // A face wants no narrow strip: what is far from 4:3 counts less.
    const fit = Math.min(1, tileWidth / tileHeight / (4 / 3), 4 / 3 / (tileWidth / tileHeight));
    const area = tileWidth * tileHeight * (0.4 + 0.6 * fit);
    if (area > best.area) best = { area, width: Math.floor(tileWidth), height: Math.floor(tileHeight) };
  }
  return best;
}

const doubts = {
  stranger: 'Can hear, is not in the call',
  gone: 'Has left, may still hear',
  unlisted: 'Cannot hear you yet',
  'not-confirmed': 'Key not confirmed',
};

class Tile {
  #video = element('video', { autoplay: true, playsInline: true, muted: true });
  #avatar = avatar('');
  #name = element('span', { className: 'tile-name' });
  #state = element('span', { className: 'tile-state' });
  #muted = icon('microphone-off');
  #mutedText = element('span', { className: 'visually-hidden', textContent: 'microphone off' });

  constructor() {
    this.#video.setAttribute('muted', '');
    const caption = element('figcaption', {}, this.#muted, this.#mutedText, this.#name, this.#state);
    this.node = element('li', { className: 'tile' }, element('figure', {}, this.#avatar, this.#video, caption));
  }

  show({ source, member, participant, isOwn, isConnected, isHeld, isMuted, video, track, doubt }) {
    const name = nameOf(member);
    const label = labelFor(member.user);
    const { dataset, classList } = this.node;
    Object.assign(dataset, { source, user: member.user, video: video ? 'on' : 'off', muted: Boolean(isMuted) });
    if (participant) dataset.participant = participant;
    if (track) dataset.track = track;
    else delete dataset.track;
    dataset.doubt = doubt ?? '';
    classList.toggle('own', Boolean(isOwn));
    classList.toggle('away', source === 'camera' && !isConnected);
    setText(this.#name, source === 'screen' ? `${isOwn ? 'Your' : `${label}’s`} screen` : isOwn ? 'You' : label);
    const path = isHeld ? 'On hold' : isConnected ? doubts[doubt] : 'Connecting…';
    const state = { ringing: 'Ringing…', camera: path, listener: doubts[doubt], screen: video ? '' : 'Loading…' }[source] ?? '';
    setText(this.#state, state);
    this.#state.hidden = !state;
    this.#muted.toggleAttribute('hidden', !isMuted);
    this.#mutedText.hidden = !isMuted;
    setInitials(this.#avatar, name);
    // Behind a video too: that may take a moment to begin.
    this.#avatar.hidden = source === 'screen' || (Boolean(video) && !isConnected);
    this.#avatar.classList.toggle('pulsing', source === 'ringing');
    this.#attach(video);
  }

  #attach(track) {
    const now = this.#video.srcObject?.getVideoTracks()[0];
    this.#video.hidden = !track;
    if (now === track) return;
    this.#video.srcObject = track ? new MediaStream([track]) : null;
    if (track) this.#video.play().catch(() => {});
  }

  /** After the tile is in the page: a video that moves there stops otherwise. */
  resume() {
    if (this.#video.srcObject && this.#video.paused) this.#video.play().catch(() => {});
  }
}

export class Stage {
  #root;
  #grid;
  #screens;
  #sound;
  #tiles = new Map();
  #sounds = new Map();

  constructor({ root, grid, screens, sound }) {
    this.#root = root;
    this.#grid = grid;
    this.#screens = screens;
    this.#sound = sound;
    new ResizeObserver(() => this.#arrange()).observe(root);
  }

  show(call) {
    const wanted = call.tiles();
    const gone = new Set(this.#tiles.keys());
    for (const description of wanted) {
      gone.delete(description.key);
      let tile = this.#tiles.get(description.key);
      const place = description.source === 'screen' ? this.#screens : this.#grid;
      if (!tile) {
        tile = new Tile();
        this.#tiles.set(description.key, tile);
        place.append(tile.node);
      }
      tile.show(description);
      tile.resume();
    }
    for (const key of gone) {
      this.#tiles.get(key).node.remove();
      this.#tiles.delete(key);
    }
    this.#arrange();
    this.#play(call.audioTracks);
    this.showSpeaking(call.speaking);
  }

  showSpeaking(speaking) {
    for (const { node } of this.#tiles.values()) {
      const isSpeaking = node.dataset.source === 'camera' && speaking.has(Number(node.dataset.participant));
      node.classList.toggle('speaking', isSpeaking);
    }
  }

  clear() {
    for (const { node } of this.#tiles.values()) node.remove();
    this.#tiles.clear();
    this.#play([]);
  }

  #play(tracks) {
    for (const track of tracks) {
      if (this.#sounds.has(track)) continue;
      const audio = element('audio', { autoplay: true, srcObject: new MediaStream([track]) });
      this.#sounds.set(track, audio);
      this.#sound.append(audio);
      audio.play().catch(() => {});
    }
    for (const [track, audio] of this.#sounds) {
      if (tracks.includes(track)) continue;
      audio.srcObject = null;
      audio.remove();
      this.#sounds.delete(track);
    }
  }

  #arrange() {
    const count = this.#grid.childElementCount;
    this.#root.classList.toggle('has-screen', this.#screens.childElementCount > 0);
    if (count === 0) return;
    const { width, height } = layout(count, this.#root.clientWidth, this.#root.clientHeight);
    this.#grid.style.setProperty('--tile-width', `${width}px`);
    this.#grid.style.setProperty('--tile-height', `${height}px`);
  }
}
