// Which camera, microphone and speaker this device uses. The person chooses; if a chosen device is absent, the browser uses another.

const sources = { videoinput: 'camera', audioinput: 'microphone', audiooutput: 'speaker' };
const voice = { echoCancellation: true, noiseSuppression: true, autoGainControl: true };
const GONE = ['OverconstrainedError', 'NotFoundError'];
const PROCESSORS = 8; // for LARGE: two encode its three layers at 6 to 10 frames a second (docs/benchmarks.md); how many suffice was not measured
const USUAL = { width: 960, height: 540 };
const LARGE = { width: 1_280, height: 720 };
const SIGNING_RATE = 20; // pictures a second by which sign language is understood

/** The size in pixels that is requested of a camera, depending on what this device can encode. */
export const pictureSize = () => (navigator.hardwareConcurrency >= PROCESSORS ? LARGE : USUAL);

function picture(isVideoFirst) {
  const { width, height } = pictureSize();
  const wished = { width: { ideal: width }, height: { ideal: height }, frameRate: { ideal: 30, max: 30 } };
  // A camera's mode with fewer pixels and this rate is better than one with more pixels; a camera that has none is used all the same.
  return isVideoFirst ? { ...wished, advanced: [{ frameRate: { min: SIGNING_RATE } }] } : wished;
}

/** Events: `change` with `{source}`, when another device is chosen; `inputs`, when a device was connected or removed. */
export class Capture extends EventTarget {
  /**
   * The ids of the chosen devices, '' for the browser's choice; `facing` is `user` or `environment`, and is used if no camera is chosen. `isVideoFirst` is for
   * people who sign: the picture moves smoothly rather than being sharp, and the camera stays on where the path is poor.
   */
  choice = { camera: '', microphone: '', speaker: '', facing: 'user', hasBlur: false, isVideoFirst: false };

  constructor() {
    super();
    globalThis.navigator?.mediaDevices?.addEventListener?.('devicechange', () => this.dispatchEvent(new Event('inputs')));
  }

  /** The available devices: `{source, id, label}`. Browsers name them only after one has been opened. */
  async inputs() {
    const devices = await navigator.mediaDevices.enumerateDevices();
    return devices.map(({ kind, deviceId, label }) => ({ source: sources[kind], id: deviceId, label }));
  }

  /**
   * Uses another device from now on, in the running call, too. `choice` is a part of `this.choice`.
   * @param {Record<string, string | boolean>} choice
   */
  choose(choice) {
    const before = this.choice;
    this.choice = { ...before, ...choice };
    const isOther = (name) => before[name] !== this.choice[name];
    if (['camera', 'facing', 'hasBlur', 'isVideoFirst'].some(isOther)) this.#changed('camera');
    for (const source of ['microphone', 'speaker']) if (isOther(source)) this.#changed(source);
  }

  /** The camera on the other side of a phone. */
  flip() {
    this.choose({ camera: '', facing: this.choice.facing === 'user' ? 'environment' : 'user' });
  }

  /** A track of `microphone` or `camera`; rejects like getUserMedia. */
  async open(source) {
    const [track] = (await this.#stream(source)).getTracks();
    if (source === 'camera' && this.choice.isVideoFirst) track.contentHint = 'motion';
    if (source === 'camera' && this.choice.hasBlur && canBlur(track)) await track.applyConstraints({ backgroundBlur: true }).catch(() => {});
    return track;
  }

  /** A browser may ignore the chosen device if it is `ideal`, so it is requested as `exact`. An absent device is skipped. */
  async #stream(source) {
    const { [source]: id } = this.choice;
    try {
      return await navigator.mediaDevices.getUserMedia(this.#wish(source, id));
    } catch (error) {
      if (!id || !GONE.includes(error.name)) throw error;
      return navigator.mediaDevices.getUserMedia(this.#wish(source));
    }
  }

  #wish(source, id = '') {
    const device = id ? { deviceId: { exact: id } } : {};
    if (source === 'microphone') return { audio: { ...voice, ...device } };
    return { video: { ...picture(this.choice.isVideoFirst), ...(id ? device : { facingMode: { ideal: this.choice.facing } }) } };
  }

  #changed(source) {
    this.dispatchEvent(new CustomEvent('change', { detail: { source } }));
  }
}

/** Whether the browser can blur what is behind the person on this camera's track. */
export const canBlur = (track) => Boolean(track?.getCapabilities?.().backgroundBlur?.includes(true));
