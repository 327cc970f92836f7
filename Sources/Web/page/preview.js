// One's own picture, the level of the microphone and the choice of devices: one part of the page, which stands in what was opened last of "Camera and sound", a
// ring, and the page of a link.

// A guest sees it before the rest of the library is loaded.
import { Capture, canBlur } from '../conclave/capture.js';
import { byID, element, setIcon, setText } from './dom.js';
import { Level } from './level.js';
import { isDenied, permissionOf, showSteps, wordsForDevice } from './permissions.js';
import { saveSetting, savedSetting } from './session.js';
import { t } from './texts.js';

const SOURCES = ['camera', 'microphone', 'speaker'];
const OPENED = ['camera', 'microphone'];
const LOUD = 0.25; // of full scale: speech close to the microphone

/** The texts of a switch: what a press does while the source is off, and on. */
const DEEDS = { microphone: ['tool.unmute', 'tool.mute'], camera: ['tool.start-camera', 'tool.stop-camera'] };

class Preview {
  /** The devices with which the person wants to join: those that were switched off stay off. */
  wants = { camera: true, microphone: true };
  #capture;
  #places = []; // `{host, …options}`, the one that is shown last
  #host; // where it stands
  #opened = new Map(); // by source: the track that was opened only for the preview
  #level;
  #turn = 0;
  #call; // the call whose devices are shown
  #tracks = {}; // the track of each source that is shown
  #hasAsked = false; // the person has pressed the button that lets the browser ask
  #look = () => OPENED.some((source) => this.#call.local(source).track !== this.#tracks[source]) && this.#draw();

