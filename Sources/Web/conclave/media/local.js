// The sources that this device sends: microphone, camera, screen; or tracks of the app in their place.

const screenWish = { video: { frameRate: { max: 15 } }, audio: true };

export class LocalMedia {
  #sources = new Map();
  #opening = new Map(); // by source: the request to the browser whose track is wanted; the results of all others are closed
  #own = new Map(); // by source: the app's track in place of the device; a copy is opened, so that changes to it do not affect the app's
  #capture;
  #ended;

  /** `ended(source)` is called when the browser ends a microphone or camera, for example because it was unplugged. */
  constructor({ capture, ended }) {
    this.#capture = capture;
    this.#ended = ended;
  }

  /** `{isOn, track}` of a source. */
  state(source) {
    return this.#sources.get(source) ?? { isOn: false, track: undefined };
  }

  /** Everything that was opened: `[source, {isOn, track}]`. */
  get all() {
    return [...this.#sources];
  }

  /** Whether the browser was asked for `source` and has not answered yet. */
  isOpening(source) {
    return this.#opening.has(source);
  }

  /** From now on `source` opens this track of the app; without one, the device. */
  use(source, track) {
    if (track) this.#own.set(source, track);
    else this.#own.delete(source);
  }

  hasOwn(source) {
    return this.#own.has(source);
  }

  /**
   * Opens `microphone` or `camera` in place of what is open; rejects like getUserMedia. Resolves with false, and opens nothing, if `source` was opened again or
   * turned off before the browser answered.
   */
  async open(source) {
    const own = this.#own.get(source);
    const request = own ? copyOf(own) : this.#capture.open(source);
    this.#opening.set(source, request);
    let track;
    try {
      track = await request;
    } catch (error) {
      if (this.#opening.get(source) !== request) return false;
      this.#opening.delete(source);
      throw error;
    }
    if (this.#opening.get(source) !== request) {
      track.stop();
      return false;
    }
    this.turnOff(source);
    track.addEventListener('ended', () => track === this.state(source).track && this.#ended(source));
    this.#sources.set(source, { isOn: true, track });
    return true;
  }

  /** Lets the user choose a screen, or takes a copy of `own`; `ended` is called when the browser's own button stops it. */
  async openScreen(ended, own) {
    const stream = own ? own.clone() : await navigator.mediaDevices.getDisplayMedia(screenWish);
    const [video] = stream.getVideoTracks();
    const [audio] = stream.getAudioTracks();
    video.contentHint = 'detail';
    video.addEventListener('ended', ended);
    this.#sources.set('screen', { isOn: true, track: video });
    if (audio) this.#sources.set('screen-audio', { isOn: true, track: audio });
  }

  /** Mutes without closing the microphone. If it is still being opened, it starts muted. */
  mute(source, isMuted) {
    const { track } = this.state(source);
    if (!track) return this.turnOff(source);
    track.enabled = !isMuted;
    this.#sources.set(source, { isOn: !isMuted, track });
  }

  /** Closes the device, so that its light goes out; the source is remembered as off. */
  turnOff(source) {
    this.#opening.delete(source);
    this.state(source).track?.stop();
    this.#sources.set(source, { isOn: false, track: undefined });
  }

  closeScreen() {
    for (const source of ['screen', 'screen-audio']) this.close(source);
  }

  /** As if `source` had never been opened. */
  close(source) {
    this.#own.delete(source);
    this.#opening.delete(source);
    this.state(source).track?.stop();
    this.#sources.delete(source);
  }

  closeAll() {
    this.#own.clear();
    this.#opening.clear();
    for (const { track } of this.#sources.values()) track?.stop();
    this.#sources.clear();
  }
}

async function copyOf(track) {
  if (track.readyState === 'ended') throw new DOMException('The track has ended.', 'InvalidStateError');
  return track.clone();
}
