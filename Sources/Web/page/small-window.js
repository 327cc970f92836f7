// A small window above other work while a call runs (Document Picture-in-Picture): a few faces, and the buttons to mute, to stop the camera, to leave and to come
// back. Its buttons press those of the page and look like them, so there is one state. It closes with the call.

import { avatar, byID, element, icon, setIcon, setInitials, setText } from './dom.js';
import { labelFor, nameFor } from './names.js';
import { saveSetting, savedSetting } from './session.js';
import { t } from './texts.js';
import { isVideoFirst } from './video-first.js';

const SIZE = { width: 340, height: 420 };
const MOST = 4; // faces
const DOUBTFUL = ['stranger', 'uninvited'];
const CONTROLS = ['toggle-microphone', 'toggle-camera', 'leave'];
const LEAST_LINES = 180; // of a picture, also before the window is laid out
const ACTION = /** @type {any} */ ('enterpictureinpicture'); // of the media session: a browser that has it opens the window without a press

/**
 * The tiles to show of `tiles`, at most `most`, in their order on the page. Those come first that hear and are not in the call, or that nobody let in; then screens,
 * the pinned one, raised hands, who speaks, and those that are `shown` already. The second argument has the key of the pinned tile, the participant who speaks, and
 * whether a participant's hand is raised. One's own picture comes where there is room.
 */
export function facesOf(tiles, { pinned = undefined, speaker = undefined, isRaised = (_) => false } = {}, shown = new Set(), most = MOST) {
  const rank = ({ key, source, participant, isOwn, doubt }) => {
    if (source === 'listener' || DOUBTFUL.includes(doubt)) return 0;
    if (isOwn) return 7;
    if (source === 'screen') return 1;
    if (key === pinned) return 2;
    if (isRaised(participant)) return 3;
    if (participant !== undefined && participant === speaker) return 4;
    return shown.has(key) ? 5 : 6;
  };
  const chosen = new Set([...tiles].sort((one, other) => rank(one) - rank(other)).slice(0, most));
  return tiles.filter((tile) => chosen.has(tile));
}

/** One of the faces. */
class Face {
  node;
  #video = element('video', { autoplay: true, playsInline: true, muted: true, attributes: { muted: '' } });
  #avatar = avatar('');
  #name = element('span', { className: 'face-name' });

