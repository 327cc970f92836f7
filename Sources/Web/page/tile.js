// One tile of the stage: a person or a shared screen, with its state in words and its actions. Its elements are created when it is first on a shown page,
// elements that few tiles need when this one does: a call may have hundreds of tiles.

import { wordsForAdmission } from './admission-words.js';
import { avatar, element, icon, setIcon, setInitials, setText } from './dom.js';
import { labelFor, nameFor } from './names.js';
import { ScreenView } from './screen-view.js';
import { listNames, t } from './texts.js';

const LOADING_MS = 6_000; // a picture that has not arrived by then is explained

const COMPARED = ['untrusted', 'untrusted-hears', 'distrusting', 'not-confirmed']; // comparing the call code helps

function tool(name, action) {
  const button = element('button', { type: 'button', className: `tile-tool ${name}` }, icon(name));
  button.addEventListener('click', action);
  return button;
}

function setLabel(button, label) {
  if (button.ariaLabel === label) return;
  button.ariaLabel = label;
  button.title = label;
}

export class Tile {
  /** The values with which it was last shown. */
  description;
  /** Whether the browser does not play its video before the person has pressed something. */
  isBlocked = false;
  #actions;
  #options = { isPinned: false, isHandRaised: false, isSilent: false, isVerified: false };
  #isDrawn = false;
  #node;
  #video;
  #avatar;
  #name;
  #state;
  #sign; // of its state
  #admission;
  #muted;
  #mutedText;
  #hand;
  #recorded;
  #shield;
  #reaction;
  #compare;
  #pin;
  #tools;
  #full;
  #window;
  #view; // of somebody's screen
  #viewTools;
  #ownTools;
  #lackingSince;
  #shape; // of its picture, which has arrived

  /**
   * `pin()`, `compare()`, `move()` and `hide()` are called when a button is pressed, the last two on this device's own tile; `blocked()` after each change of
   * `isBlocked`, `looked()` when the person has chosen how large to see a screen, and `reshaped()` when its picture has another `shape`.
   */
  constructor(actions) {
    this.#actions = actions;
  }

