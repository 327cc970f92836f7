// The stage of a call: which tiles are shown, where, and how large. With two people the other one fills the window. With more: a grid of 16:9 tiles with pages.
// This device's own picture is small above them. A shared screen or a pinned person is large, with the others beside it.

import { Attention } from './attention.js';
import { byID, setText } from './dom.js';
import { FramesFirst } from './frames-first.js';
import { GAP, LEAST_WIDTH, layout, pageOf, pageSize } from './layout.js';
import { labelFor } from './names.js';
import { OwnPicture } from './own-picture.js';
import { smallWindow } from './small-window.js';
import { Sounds } from './sounds.js';
import { Speaker } from './speaker.js';
import { t } from './texts.js';
import { Tile } from './tile.js';
import { isVideoFirst } from './video-first.js';

export class Stage {
  #root = byID('stage');
  #grid = byID('grid');
  #large = byID('large');
  #tiles = new Map();
  #own = new OwnPicture(byID('stage'));
  #sounds = new Sounds(byID('sound'), () => this.#blockingChanged());
  #attention = new Attention();
  #speaker = new Speaker();
  #framesFirst = new FramesFirst();
  #call;
  #hands;
  #verified = new Set(); // participants with a device whose code was compared
  #compare;
  #failure; // of a tile that is on the page but could not be drawn
  #pinned; // the key of a tile
  #page = 0;

