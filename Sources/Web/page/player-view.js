// The player of a recording: a dialog with one clock for sound and picture, a time line with its gaps, speed, volume, and captions where there are some.

import { byID, element, plainLine, setIcon, setText } from './dom.js';
import { LiveLine } from './live-line.js';
import { labelFor } from './names.js';
import { PlayerPeople } from './player-people.js';
import { shortTime, spokenTime, wordsForGap, wordsForUnreadable, wordsForWorth } from './recordings-words.js';
import { locale, t } from './texts.js';

const DRAWN_EVERY_MS = 200;
const STEP_MS = 5_000;
const VOLUME_STEP = 0.1;
const WAITING_MS = 3_000; // before the person is told that it waits
const MAX_CAPTION = 240; // characters

/**
 * The effect of a key: `{seek}` in ms, `{volume}` in steps, `{speed}` in steps, or the id of a button; undefined for another key, or where it has its own meaning. The time
 * line of a page from right to left runs that way, too.
 * @param {{ key: string, ctrlKey?: boolean, metaKey?: boolean, altKey?: boolean, target?: any }} event
 * @returns {{ seek?: number, volume?: number, speed?: number, button?: string } | undefined}
 */
export function deedOf({ key, ctrlKey = false, metaKey = false, altKey = false, target = undefined }, isRightToLeft = false) {
  if (ctrlKey || metaKey || altKey) return undefined;
  const isList = target?.tagName === 'SELECT';
  if (key === ' ') return isList || target?.tagName === 'BUTTON' ? undefined : { button: 'player-play' };
  if (key === 'ArrowLeft' || key === 'ArrowRight') return isList ? undefined : { seek: (key === 'ArrowLeft') === isRightToLeft ? STEP_MS : -STEP_MS };
  if (key === 'ArrowUp' || key === 'ArrowDown') return isList ? undefined : { volume: key === 'ArrowUp' ? 1 : -1 };
  if (key === ',' || key === '.') return { speed: key === '.' ? 1 : -1 };
  const button = { m: 'player-mute', f: 'player-full' }[key.toLowerCase()];
  return button && { button };
}

/**
 * The captions of a recording, from the contents of its notes: `{from, to, text}`, in ms since its start. Another client has written them, so they are hostile.
 * @param {Iterable<any>} notes
 */
export function captionsIn(notes) {
  const isTime = (value) => Number.isFinite(value) && value >= 0;
  const fits = ({ kind, from, to, text }) => kind === 'caption' && isTime(from) && isTime(to) && from < to && typeof text === 'string';
  const plain = ({ from, to, text }) => ({ from, to, text: [...plainLine(text)].slice(0, MAX_CAPTION).join('') });
  return [...notes].filter(fits).map(plain).sort((one, other) => one.from - other.from);
}

/** Where gaps stand on a line of `length` ms that begins at `start`, µs: `{from, width}` in percent, `{why}`. */
export function bandsOf(gaps, start, length) {
  const share = (time) => Math.min(100, Math.max(0, ((time - start) / 1_000 / length) * 100));
  return length > 0 ? gaps.map(({ from, to, why }) => ({ why, from: share(from), width: share(to) - share(from) })) : [];
}

export class PlayerView {
  #library;
  #player;
  #output;
  #opened; // of `load`
  #call;
  #line = new LiveLine();
  #captions = [];
  #people; // of a call
  #timer;
  #turn = 0;
  #waitingSince;
  #volume = 1;
  #isMuted = false;

