// The sources that this device captures: microphone, camera, screen.

const screenWish = { video: { frameRate: { max: 15 } }, audio: true };

export class LocalMedia {
  #sources = new Map();
  #capture;
  #ended;

  /** `ended(source)` is called when the browser ends a microphone or camera, as when it was unplugged. */
  constructor({ capture, ended }) {
    this.#capture = capture;
    this.#ended = ended;
  }

  /** `{isOn, track}` of a source. */
  state(source) {
    return this.#sources.get(source) ?? { isOn: false, track: undefined };
  }

  /** All that was opened: `[source, {isOn, track}]`. */
  get all() {
    return [...this.#sources];
  }

  /** Opens `microphone` or `camera`; rejects as getUserMedia does. */
  async open(source) {
    const track = await this.#capture.open(source);
    track.addEventListener('ended', () => track === this.state(source).track && this.#ended(source));
    this.#sources.set(source, { isOn: true, track });
  }

  /** Lets the user choose a screen; `ended` is called when the browser's own button stops it. */
  async openScreen(ended) {
    const stream = await navigator.mediaDevices.getDisplayMedia(screenWish);
    const [video] = stream.getVideoTracks();
    const [audio] = stream.getAudioTracks();
    video.contentHint = 'detail';
    video.addEventListener('ended', ended);
    this.#sources.set('screen', { isOn: true, track: video });
    if (audio) this.#sources.set('screen-audio', { isOn: true, track: audio });
  }

  /** Silence without closing the microphone. */
  mute(source, isMuted) {
    const { track } = this.state(source);
    track.enabled = !isMuted;
    this.#sources.set(source, { isOn: !isMuted, track });
  }

  /** Closes the device, so that its light goes out; the source is remembered as off. */
  turnOff(source) {
    this.state(source).track?.stop();
    this.#sources.set(source, { isOn: false, track: undefined });
  }

  closeScreen() {
    for (const source of ['screen', 'screen-audio']) {
      this.state(source).track?.stop();
      this.#sources.delete(source);
    }
  }

  closeAll() {
    for (const { track } of this.#sources.values()) track?.stop();
    this.#sources.clear();
  }
}