  /** `compare()` opens the call code. */
  constructor({ compare }) {
    this.#compare = compare;
    new ResizeObserver(() => this.#arrange()).observe(this.#root);
    document.addEventListener('fullscreenchange', () => this.#arrange());
    for (const name of ['enterpictureinpicture', 'leavepictureinpicture']) this.#root.addEventListener(name, () => this.#arrange());
    this.#attention.addEventListener('change', () => this.#arrange());
    smallWindow.addEventListener('change', () => this.#arrange());
    new MutationObserver(() => this.#arrange()).observe(byID('chat'), { attributeFilter: ['hidden'] });
    byID('hear').addEventListener('click', () => this.#retry());
    byID('page-before').addEventListener('click', () => this.#turn(-1));
    byID('page-after').addEventListener('click', () => this.#turn(1));
    byID('show-own').addEventListener('click', () => this.#hideOwn(false));
  }

  /** Draws `call`; `hands` are its raised hands. */
  show(call, hands) {
    this.#call = call;
    this.#hands = hands;
    const wanted = call.tiles();
    this.#verified = new Set(call.devices.filter(({ level, problem }) => level === 'verified' && !problem).map(({ participant }) => participant));
    hands.keep(new Set(wanted.map(({ participant }) => participant)));
    const gone = new Set(this.#tiles.keys());
    for (const description of wanted) {
      gone.delete(description.key);
      this.#showTile(description);
    }
    for (const key of gone) this.#remove(key);
    this.#failure = undefined;
    this.#arrange();
    if (this.#failure) throw this.#failure;
    this.#sounds.play(call.audioTracks);
    this.showSpeaking(call.speaking);
  }

  #showTile(description) {
    const { key, participant, source } = description;
    const tile = this.#tiles.get(key) ?? this.#add(description);
    tile.show(description, {
      isPinned: key === this.#pinned,
      isHandRaised: source === 'camera' && this.#hands.isRaised(participant),
      isSilent: this.#sounds.isBlocked,
      isVerified: source === 'camera' && this.#verified.has(participant),
    });
  }

  showSpeaking(speaking) {
    for (const tile of this.#tiles.values()) tile.setSpeaking(tile.description.source === 'camera' && speaking.has(tile.description.participant));
    const others = new Set([...speaking].filter((participant) => participant !== this.#call?.participant));
    const now = performance.now();
    if (this.#speaker.update(now, others) && (this.#root.dataset.mode === 'large' || smallWindow.isOpen) && !isVideoFirst()) this.#arrange();
    const named = this.#cameraOf(this.#speaker.toSay(now));
    if (named) setText(byID('speaker'), t('call.speaking', { name: labelFor(named.description.member.user) }));
  }

  /** Shows a reaction on the tile of its sender. */
  react(participant, reaction) {
    this.#cameraOf(participant)?.react(reaction);
  }

  /** Plays voices through this output device. */
  chooseSpeaker(id) {
    return this.#sounds.choose(id);
  }

  clear() {
    this.#call = undefined; // first: nothing of it is drawn again
    for (const key of [...this.#tiles.keys()]) this.#remove(key);
    this.#sounds.play([]);
    this.#pinned = undefined;
    this.#page = 0;
    this.#speaker = new Speaker();
    this.#own.isHidden = false;
    this.#own.attach(undefined);
    byID('call').classList.remove('filled', 'idle');
    setText(byID('speaker'), '');
  }

  #cameraOf(participant) {
    return participant === undefined ? undefined : [...this.#tiles.values()].find(({ description }) => description.source === 'camera' && description.participant === participant);
  }

  #add(description) {
    const { key } = description;
    const tile = new Tile({
      pin: () => this.#pin(key),
      compare: this.#compare,
      blocked: () => this.#blockingChanged(),
      looked: () => this.#arrange(),
      move: () => this.#own.move(),
      hide: () => this.#hideOwn(true),
    });
    tile.description = description;
    this.#tiles.set(key, tile);
    return tile;
  }

  #remove(key) {
    const tile = this.#tiles.get(key);
    tile.remove();
    this.#tiles.delete(key);
    if (tile.isBlocked) this.#blockingChanged();
    if (key === this.#pinned) this.#pinned = undefined;
  }

  #pin(key) {
    this.#pinned = key === this.#pinned ? undefined : key;
    this.#redraw();
  }

  #hideOwn(isHidden) {
    this.#own.isHidden = isHidden;
    this.#redraw();
    if (isHidden) byID('show-own').focus();
  }

  #turn(by) {
    this.#page += by;
    this.#arrange();
  }

  #redraw() {
    if (this.#call) this.show(this.#call, this.#hands);
  }

  /** The person has pressed something: the browser may play now. */
  #retry() {
    for (const tile of this.#tiles.values()) tile.resume();
    return this.#sounds.retry();
  }

  /** Sound that the browser blocks is played after a tap. */
  #blockingChanged() {
    const { isBlocked } = this.#sounds;
    byID('hear').hidden = !isBlocked && ![...this.#tiles.values()].some((tile) => tile.isBlocked);
    setText(byID('hear-text'), t(isBlocked ? 'call.hear' : 'call.show'));
    this.#redraw();
  }

  /** This device's own picture, or that it is hidden, and all other tiles. */
  #divided() {
    const all = [...this.#tiles.values()];
    const own = all.filter(({ description: { isOwn, source } }) => isOwn && source === 'camera');
    return { others: all.filter((tile) => !own.includes(tile)), own: this.#own.isHidden ? [] : own, hidden: this.#own.isHidden ? own : [] };
  }

  #arrange() {
    const { others, own, hidden } = this.#divided();
    const all = [...others, ...own];
    const screens = others.filter(({ description }) => description.source === 'screen');
    const pinned = this.#tiles.get(this.#pinned);
    const large = largeOf(screens, pinned, isVideoFirst());
    const mode = large.length > 0 ? 'large' : others.length === 1 ? 'pair' : 'grid';
    const floating = mode === 'large' || others.length === 0 ? undefined : own[0];
    const small = [...others, ...own].filter((tile) => !large.includes(tile) && tile !== floating);
    this.#root.dataset.mode = mode;
    byID('call').classList.toggle('filled', mode === 'pair' && byID('chat').hidden);
    byID('show-own').hidden = hidden.length === 0;
    const { width, height } = this.#room(mode);
    const paged = this.#showPage(mode, small, width, height);
    const shown = floating ? [...paged, floating] : paged;
    this.#draw(all.filter((tile) => large.includes(tile) || shown.includes(tile) || tile.isInWindow));
    place(this.#large, large);
    place(this.#grid, shown);
    this.#own.attach(floating?.node);
    if (mode !== 'pair') this.#size(mode, paged.length, width, height);
    for (const tile of [...large, ...shown]) tile.resume();
    smallWindow.show(this.#descriptions, this.#leads);
    this.#tellWatched([...large, ...shown]);
  }

  /** A tile that cannot be drawn does not prevent others from being drawn. */
  #draw(tiles) {
    for (const tile of tiles) {
      try {
        tile.draw();
      } catch (error) {
        this.#failure ??= error;
      }
    }
  }

  /** The room for the tiles that are not large; beside a large one, the style sheet says how much. */
  #room(mode) {
    const { clientWidth, clientHeight } = mode === 'large' ? this.#grid : this.#root;
    return { width: clientWidth, height: clientHeight };
  }

  /** Beside a large tile the person who speaks comes before the others. */
  #showPage(mode, small, width, height) {
    if (mode === 'pair') return this.#showPages(small, 0, 1);
    const size = mode === 'large' ? Math.max(1, sideCount(width, height)) : pageSize(width, height);
    const speaker = mode === 'large' ? this.#cameraOf(this.#speaker.current) : undefined;
    const leads = leadsOf(small, size, { speaker, isVideoFirst: isVideoFirst(), isRaised: this.#leads.isRaised });
    const { items, number, pages } = pageOf(inOrder(small, leads, size), size, this.#page);
    return this.#showPages(items, number, pages);
  }

  /** All tiles, without one's own picture if that is hidden. */
  get #descriptions() {
    const all = [...this.#tiles.values()].map(({ description }) => description);
    return this.#own.isHidden ? all.filter(({ isOwn, source }) => !isOwn || source !== 'camera') : all;
  }

  /** The people who matter most now: the key of the pinned tile, the participant who speaks, and whether a participant's hand is raised. */
  get #leads() {
    return { pinned: this.#pinned, speaker: this.#speaker.current, isRaised: (participant) => Boolean(this.#hands?.isRaised(participant)) };
  }

  #showPages(items, number, pages) {
    this.#page = number;
    byID('pages').hidden = pages < 2;
    setText(byID('page-number'), pages < 2 ? '' : t('pages.number', { number: number + 1, pages }));
    byID('page-before').disabled = number === 0;
    byID('page-after').disabled = number === pages - 1;
    return items;
  }

  #size(mode, count, width, height) {
    if (count === 0) return;
    const tile = mode === 'large' ? sideTile(width, height) : layout(count, width, height);
    this.#grid.style.setProperty('--tile-width', `${tile.width}px`);
    this.#grid.style.setProperty('--tile-height', `${tile.height}px`);
  }

  /** Videos that nobody looks at need not be sent, and none larger than it is shown. */
  #tellWatched(tiles) {
    const { isAway } = this.#attention;
    const shown = tiles.filter(({ description, isInWindow }) => description.track && !description.isOwn && (!isAway || isInWindow));
    const heights = new Map(shown.map((tile) => [tile.description.track, tile.pixels]));
    for (const [track, height] of smallWindow.heights) heights.set(track, Math.max(height, heights.get(track) ?? 0));
    const { heights: wished, priorities } = isVideoFirst() ? this.#framesFirst.wishesOf(this.#descriptions, heights, { ...this.#leads, now: performance.now() }) : { heights, priorities: undefined };
    this.#call?.watch(wished, priorities).catch(() => {}); // sent again with the next change
  }
}

/** The tiles that are large: shared screens, or the pinned tile. Where video comes first that stays large beside a screen: it may sign what is said. */
export function largeOf(screens, pinned, isVideoFirst) {
  if (!pinned || (screens.length > 0 && !isVideoFirst)) return screens;
  return [pinned, ...screens.filter((screen) => screen !== pinned)];
}

/**
 * The tiles that come first on the pages of `size` tiles: who speaks, if that one is given. Where video comes first nobody moves by speaking. A raised hand
 * brings its owner to the first page if there are several.
 */
export function leadsOf(tiles, size, { speaker, isVideoFirst, isRaised }) {
  if (!isVideoFirst) return speaker ? [speaker] : [];
  return tiles.length > size ? tiles.filter(({ description: { isOwn, source, participant } }) => !isOwn && source === 'camera' && isRaised(participant)) : [];
}

/**
 * `tiles` in the order of the pages, of `size` tiles each. Devices that hear but are not in the call, or that nobody let in, come first, so that they are seen
 * without turning a page; a device that has left keeps its place if all are on one page. The tiles `leads` follow; this device's own comes last.
 */
export function inOrder(tiles, leads, size) {
  const rank = (tile) => {
    const { source, doubt, isOwn } = tile.description;
    if (doubt === 'stranger' || doubt === 'uninvited' || (source === 'listener' && tiles.length > size)) return 0;
    if (leads.includes(tile)) return 1;
    return isOwn && source === 'camera' ? 3 : 2;
  };
  return [...tiles].sort((one, other) => rank(one) - rank(other));
}

/** A tile of a column beside what is large, or of a row below it, which has as many as show a face. */
function sideTile(room, height) {
  const columns = Math.max(1, Math.floor((room + GAP) / (LEAST_WIDTH + GAP)));
  const across = room > height ? (room - GAP * (columns - 1)) / columns : room;
  const width = Math.floor(Math.min(across, (height * 16) / 9));
  return { width, height: Math.floor((width * 9) / 16) };
}

function sideCount(width, height) {
  const tile = sideTile(width, height);
  return Math.max(Math.floor((width + GAP) / (tile.width + GAP)), Math.floor((height + GAP) / (tile.height + GAP)));
}

/** Puts the nodes of `tiles` into `list`, in this order; a node that is already in its place is not moved, because a moved video stops. */
function place(list, tiles) {
  const nodes = tiles.map(({ node }) => node);
  for (const node of [...list.children]) if (!nodes.includes(node)) node.remove();
  nodes.forEach((node, index) => {
    if (list.children[index] !== node) list.insertBefore(node, list.children[index] ?? null);
  });
}