  /** `library` has `Player`, `WebOutput`, `SPEEDS` and `playingObstacle`. */
  constructor(library) {
    this.#library = library;
    const speeds = library.SPEEDS.map((speed) => element('option', { value: String(speed), textContent: `${speed.toLocaleString(locale)}×` }));
    byID('player-speed').append(...speeds);
    const on = (id, name, action) => byID(id).addEventListener(name, action);
    on('player-play', 'click', () => this.#toggle());
    on('player-mute', 'click', () => this.#hear({ isMuted: !this.#isMuted }));
    on('player-full', 'click', () => this.#fill());
    on('player-speed', 'change', () => this.#setSpeed(Number(byID('player-speed').value)));
    on('player-time', 'input', () => this.#player?.seek(this.#start + Number(byID('player-time').value) * 1_000));
    on('player-volume', 'input', () => this.#hear({ volume: Number(byID('player-volume').value), isMuted: false }));
    on('player-dialog', 'keydown', (event) => this.#key(event));
    on('player-dialog', 'close', () => this.#end());
    document.addEventListener('visibilitychange', () => this.#veil());
    // A call needs the sound.
    document.addEventListener('view', () => !byID('call').hidden && this.close());
  }

  /**
   * Opens a recording and plays it. `load()` resolves with what `Recordings.open` and `openDraft` do; `name` is who has sent it, as the server says; `title` is of
   * one's own. `download()` is for browsers that cannot play it; `call(user)` rings the person who has recorded it. Resolves with whether it was opened.
   * @param {{ name: string, title?: string, load: () => Promise<any>, download: () => unknown, call?: (user: string) => unknown }} options
   */
  async open({ name, title = undefined, load, download, call = undefined }) {
    this.#end();
    const turn = this.#turn;
    this.#clear(title ?? t('player.from', { name }));
    byID('player-download').onclick = download;
    this.#veil();
    if (!byID('player-dialog').open) byID('player-dialog').showModal();
    const obstacle = this.#library.playingObstacle();
    try {
      // Without a decoder, too: it is opened, and its signature is checked.
      const opened = await load();
      if (turn !== this.#turn) {
        opened.live?.close();
        return false;
      }
      this.#opened = opened;
      const { reader } = opened;
      const isOfCall = this.kind === 'call';
      this.#call = call && this.kind === 'own' ? () => (this.close(), call(reader.statement.by.user)) : undefined;
      if (reader && (isOfCall || !title)) setText(byID('player-title'), t(isOfCall ? 'player.call' : 'player.from', { name: labelFor(reader.statement.by.user) }));
      if (isOfCall && !opened.reels.some(({ source }) => source.length > 0)) setText(byID('player-problem'), t('player.nobody'));
      else if (obstacle) this.#cannotPlay();
      else this.#begin(opened);
      return true;
    } catch (error) {
      if (turn === this.#turn) setText(byID('player-problem'), wordsForUnreadable(error, name));
      return false;
    }
  }

  /** The kind of what is open, as its device has signed it. */
  get kind() {
    return this.#opened?.reader?.statement.kind;
  }

  /** µs */
  get #start() {
    return this.#player?.start ?? 0;
  }

  close() {
    if (byID('player-dialog').open) byID('player-dialog').close();
  }

  /** Somebody rings. */
  pause() {
    this.#player?.pause();
  }

  #begin({ reels, notes = new Map() }) {
    const { Player, WebOutput } = this.#library;
    this.#people = this.kind === 'call' ? new PlayerPeople(byID('player-people'), reels) : undefined;
    byID('player-people').hidden = !this.#people;
    this.#captions = captionsIn(notes.values());
    this.#output = new WebOutput({ draw: (picture, place) => (this.#people ? this.#people.draw(picture, place) : this.#drawPicture(picture)), failed: () => this.#fail() });
    this.#hear({});
    const player = new Player(reels.map(({ source }) => source), this.#output);
    this.#player = player;
    player.addEventListener('change', () => player === this.#player && this.draw());
    this.#timer = setInterval(() => this.draw(), DRAWN_EVERY_MS);
    byID('player-controls').hidden = false;
    this.#line.begin(this.#opened, player, this.#call);
    this.#play();
    byID('player-play').focus();
  }

  #play() {
    this.#output.unlock();
    this.#player.play();
  }

  #toggle() {
    if (['playing', 'waiting'].includes(this.#player?.state)) this.#player.pause();
    else if (this.#player) this.#play();
  }

  #setSpeed(speed) {
    if (this.#player) this.#player.speed = speed;
  }

  #hear({ volume = this.#volume, isMuted = this.#isMuted }) {
    [this.#volume, this.#isMuted] = [Math.min(1, Math.max(0, volume)), isMuted];
    if (this.#output) this.#output.volume = isMuted ? 0 : this.#volume;
    byID('player-volume').value = isMuted ? 0 : this.#volume;
    setIcon(byID('player-mute'), isMuted ? 'sound-off' : 'sound');
    byID('player-mute').ariaLabel = t(isMuted ? 'player.unmute' : 'player.mute');
  }

  #fill() {
    if (document.fullscreenElement) document.exitFullscreen();
    else byID('player-stage').requestFullscreen?.().catch(() => {}); // a browser may refuse
  }

  #key(event) {
    const deed = deedOf(event, document.documentElement.dir === 'rtl');
    if (!deed || !this.#player || event.defaultPrevented) return;
    event.preventDefault();
    if (deed.button) byID(deed.button).click();
    if (deed.seek) this.#player.seek(this.#player.position + deed.seek * 1_000);
    if (deed.volume) this.#hear({ volume: this.#volume + deed.volume * VOLUME_STEP, isMuted: false });
    if (deed.speed) {
      const { SPEEDS } = this.#library;
      const place = SPEEDS.indexOf(this.#player.speed) + deed.speed;
      this.#setSpeed(SPEEDS[Math.min(SPEEDS.length - 1, Math.max(0, place))]);
    }
    this.draw();
  }

  /** Shows where it is. Runs by itself. */
  draw() {
    const player = this.#player;
    if (!player) return;
    const { state, length, gap, speed } = player;
    const at = (player.position - this.#start) / 1_000;
    const isRunning = state === 'playing' || state === 'waiting';
    setIcon(byID('player-play'), isRunning ? 'pause' : 'play');
    byID('player-play').ariaLabel = t(isRunning ? 'message.pause' : 'recordings.play');
    const line = byID('player-time');
    line.max = Math.max(1, Math.round(length));
    line.value = Math.round(at);
    line.setAttribute('aria-valuetext', t('player.at', { time: spokenTime(at), length: spokenTime(length) }));
    setText(byID('player-clock'), `${shortTime(at)} / ${shortTime(length)}`);
    byID('player-speed').value = String(speed);
    setText(byID('player-gap'), this.#note(state, gap));
    setText(byID('player-caption'), this.#captions.find(({ from, to }) => from <= at && at < to)?.text ?? '');
    setText(byID('player-worth'), this.#worth());
    this.#line.draw();
    this.#drawGaps(bandsOf(player.gaps, this.#start, length));
  }

  /** A recording that is being made has no end yet. */
  #worth() {
    const { reader, reels, live } = this.#opened;
    const states = reels.map(({ reel }) => reel.state);
    return !reader || (live?.isRunning && states.every((state) => state === 'not-finished')) ? '' : wordsForWorth(states);
  }

  /** The words about the place. */
  #note(state, gap) {
    const isAtNewest = this.#opened.live?.isRunning && this.#player.behind === 0;
    this.#waitingSince = state === 'waiting' && !isAtNewest ? (this.#waitingSince ?? performance.now()) : undefined;
    if (gap && this.#people) return t('gap.of', { name: labelFor(this.#opened.reels[gap.lane].user), words: wordsForGap(gap) });
    if (gap) return wordsForGap(gap);
    return this.#waitingSince !== undefined && performance.now() - this.#waitingSince > WAITING_MS ? t('player.waiting') : '';
  }

  #drawGaps(bands) {
    const list = byID('player-gaps');
    const look = JSON.stringify(bands);
    if (list.dataset.look === look) return;
    list.dataset.look = look;
    list.replaceChildren(...bands.map(({ from, width, why }) => {
      const band = element('span', { title: wordsForGap({ why }) });
      Object.assign(band.style, { insetInlineStart: `${from}%`, width: `${width}%` });
      return band;
    }));
  }

  #drawPicture(picture) {
    const canvas = byID('player-picture');
    canvas.hidden = !picture;
    byID('player-off').hidden = Boolean(picture);
    if (!picture) return;
    const { displayWidth, displayHeight } = picture;
    if (canvas.width !== displayWidth || canvas.height !== displayHeight) Object.assign(canvas, { width: displayWidth, height: displayHeight });
    canvas.getContext('2d').drawImage(picture, 0, 0, displayWidth, displayHeight);
  }

  #fail() {
    this.#player?.pause();
    this.#cannotPlay();
  }

  #cannotPlay() {
    byID('player-controls').hidden = true;
    setText(byID('player-problem'), t('player.no-decoder'));
    byID('player-download').hidden = false;
  }

  /** Nothing is to be seen while the page is in the background: another app may show a picture of it. */
  #veil() {
    byID('player-body').hidden = document.hidden;
  }

  #clear(title) {
    setText(byID('player-title'), title);
    for (const id of ['player-problem', 'player-gap', 'player-caption', 'player-worth', 'player-clock']) setText(byID(id), '');
    byID('player-controls').hidden = true;
    byID('player-download').hidden = true;
    byID('player-people').replaceChildren();
    byID('player-people').hidden = true;
    this.#drawPicture(undefined);
    this.#drawGaps([]);
  }

  #end() {
    this.#turn += 1;
    clearInterval(this.#timer);
    this.#player?.close();
    this.#player = undefined;
    this.#output = undefined;
    this.#line.end();
    this.#opened?.live?.close();
    this.#opened = undefined;
    this.#people = undefined;
    this.#waitingSince = undefined;
  }
}
