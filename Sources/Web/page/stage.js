// The stage of a call: which tiles are shown. With two people the other one fills the window. With more: a grid with pages, with this device's own picture above
// it or in it. A shared screen or a pinned person is large, with the others beside it. layout.js says where each is.

import { Attention } from './attention.js';
import { byID, setText } from './dom.js';
import { FramesFirst } from './frames-first.js';
import { layout, pageOf, pageSize } from './layout.js';
import { labelFor } from './names.js';
import { OwnPicture } from './own-picture.js';
import { smallWindow } from './small-window.js';
import { Sounds } from './sounds.js';
import { Speaker } from './speaker.js';
import { t } from './texts.js';
import { Tile } from './tile.js';
import { isVideoFirst } from './video-first.js';

const WIDE = 16 / 9; // the shape of a picture that has not arrived

export class Stage {
  #root = byID('stage');
  #grid = byID('grid');
  #large = byID('large');
  #tiles = new Map();
  #own = new OwnPicture(byID('stage'), () => this.#arrange());
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
  #arranged = ''; // the shapes of the pictures by which the tiles are arranged

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
      reshaped: () => this.#shapes().signature !== this.#arranged && this.#arrange(),
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
    const mine = mode === 'large' || others.length === 0 ? undefined : own[0];
    const small = [...others, ...own].filter((tile) => !large.includes(tile) && tile !== mine);
    this.#root.dataset.mode = mode;
    byID('call').classList.toggle('filled', mode === 'pair' && byID('chat').hidden);
    byID('show-own').hidden = hidden.length === 0;
    const contents = this.#contents(mode, small, large, mine);
    const people = this.#showPage(mode, small, contents);
    const places = layout({ ...contents, people: people.length });
    const shown = mine ? [...people, mine] : people;
    this.#draw(all.filter((tile) => large.includes(tile) || shown.includes(tile) || tile.isInWindow));
    place(this.#large, large);
    place(this.#grid, shown);
    this.#own.attach(mine && !places.own ? mine.node : undefined);
    large.forEach((tile, index) => tile.stand(places.large[index]));
    people.forEach((tile, index) => tile.stand(places.people[index]));
    mine?.stand(places.own);
    this.#root.style.setProperty('--own-width', `${places.ownWidth}px`);
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

  /** The argument of `layout`. */
  #contents(mode, small, large, mine) {
    const { clientWidth: width, clientHeight: height } = this.#root;
    const shapes = this.#shapes();
    this.#arranged = shapes.signature;
    const isAwaited = mode === 'pair' && small[0].description.source === 'ringing' && Boolean(mine?.description.video);
    const own = mine && { shape: mine.shape ?? shapes.usual, corner: this.#own.corner };
    return { width, height, people: small.length, isFilled: mode === 'pair', isAwaited, shape: shapes.usual, large: large.map((tile) => tile.shape ?? WIDE), own };
  }

  /** The usual shape of the others' pictures, and a text that differs when the tiles are to be arranged again. */
  #shapes() {
    const tiles = [...this.#tiles.values()];
    const cameras = tiles.filter(({ description: { isOwn, source }, shape }) => shape && source === 'camera' && !isOwn).map(({ shape }) => shape);
    const usual = cameras.sort((one, other) => one - other)[cameras.length >> 1] ?? WIDE;
    const single = tiles.filter(({ description: { isOwn, source, key } }) => isOwn || source === 'screen' || key === this.#pinned).map(({ shape }) => shape);
    return { usual, signature: [usual, ...single].map((shape) => shape?.toFixed(2)).join() };
  }

  /** Beside a large tile the person who speaks comes before the others. */
  #showPage(mode, small, contents) {
    if (mode === 'pair') return this.#showPages(small, 0, 1);
    const size = pageSize(contents);
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

/** Puts the nodes of `tiles` into `list`, in this order; a node that is already in its place is not moved, because a moved video stops. */
function place(list, tiles) {
  const nodes = tiles.map(({ node }) => node);
  for (const node of [...list.children]) if (!nodes.includes(node)) node.remove();
  nodes.forEach((node, index) => {
    if (list.children[index] !== node) list.insertBefore(node, list.children[index] ?? null);
  });
}