  constructor() {
    this.node = element('li', { className: 'window-face' }, this.#avatar, this.#video, this.#name);
  }

  show({ member, source, isOwn, video, doubt }) {
    const label = labelFor(member.user);
    const who = source === 'screen' ? t(isOwn ? 'tile.own-screen' : 'tile.screen', { name: label }) : isOwn ? t('tile.you') : label;
    setText(this.#name, [who, source === 'ringing' && t('call.ringing'), doubt && t(`tile.${doubt}`)].filter(Boolean).join(' · '));
    setInitials(this.#avatar, nameFor(member.user), member.user);
    this.node.classList.toggle('own', Boolean(isOwn && source === 'camera'));
    this.node.classList.toggle('screen', source === 'screen');
    this.#video.hidden = !video;
    if (this.#video.srcObject?.getVideoTracks()[0] === video) return;
    this.#video.srcObject = video ? new MediaStream([video]) : null;
    if (video) this.play();
  }

  /** A video that is moved in its list stops. */
  play() {
    if (this.#video.srcObject) this.#video.play()?.catch(() => {});
  }

  get height() {
    return this.#video.clientHeight;
  }

  close() {
    this.#video.srcObject = null;
  }
}

/** Events: `change`, when other faces are shown, or none. */
class SmallWindow extends EventTarget {
  #window; // the browser's
  #isOpening = false;
  #isByItself = false; // it was opened without a press
  #isInCall = false;
  #hasAction = false; // the media session's
  #faces = new Map(); // by the key of a tile
  #tiles = []; // those of the faces
  #list;
  #title;
  #notice;
  #controls = [];
  #observer;

  /** Once, before the first call. */
  prepare() {
    const { isAble } = this;
    byID('small-window').hidden = !isAble;
    byID('auto-window-field').hidden = !isAble;
    if (!isAble) return;
    byID('small-window').addEventListener('click', () => {
      byID('more-dialog').close();
      if (this.#window) this.close();
      else this.#open({ isByItself: false });
    });
    byID('auto-window').checked = savedSetting('auto-window') ?? false;
    byID('auto-window').addEventListener('change', () => {
      saveSetting('auto-window', byID('auto-window').checked);
      this.#register();
    });
    document.addEventListener('visibilitychange', () => this.#pageTurned());
  }

  /** Whether the browser has such windows. */
  get isAble() {
    return 'documentPictureInPicture' in globalThis;
  }

  get isOpen() {
    return this.#window !== undefined;
  }

  /** A call is shown. */
  begin() {
    this.#isInCall = true;
    this.#register();
  }

  /** No call is shown any longer. */
  end() {
    this.#isInCall = false;
    this.#register();
    this.close();
  }

  close() {
    this.#window?.close();
    this.#closed();
  }

  /** Shows faces of the call's `tiles`, descriptions of the library; `leads` is as in `facesOf`. */
  show(tiles, leads) {
    if (!this.#window) return;
    try {
      this.#draw(facesOf(tiles, isVideoFirst() ? { ...leads, speaker: undefined } : leads, new Set(this.#faces.keys())));
    } catch (error) {
      // The page itself shows who hears, so it goes on.
      console.warn(`Conclave: the small window was not drawn: ${error.name}`);
      this.close();
    }
  }

  /** The heights in pixels of the screen at which it shows tracks of others, by track. */
  get heights() {
    const shown = this.#tiles.filter(({ track, isOwn }) => track && !isOwn);
    return new Map(shown.map(({ key, track }) => [track, Math.max(LEAST_LINES, Math.round(this.#faces.get(key).height * this.#window.devicePixelRatio))]));
  }

  // Opening by itself

  #register() {
    if (!this.isAble) return;
    try {
      navigator.mediaSession?.setActionHandler(ACTION, this.#mayOpenItself ? () => this.#open({ isByItself: true }) : null);
      this.#hasAction = Boolean(navigator.mediaSession);
    } catch {
      this.#hasAction = false;
    }
  }

  get #mayOpenItself() {
    return this.#isInCall && byID('auto-window').checked;
  }

  #pageTurned() {
    // A browser without the action allows it only if the person has just pressed something.
    if (document.hidden && this.#mayOpenItself && !this.#hasAction) this.#open({ isByItself: true });
    if (!document.hidden && this.#isByItself) this.close();
  }

  // The window

  async #open({ isByItself }) {
    if (this.#window || this.#isOpening || !this.#isInCall) return;
    this.#isOpening = true;
    try {
      const opened = await globalThis.documentPictureInPicture.requestWindow(SIZE);
      if (this.#isInCall) this.#fill(opened, isByItself);
      else opened.close(); // the call is over meanwhile
    } catch (error) {
      console.warn(`Conclave: no small window: ${error.name}`); // the browser refuses it, and the call goes on without
      this.close();
    } finally {
      this.#isOpening = false;
    }
  }

  #fill(opened, isByItself) {
    this.#window = opened;
    this.#isByItself = isByItself;
    opened.addEventListener('pagehide', () => this.#window === opened && this.#closed());
    const { document: page } = opened;
    const { lang, dir } = document.documentElement;
    Object.assign(page.documentElement, { lang, dir });
    for (const name of ['style', 'small-window']) page.head.append(element('link', { rel: 'stylesheet', href: new URL(`page/${name}.css`, document.baseURI).href }));
    this.#title = element('h1', { className: 'visually-hidden' });
    this.#notice = element('p', { className: 'window-notice', role: 'alert', hidden: true });
    this.#list = element('ul', { className: 'window-faces', ariaLabel: t('call.grid') });
    const back = this.#button('window', t('window.back'), () => this.#goBack());
    this.#controls = CONTROLS.map((id) => ({ original: byID(id), button: this.#button('', '', () => byID(id).click()) }));
    const bar = element('div', { className: 'toolbar', role: 'group', ariaLabel: t('call.controls') }, ...this.#controls.map(({ button }) => button), back);
    page.body.className = 'in-call small-window';
    page.body.append(document.querySelector('.sprite')?.cloneNode(true) ?? '', this.#title, this.#notice, this.#list, bar);
    page.addEventListener('keydown', ({ key }) => key === 'Escape' && this.#goBack());
    this.#observer = new MutationObserver(() => this.#mirror());
    const watched = { subtree: true, childList: true, characterData: true, attributes: true, attributeFilter: ['class', 'disabled', 'hidden', 'href'] };
    for (const id of ['toolbar', 'call-title', 'call-notice']) this.#observer.observe(byID(id), watched);
    this.#mirror();
    if (!isByItself) this.#controls[0].button.focus();
    new opened.ResizeObserver(() => this.#tell()).observe(this.#list); // the window's own: that of a hidden page rests
    this.#tell();
  }

  #button(name, words, action) {
    const button = element('button', { type: 'button', className: 'tool', title: words }, icon(name), element('span', { className: 'tool-label', textContent: words }));
    button.addEventListener('click', action);
    return button;
  }

  /** The buttons, the title and the word why nothing is sent are those of the page. */
  #mirror() {
    for (const { original, button } of this.#controls) {
      setIcon(button, original.querySelector('use').getAttribute('href').replace('#icon-', ''));
      const words = original.querySelector('.tool-label').textContent;
      setText(button.querySelector('.tool-label'), words);
      button.title = words;
      button.className = original.className;
      // A button that is pressed keeps the focus: the page's own is disabled for a moment.
      button.ariaDisabled = String(original.disabled);
    }
    const { textContent } = byID('call-title');
    setText(this.#title, textContent);
    this.#window.document.title = textContent;
    const isStopped = !byID('call-notice').hidden;
    this.#notice.hidden = !isStopped;
    setText(this.#notice, isStopped ? byID('call-notice-text').textContent : '');
  }

  #draw(tiles) {
    const before = this.#tiles.map(({ track }) => track).join();
    const keys = new Set(tiles.map(({ key }) => key));
    for (const [key, face] of this.#faces) {
      if (keys.has(key)) continue;
      face.close();
      face.node.remove();
      this.#faces.delete(key);
    }
    tiles.forEach((tile, index) => {
      const face = this.#faces.get(tile.key) ?? new Face();
      this.#faces.set(tile.key, face);
      face.show(tile);
      if (this.#list.children[index] === face.node) return;
      this.#list.insertBefore(face.node, this.#list.children[index] ?? null);
      face.play();
    });
    this.#tiles = tiles;
    if (before !== tiles.map(({ track }) => track).join()) this.#tell();
  }

  #goBack() {
    this.close();
    window.focus();
  }

  #closed() {
    if (!this.#window) return;
    this.#window = undefined;
    this.#isByItself = false;
    this.#observer?.disconnect();
    for (const face of this.#faces.values()) face.close();
    this.#faces.clear();
    this.#tiles = [];
    this.#controls = [];
    this.#tell();
  }

  #tell() {
    setText(byID('small-window').querySelector('span'), t(this.isOpen ? 'window.close' : 'window.open'));
    this.dispatchEvent(new Event('change'));
  }
}

export const smallWindow = new SmallWindow();