  constructor() {
    for (const source of SOURCES) {
      byID(`setup-${source}`).addEventListener('change', () => this.#capture.choose({ [source]: byID(`setup-${source}`).value }));
    }
    for (const source of OPENED) byID(`preview-${source}`).addEventListener('click', () => this.#switch(source));
    byID('setup-blur').addEventListener('change', () => this.#capture.choose({ hasBlur: byID('setup-blur').checked }));
    byID('preview-allow').addEventListener('click', () => this.#allow());
    byID('preview-how').addEventListener('click', () => showSteps(() => this.#allow()));
  }

  /** Chooses devices by `capture` from now on, beginning with the choice that this browser remembers. */
  use(capture = new Capture()) {
    this.#capture = capture;
    const saved = savedSetting('capture');
    if (saved) capture.choose(saved);
    capture.addEventListener('change', ({ detail: { source } }) => {
      // A phone's other camera is temporary: the next call begins with the one that faces the person. `isVideoFirst` is a setting of its own.
      const { facing: _, isVideoFirst: __, ...lasting } = capture.choice;
      saveSetting('capture', lasting);
      this.#close(source);
      if (this.#place && !this.#call) this.#draw();
    });
    capture.addEventListener('inputs', () => this.#place && this.#showInputs());
  }

  /**
   * Stands in `host` until `leave(host)`. With `call` it shows the devices of the call. Else it opens `sources`, and those for which the browser would ask only
   * after the person was told, and not at all unless `mayAsk`. `switches` are the sources that can be switched on and off here, and `isWhole` says that the
   * choice of devices is open.
   * @param {any} host
   * @param {{ call?: any, sources?: string[], switches?: string[], mayAsk?: boolean, isWhole?: boolean }} options
   */
  show(host, { call = undefined, sources = OPENED, switches = [], mayAsk = true, isWhole = false } = {}) {
    if (!this.#capture) this.use();
    // A new decision: nobody stays muted because of an earlier one.
    if (switches.length > 0 && !this.#places.some((place) => place.host === host)) this.wants = { camera: true, microphone: true };
    this.#places = [...this.#places.filter((place) => place.host !== host), { host, call, sources, switches, mayAsk, isWhole }];
    return this.#draw();
  }

  /** Goes back to the host that was shown before `host`. */
  leave(host) {
    const isShown = host === this.#place?.host;
    this.#places = this.#places.filter((place) => place.host !== host);
    return isShown ? this.#draw() : undefined;
  }

  get #place() {
    return this.#places.at(-1);
  }

  #switch(source) {
    this.wants[source] = !this.wants[source];
    return this.#draw();
  }

  #allow() {
    this.#hasAsked = true;
    return this.#draw();
  }

  /** A call opens a chosen device asynchronously: the preview is drawn again when it has another one. */
  #follow(call) {
    this.#call?.removeEventListener('change', this.#look);
    this.#call = call;
    call?.addEventListener('change', this.#look);
  }

  async #draw() {
    const own = (this.#turn += 1);
    const isCurrent = () => own === this.#turn;
    const place = this.#place;
    this.#follow(place?.call);
    this.#level?.stop();
    this.#level = undefined;
    byID('setup-level').value = 0;
    if (!place || place.call) for (const source of OPENED) this.#close(source);
    if (!place) {
      this.#host = undefined;
      byID('setup-video').srcObject = null;
      return;
    }
    this.#enter(place);
    const { tracks, errors = [], willAsk = false } = this.#call ? tracksOf(this.#call) : await this.#open(place, isCurrent);
    if (!isCurrent()) return;
    this.#tracks = tracks;
    await this.#showInputs();
    if (!isCurrent()) return;
    byID('preview-ask').hidden = !willAsk;
    byID('preview-how').hidden = !errors.some(({ error }) => isDenied(error));
    setText(byID('setup-problem'), errors.map(({ source, error }) => wordsForDevice(source, error)).join(' '));
    this.#picture(tracks.camera);
    byID('preview-picture').hidden = !tracks.camera && !place.mayAsk;
    byID('preview-level').hidden = !tracks.microphone && !place.isWhole;
    byID('setup-blur-field').hidden = !canBlur(tracks.camera);
    byID('setup-blur').checked = this.#capture.choice.hasBlur;
    const { microphone } = tracks;
    if (microphone) this.#level = new Level(microphone, (level) => (byID('setup-level').value = Math.min(1, level / LOUD)));
  }

  #enter({ host, switches, isWhole }) {
    if (this.#host !== host) {
      this.#host = host;
      host.append(byID('preview'));
      byID('preview-devices').open = isWhole;
    }
    byID('preview-switches').hidden = switches.length === 0;
    for (const source of OPENED) {
      const button = byID(`preview-${source}`);
      const isOn = this.wants[source];
      button.hidden = !switches.includes(source);
      if (button.hidden) continue;
      setIcon(button, isOn ? source : `${source}-off`);
      setText(button.querySelector('.tool-label'), t(DEEDS[source][Number(isOn)]));
      button.classList.toggle('off', !isOn);
    }
  }

  /** Resolves with `{tracks, errors, willAsk}`, the last if the person is to be told before the browser asks. */
  async #open({ sources, switches, mayAsk }, isCurrent) {
    const wanted = sources.filter((source) => !switches.includes(source) || this.wants[source]);
    const states = await Promise.all(wanted.map(permissionOf));
    const mayOpen = wanted.filter((_, index) => states[index] === 'granted' || (mayAsk && (this.#hasAsked || states[index] === 'denied')));
    const errors = [];
    const open = async (source) => {
      if (this.#opened.has(source) && this.#opened.get(source).readyState !== 'ended') return undefined;
      try {
        const track = await this.#capture.open(source);
        if (!isCurrent()) return void track.stop();
        this.#opened.set(source, track);
      } catch (error) {
        errors.push({ source, error: error.name });
      }
      return undefined;
    };
    if (isCurrent()) {
      for (const source of OPENED) if (!mayOpen.includes(source)) this.#close(source);
      await Promise.all(mayOpen.map(open));
    }
    const tracks = Object.fromEntries(this.#opened);
    return { tracks, errors, willAsk: mayAsk && mayOpen.length < wanted.length };
  }

  async #showInputs() {
    const inputs = await this.#capture.inputs().catch(() => []);
    const { choice } = this.#capture;
    for (const source of SOURCES) {
      const found = inputs.filter((input) => input.source === source && input.id && input.id !== 'default');
      const options = [['', t('setup.automatic')], ...found.map(({ id, label }, index) => [id, label || `${t(`setup.${source}`)} ${index + 1}`])];
      const select = byID(`setup-${source}`);
      // An unchanged list is not touched, because somebody may be choosing from it.
      const isShown = options.length === select.length && options.every(([id, name], index) => select[index].value === id && select[index].textContent === name);
      if (!isShown) select.replaceChildren(...options.map(([value, textContent]) => element('option', { value, textContent })));
      select.value = found.some(({ id }) => id === choice[source]) ? choice[source] : '';
      select.disabled = found.length === 0;
    }
    byID('setup-speaker-field').hidden = !('setSinkId' in HTMLMediaElement.prototype);
  }

  #picture(camera) {
    byID('setup-video').srcObject = camera ? new MediaStream([camera]) : null;
    byID('setup-video').hidden = !camera;
    byID('setup-off').hidden = Boolean(camera);
    byID('setup-video').classList.toggle('mirrored', this.#capture.choice.facing === 'user');
  }

  #close(source) {
    this.#opened.get(source)?.stop();
    this.#opened.delete(source);
  }
}

const tracksOf = (call) => ({ tracks: Object.fromEntries(OPENED.map((source) => [source, call.local(source).track])) });

export const preview = new Preview();