  /** Its element. */
  get node() {
    if (!this.#node) this.#make();
    return this.#node;
  }

  #make() {
    const { pin, compare } = this.#actions;
    this.#avatar = avatar('');
    this.#reaction = element('span', { className: 'tile-reaction', ariaHidden: 'true' });
    this.#admission = element('span', { className: 'tile-admission' });
    this.#pin = tool('pin', pin);
    this.#tools = element('div', { className: 'tile-tools' }, this.#pin);
    this.#node = element('li', { className: 'tile', tabIndex: -1 }, element('figure', {}, this.#avatar, this.#reaction, this.#makeCaption(compare)), this.#admission, this.#tools);
    // From now on it shows this: `isPinned` and `isSilent` (the browser blocks sound) come from the page, the rest is described at `tilesOf` in the library.
    // `draw` displays it.
    this.#node.addEventListener('pointerup', ({ pointerType, target }) => {
      if (pointerType !== 'mouse' && !target.closest('button') && !this.#view?.isDragged) this.node.classList.toggle('touched');
    });
    this.#node.addEventListener('dblclick', ({ target }) => !target.closest('button') && this.#node.classList.toggle('whole'));
  }

  #makeCaption(compare) {
    this.#name = element('span', { className: 'tile-name' });
    this.#state = element('span', { className: 'tile-state' });
    this.#compare = element('button', { type: 'button', className: 'tile-action', textContent: t('tile.compare') });
    this.#compare.addEventListener('click', compare);
    return element('figcaption', {}, element('span', { className: 'tile-line' }, this.#name), this.#state, this.#compare);
  }

  #makeVideo() {
    const video = element('video', { autoplay: true, playsInline: true, muted: true });
    video.setAttribute('muted', '');
    video.addEventListener('resize', () => {
      const { videoWidth, videoHeight } = video;
      if (videoHeight === 0) return;
      this.#shape = videoWidth / videoHeight;
      this.node.style.setProperty('--shape', String(this.#shape)); // of one's own floating picture
      this.#actions.reshaped();
    });
    this.#avatar.after(video);
    return video;
  }

  #showMuted(isMuted) {
    if (isMuted && !this.#muted) {
      this.#muted = icon('microphone-off');
      this.#mutedText = element('span', { className: 'visually-hidden', textContent: t('tile.muted') });
      this.#name.before(this.#muted, this.#mutedText);
    }
    this.#muted?.toggleAttribute('hidden', !isMuted);
    if (this.#mutedText) this.#mutedText.hidden = !isMuted;
  }

  /** A small tile has no room for the words of its state: it has only a sign there, and the words are for screen readers. */
  #showSign(name) {
    if (name && !this.#sign) {
      this.#sign = element('span', { className: 'tile-sign', ariaHidden: 'true' }, icon(name));
      this.#name.after(this.#sign);
    }
    if (!this.#sign) return;
    this.#sign.hidden = !name;
    if (name) setIcon(this.#sign, name);
  }

  #signOf({ source, isOwn, isConnected, isHeld, video, picture, doubt }, isSilent) {
    if (doubt) return 'warning';
    if (source === 'ringing') return 'phone';
    if (isHeld) return 'pause';
    if (!isConnected) return 'connection';
    if (this.isBlocked) return 'play';
    if (!isOwn && !video && picture === 'unsupported') return 'camera-off';
    if (!isOwn && (picture === 'lower' || (picture && picture !== 'shown' && !video))) return 'connection';
    return isSilent && !isOwn && source === 'camera' ? 'sound-off' : undefined;
  }

  #showHand(isRaised) {
    if (isRaised && !this.#hand) {
      this.#hand = element('span', { className: 'tile-hand', role: 'img', ariaLabel: t('tile.hand') }, icon('hand'));
      this.#name.parentElement.prepend(this.#hand);
    }
    if (this.#hand) this.#hand.hidden = !isRaised;
  }

  /** `recorded` is as in `CallRecording.recordedOf`. */
  #showRecorded(recorded) {
    if (recorded && !this.#recorded) {
      this.#recorded = element('span', { className: 'tile-recorded' }, icon('record'), element('span', { className: 'visually-hidden' }));
      this.#name.before(this.#recorded);
    }
    if (!this.#recorded) return;
    this.#recorded.hidden = !recorded;
    const words = recorded ? t(recorded === 'told' ? 'tile.agreed' : 'tile.recorded') : '';
    setText(this.#recorded.lastChild, words);
    this.#recorded.title = words;
  }

  #showShield(isVerified) {
    if (isVerified && !this.#shield) {
      this.#shield = element('span', { className: 'shield' }, icon('shield'), element('span', { textContent: t('code.verified') }));
      this.#name.after(this.#shield);
    }
    if (this.#shield) this.#shield.hidden = !isVerified;
  }

  /** Displays its contents, if they have changed. */
  show(description, options) {
    this.description = description;
    this.#options = options;
    this.#isDrawn = false;
  }

  /** Shows what it is, if that has changed. */
  draw() {
    if (this.#isDrawn) return;
    const { description } = this;
    const { isPinned, isHandRaised, isSilent, isVerified } = this.#options;
    const { source, member, participant, isOwn, isConnected, isMuted, video, track, doubt } = description;
    const label = labelFor(member.user);
    const who = source === 'screen' ? t(isOwn ? 'tile.own-screen' : 'tile.screen', { name: label }) : isOwn ? t('tile.you') : label;
    const { dataset, classList } = this.node;
    Object.assign(dataset, { recorded: description.recorded ?? '', source, user: member.user, video: video ? 'on' : 'off', muted: Boolean(isMuted), doubt: doubt ?? '', hand: Boolean(isHandRaised) });
    if (participant) dataset.participant = participant;
    if (track) dataset.track = track;
    else delete dataset.track;
    classList.toggle('own', Boolean(isOwn));
    classList.toggle('away', source === 'camera' && !isConnected);
    classList.toggle('pinned', isPinned);
    setText(this.#name, who);
    const admission = source === 'screen' ? '' : wordsForAdmission(description.admission);
    setText(this.#admission, admission);
    this.#admission.hidden = !admission;
    const state = this.#stateOf(description, isSilent);
    setText(this.#state, state);
    if (this.#state.title !== state) this.#state.title = state; // a small tile may have no room for all of it
    this.#state.hidden = !state;
    this.#showSign(this.#signOf(description, isSilent));
    this.#compare.hidden = !COMPARED.includes(doubt);
    this.#showMuted(isMuted);
    this.#showHand(isHandRaised);
    this.#showRecorded(description.recorded);
    this.#showShield(isVerified && !doubt);
    setInitials(this.#avatar, nameFor(member.user), member.user);
    // Behind a video, too, because that may take a moment to begin.
    this.#avatar.hidden = source === 'screen' || (Boolean(video) && !isConnected);
    this.#avatar.classList.toggle('pulsing', source === 'ringing');
    this.#showTools(description, who, isPinned);
    this.#attach(video);
    this.#isDrawn = true;
  }

  setSpeaking(isSpeaking) {
    this.#node?.classList.toggle('speaking', isSpeaking);
  }

  remove() {
    this.#node?.remove();
  }

  /** Where it is on the stage; without `rect` it floats. */
  stand(rect) {
    const { style } = this.node;
    const edges = rect ? { 'inset-inline-start': rect.x, top: rect.y, width: rect.width, height: rect.height } : {};
    for (const name of ['inset-inline-start', 'top', 'width', 'height']) style.setProperty(name, name in edges ? `${edges[name]}px` : '');
  }

  /** After the tile is in the page: a video that moves there stops otherwise. */
  resume() {
    if (this.#video?.srcObject && this.#video.paused) this.#play();
  }

  /** Whether its video is in a separate window (picture-in-picture). */
  get isInWindow() {
    return this.#video !== undefined && document.pictureInPictureElement === this.#video;
  }

  /** The width of its picture, as it is seen, by the height; undefined before the first one. */
  get shape() {
    return this.#shape && this.#view?.isTurned ? 1 / this.#shape : this.#shape;
  }

  /** How high all of the picture would be shown, in pixels of the screen. */
  get pixels() {
    return Math.round(this.node.clientHeight * devicePixelRatio * (this.#view?.scale ?? 1));
  }

  /** Shows a reaction for a moment. */
  react(reaction) {
    if (!this.#node) return;
    const node = element('span', { textContent: reaction });
    this.#reaction.replaceChildren(node);
    setTimeout(() => node.remove(), REACTION_MS);
  }

  /** The words about who hears come first, and are shown whatever the server says about the rest. */
  #stateOf({ source, isOwn, isConnected, isLost, isHeld, video, picture, doubt, rung = [] }, isSilent) {
    const words = [doubt && t(`tile.${doubt}`), source === 'camera' && rung.length > 0 && t('tile.also-rung', { devices: listNames(rung) })];
    if (source === 'ringing') words.unshift(t('call.ringing'));
    else if (source === 'camera' && isHeld) words.push(t('running.held'));
    else if (!isConnected) words.push(t(isLost ? 'tile.lost' : 'connection.connecting'));
    else if (source !== 'listener') words.push(...this.#mediaState({ source, isOwn, video, picture, doubt }, isSilent));
    return words.filter(Boolean).join(' · ');
  }

  #mediaState({ source, isOwn, video, picture, doubt }, isSilent) {
    const shown = this.#pictureState(picture, Boolean(video) || isOwn || doubt === 'no-key');
    return [this.isBlocked && t('tile.blocked'), shown, isSilent && !isOwn && source === 'camera' && t('tile.silent')];
  }

  #pictureState(picture, isShown) {
    if (isShown || !picture || picture === 'shown') {
      this.#lackingSince = undefined;
      return picture === 'lower' ? t('tile.lower') : '';
    }
    this.#lackingSince ??= performance.now();
    if (['unsupported', 'paused'].includes(picture)) return t(`tile.${picture}`);
    return performance.now() - this.#lackingSince < LOADING_MS ? t('tile.loading') : t(`tile.${picture}`);
  }

  #showTools({ isOwn, source, video }, who, isPinned) {
    const isOthers = !isOwn && source !== 'ringing';
    const hasPicture = isOthers && Boolean(video);
    this.#pin.hidden = !isOthers || source === 'screen';
    this.#pin.ariaPressed = isPinned;
    setLabel(this.#pin, t('tile.pin', { who }));
    if (hasPicture && !this.#full) {
      this.#full = tool('full-screen', () => this.#showFull());
      this.#window = tool('window', () => this.#showInWindow());
      this.#pin.after(this.#full, this.#window);
    }
    if (this.#full) {
      this.#full.hidden = !hasPicture || !document.fullscreenEnabled;
      setLabel(this.#full, t('tile.full', { who }));
      this.#window.hidden = !hasPicture || !document.pictureInPictureEnabled;
      setLabel(this.#window, t('tile.window', { who }));
    }
    this.#showViewTools(hasPicture && source === 'screen', who);
    this.#showOwnTools(isOwn && source === 'camera');
  }

  #showViewTools(isShown, who) {
    if (isShown && !this.#viewTools) {
      this.#video ??= this.#makeVideo();
      this.#view = new ScreenView(this.node, this.#video, this.#actions.looked);
      this.#viewTools = [tool('enlarge', () => this.#view.step()), tool('turn', () => this.#view.turn())];
      this.#viewTools[0].addEventListener('keydown', (event) => this.#view.key(event));
      this.#window.after(...this.#viewTools);
    }
    for (const button of this.#viewTools ?? []) {
      button.hidden = !isShown;
      setLabel(button, t(`tile.${button.classList[1]}`, { who }));
    }
  }

  #showOwnTools(isShown) {
    if (isShown && !this.#ownTools) {
      const { move, hide } = this.#actions;
      this.#ownTools = [tool('move', move), tool('hide', hide)];
      ['tile.move', 'tile.hide'].forEach((key, index) => setLabel(this.#ownTools[index], t(key)));
      this.#tools.append(...this.#ownTools);
    }
    for (const button of this.#ownTools ?? []) button.hidden = !isShown;
  }

  #showFull() {
    if (document.fullscreenElement) document.exitFullscreen();
    else this.node.requestFullscreen().catch(() => {});
  }

  #showInWindow() {
    if (this.isInWindow) document.exitPictureInPicture();
    else this.#video.requestPictureInPicture().catch(() => {});
  }

  #attach(track) {
    if (!track && !this.#video) return;
    this.#video ??= this.#makeVideo();
    const now = this.#video.srcObject?.getVideoTracks()[0];
    this.#video.hidden = !track;
    if (now === track) return;
    this.node.dataset.facing = track?.getSettings?.().facingMode ?? '';
    this.#video.srcObject = track ? new MediaStream([track]) : null;
    if (track) this.#play();
    else this.#setBlocked(false);
  }

  async #play() {
    try {
      await this.#video.play();
      this.#setBlocked(false);
    } catch (error) {
      if (error.name === 'NotAllowedError') this.#setBlocked(true); // others: it was removed meanwhile
    }
  }

  #setBlocked(isBlocked) {
    if (this.isBlocked === isBlocked) return;
    this.isBlocked = isBlocked;
    this.#actions.blocked();
  }
}

export const REACTION_MS = 4_000;
