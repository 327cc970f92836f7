// The tracks that this device sends into a call: microphone, camera, screen; muted, off, or silent while the call is on hold.

import { LocalMedia } from './local.js';

export const GONE = ['call.not-found', 'call.ended', 'call.not-joined']; // the call, or this device's part in it, is over

/** @typedef {import('./media-path.js').MediaPath} MediaPath */

/**
 * `capture` opens microphone and camera. `path` is set when there is one. `tellMuted(track, muted)` notifies the server, and resolves when it knows.
 *
 * Events: `change`, of a source; `notice` with a detail for people; `gone`: the server refused an offer because the call, or this device's part in it, is over.
 */
export class Sending extends EventTarget {
  /** @type {MediaPath | undefined} */
  path;
  #local;
  #held; // the sources to reopen after a hold
  #isClosed = false;
  #tellMuted;

  constructor({ capture, tellMuted }) {
    super();
    this.#local = new LocalMedia({ capture, ended: (source) => this.#lost(source) });
    this.#tellMuted = tellMuted;
  }

  /** `{isOn, track}` of a source. */
  state(source) {
    return this.#local.state(source);
  }

  /** Opens the wanted sources, or uses the app's own track for one. A source that cannot be opened causes a notice, not an end. */
  async capture({ camera = true, microphone = true }) {
    const wished = Object.entries({ microphone, camera }).filter(([, wish]) => wish);
    for (const [source, wish] of wished) if (wish !== true) this.#local.use(source, wish);
    await Promise.all(wished.map(([source]) => this.#open(source)));
  }

  /** Sends a copy of the app's own `track` as `source` from now on; without one the device again, if the source is on. */
  async publish(source, track) {
    const isWanted = track || this.state(source).isOn || this.#local.isOpening(source);
    this.#local.use(source, track);
    if (this.#held && track) this.#held.add(source);
    else if (isWanted) await this.#add(source);
  }

  /** Passes everything that is open to the new path. */
  async sendAll() {
    for (const [source, { track }] of this.#local.all) await this.path?.send(source, track ?? null);
    await this.negotiate();
    for (const [source, { isOn }] of this.#local.all) if (!isOn) this.#mute(source, true);
  }

  /** After the connection was gone: the server may have missed what is muted. */
  tellAll() {
    for (const [source, { isOn }] of this.#local.all) this.#mute(source, !isOn);
  }

  async setMicrophone(isOn) {
    if (this.#held) return this.#keepForLater('microphone', isOn);
    if (isOn && !this.state('microphone').track) return this.#add('microphone');
    this.#local.mute('microphone', !isOn);
    this.#changed();
    return this.#mute('microphone', !isOn);
  }

  /** Off also turns off the camera's light. */
  async setCamera(isOn) {
    if (this.#held) return this.#keepForLater('camera', isOn);
    if (isOn) return this.#add('camera');
    this.#local.turnOff('camera');
    this.#changed();
    await this.path?.pause('camera');
    return this.#mute('camera', true);
  }

  /** Another device was chosen for `source`: it replaces the one that is open or being opened. A muted microphone is opened when it is switched on. */
  async reopen(source) {
    const { isOn, track } = this.state(source);
    const isOpening = this.#local.isOpening(source);
    if (this.#held || this.#local.hasOwn(source) || !(track || isOpening)) return;
    this.#local.turnOff(source);
    this.#changed();
    if (isOn || isOpening) await this.#add(source);
  }

  /** Shares a screen, or `stream` in its place; with `replace` another's screen makes room. Throws `screen.busy` if there already is one. */
  async shareScreen({ replace = false, stream = undefined } = {}) {
    await this.#local.openScreen(() => this.stopScreen(), stream);
    if (this.#isClosed) {
      this.#local.closeAll();
      return;
    }
    for (const source of ['screen', 'screen-audio']) {
      const { track } = this.state(source);
      if (track) await this.path?.send(source, track, { replace: replace && source === 'screen' });
    }
    this.#changed();
    try {
      await this.path?.negotiate();
    } catch (error) {
      await this.stopScreen();
      throw error;
    }
  }

  async stopScreen() {
    if (!this.state('screen').isOn) return;
    this.#local.closeScreen();
    this.#changed();
    await this.path?.remove('screen');
    await this.path?.remove('screen-audio');
    await this.negotiate();
  }

  /** Makes the path carry what is sent and wanted now. It repeats what failed when the connection is back. */
  async negotiate() {
    try {
      await this.path?.negotiate();
    } catch (error) {
      await this.#failed(error);
    }
  }

  async #failed(error) {
    if (GONE.includes(error.code)) this.dispatchEvent(new Event('gone'));
    else if (error.code === 'media.unsupported' && this.#hasPictures) await this.#withoutPictures();
    else if (error.code !== 'connection-lost') this.#notice({ kind: 'media-failed', error: error.code ?? error.name });
  }

  /** Whether a camera or a screen is sent, or will be with the next offer. */
  get #hasPictures() {
    return ['camera', 'screen'].some((source) => this.path?.isSending(source));
  }

  /** This browser has no video codec that the call accepts, and the server refuses such an offer as a whole: only sound continues. */
  async #withoutPictures() {
    for (const source of ['camera', 'screen', 'screen-audio']) {
      this.#local.close(source);
      await this.path?.remove(source);
    }
    this.#notice({ kind: 'no-device', source: 'camera', error: 'media.unsupported' });
    this.#changed();
    await this.negotiate();
  }

  /** The new path does not know the screen that the old one sent. */
  forgetScreen() {
    this.#local.closeScreen();
  }

  /** On hold nothing is open: the microphone and the camera are free for another call. */
  async suspend() {
    if (this.#held) return;
    this.#held = new Set(['microphone', 'camera'].filter((source) => this.state(source).isOn || this.#local.isOpening(source)));
    const stopped = this.stopScreen();
    for (const source of this.#held) {
      this.#local.turnOff(source);
      this.path?.pause(source);
    }
    this.#changed();
    await stopped;
  }

  async resume() {
    const held = this.#held ?? new Set();
    this.#held = undefined;
    await Promise.all([...held].map((source) => this.#add(source)));
  }

  close() {
    this.#isClosed = true;
    this.#local.closeAll();
  }

  /** A device was unplugged, or the system took it: another is opened, if there is one. After a track of the app nothing is opened that nobody requested. */
  async #lost(source) {
    const { isOn } = this.state(source);
    const wasOwn = this.#local.hasOwn(source);
    this.#notice({ kind: 'lost-device', source });
    this.#local.use(source, undefined);
    this.#local.turnOff(source);
    this.#changed();
    if (isOn && !wasOwn) return this.#add(source);
    await this.path?.pause(source);
    return this.#mute(source, true);
  }

  #keepForLater(source, isOn) {
    if (isOn) this.#held.add(source);
    else this.#held.delete(source);
  }

  /** Resolves with whether it is open now. */
  async #open(source) {
    if (this.#isClosed) return false;
    if (this.#held) {
      this.#held.add(source);
      return false;
    }
    try {
      return await this.#local.open(source);
    } catch (error) {
      this.#notice({ kind: 'no-device', source, error: error.name });
      return false;
    } finally {
      this.#changed();
    }
  }

  async #add(source) {
    const isOpen = await this.#open(source);
    const { track } = this.state(source);
    if (!isOpen || !track || !this.path) return;
    const isNew = !this.path.trackID(source);
    await this.path.send(source, track);
    if (isNew) await this.negotiate();
    // It may have been muted meanwhile.
    const { isOn } = this.state(source);
    if (!isNew || !isOn) await this.#mute(source, !isOn);
  }

  async #mute(source, isMuted) {
    const track = this.path?.trackID(source);
    if (track) await this.#tellMuted(track, isMuted);
  }

  #changed() {
    this.dispatchEvent(new Event('change'));
  }

  #notice(detail) {
    this.dispatchEvent(new CustomEvent('notice', { detail }));
  }
}
