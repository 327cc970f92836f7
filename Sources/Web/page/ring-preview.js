// One's own picture while a video call rings, where the browser has been allowed the camera before: nobody is asked for it in order to look.

import { byID } from './dom.js';

export class RingPreview {
  #capture;
  #video = byID('ring-video');
  #track;
  #turn = 0;

  /** `capture` opens the camera that a call would use. */
  constructor(capture) {
    this.#capture = capture;
  }

  async show() {
    const own = (this.#turn += 1);
    if (!(await isAllowed()) || own !== this.#turn) return;
    const track = await this.#capture.open('camera').catch(() => undefined);
    if (!track) return;
    if (own !== this.#turn) {
      track.stop();
      return;
    }
    this.#track = track;
    this.#video.srcObject = new MediaStream([track]);
    this.#video.hidden = false;
  }

  hide() {
    this.#turn += 1;
    this.#track?.stop();
    this.#track = undefined;
    this.#video.srcObject = null;
    this.#video.hidden = true;
  }
}

/** Firefox knows no such permission by name. */
async function isAllowed() {
  try {
    return (await navigator.permissions.query({ name: /** @type {PermissionName} */ ('camera') })).state === 'granted';
  } catch {
    return false;
  }
}
