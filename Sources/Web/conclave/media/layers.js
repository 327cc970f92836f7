// The layers in which this device sends its camera, so that each receiver gets a picture of the height that it shows (protocol section 6, "Layers").

import { Refusal, listIn } from '../wire/index.js';
import { pictureSize } from '../capture.js';

const RIDS = ['q', 'h', 'f']; // the lowest layer first
const THREE_LAYERS = 720; // pixels: a lower picture has two layers
const MOST_OF_MOTION = 720; // pixels
const RATES = [[180, 150_000], [360, 500_000], [720, 1_700_000]]; // pixels, bit/s

/**
 * The picture's shorter side in pixels: a phone held upright has as many pixels as one that is not. Until the camera is open, the size that will be requested.
 */
function heightOf(track) {
  const { width = 0, height = 0 } = track?.getSettings?.() ?? {};
  return Math.min(width, height) || height || pictureSize().height;
}

/**
 * How the picture of `track` is sent: `{height, shrink, preference}`, its height in pixels after it was divided by `shrink`, and what is kept of it when not all
 * fits. Frames are more than pixels in a picture of motion (mst-content-hint, section 5), and more pixels would take its frames.
 */
export function formatOf(track) {
  const height = heightOf(track);
  if (track?.contentHint !== 'motion') return { height, shrink: 1, preference: undefined };
  const shrink = Math.max(1, height / MOST_OF_MOTION);
  return { height: height / shrink, shrink, preference: 'maintain-framerate' };
}

/** The most bit/s for a picture of `height` pixels, interpolated between the steps of `RATES`. */
function rateOf(height) {
  const next = RATES.findIndex(([pixels]) => height <= pixels);
  if (next < 0) return RATES[RATES.length - 1][1];
  const [high, most] = RATES[next];
  const [low, least] = RATES[next - 1] ?? [0, most];
  return Math.round(least + ((most - least) * (height - low)) / (high - low));
}

/** The layer `index` of `count` of a picture (`formatOf`): each is half as high as the next. */
function encodingOf(index, count, { height, shrink }) {
  const part = 2 ** (count - 1 - index);
  return { scaleResolutionDownBy: part * shrink, maxBitrate: rateOf(height / part) };
}

/** The `sendEncodings` of a camera. Without `scalabilityMode` Chromium sends the layers of VP9 in one stream. */
function encodingsOf(picture, mode) {
  const rids = picture.height >= THREE_LAYERS ? RIDS : RIDS.slice(0, 2);
  return rids.map((rid, index) => ({ rid, ...encodingOf(index, rids.length, picture), ...mode }));
}

/**
 * The layers of one RTCRtpSender. The browser decides how many there are: one without simulcast has one encoding, and after an answer without
 * `a=simulcast:recv` every browser keeps only the first (WebRTC, `setRemoteDescription`). A single encoding has the whole picture.
 */
class Layers {
  #sender;
  #picture;
  #preference; // that the sender has; none is the browser's choice
  #unwanted = new Set();
  #isStale = false;
  #isSetting = false;

  constructor(sender, picture) {
    this.#sender = sender;
    this.#picture = picture;
  }

  /** The ids of the layers, lowest first; none for a sender of one encoding. */
  get rids() {
    const encodings = this.#sender.getParameters?.().encodings ?? [];
    return encodings.length > 1 ? encodings.map(({ rid }) => rid) : [];
  }

  /** Another picture is sent from now on. */
  fit(picture) {
    this.#picture = picture;
    this.settle();
  }

  /** The `layers` of `media.wanted`: all that are sent, in order. Throws `Refusal`, and changes nothing, for any others. */
  want(layers) {
    const { rids } = this;
    const isOwn = (layer, index) => layer?.rid === rids[index] && typeof layer.active === 'boolean';
    const told = listIn(layers, RIDS.length, 'layers');
    if (rids.length === 0 || told.length !== rids.length || !told.every(isOwn)) throw new Refusal('layers that are not sent');
    this.#unwanted = new Set(told.filter(({ active }) => !active).map(({ rid }) => rid));
    this.settle();
  }

  /** All layers are sent until the server says otherwise. */
  wantAll() {
    this.#unwanted.clear();
    this.settle();
  }

  /**
   * Sets the encodings to what is wanted now. Must be called after each answer, which may have left one encoding. One change at a time: `setParameters` accepts
   * only parameters that were read after the last change.
   */
  async settle() {
    this.#isStale = true;
    if (this.#isSetting) return;
    this.#isSetting = true;
    while (this.#isStale) {
      this.#isStale = false;
      await this.#set().catch((error) => console.warn(`Conclave: the layers stay as they were (${error.name})`)); // for example on a closed connection
    }
    this.#isSetting = false;
  }

  async #set() {
    const parameters = this.#sender.getParameters?.();
    const encodings = parameters?.encodings ?? [];
    const { preference } = this.#picture;
    const wanted = encodings.map(({ rid }, index) => ({
      ...encodingOf(index, encodings.length, this.#picture),
      active: encodings.length === 1 || !this.#unwanted.has(rid),
    }));
    const isSet = (encoding, index) => Object.entries(wanted[index]).every(([name, value]) => encoding[name] === value);
    const isPreferred = !parameters || preference === this.#preference; // not every browser reports it
    if (encodings.every(isSet) && isPreferred) return;
    encodings.forEach((encoding, index) => Object.assign(encoding, wanted[index]));
    if (!isPreferred) parameters.degradationPreference = preference ?? 'balanced'; // the browser's choice for a picture without a hint
    await this.#sender.setParameters(parameters);
    this.#preference = preference;
  }
}

/**
 * Adds a camera with a picture (`formatOf`) by `add(sendEncodings)`; returns `{transceiver, layers}`. A browser that refuses layers sends one encoding.
 */
export function addCamera(add, picture) {
  const added = (transceiver) => ({ transceiver, layers: new Layers(transceiver.sender, picture) });
  for (const encodings of [encodingsOf(picture, { scalabilityMode: 'L1T3' }), encodingsOf(picture)]) {
    try {
      return added(add(encodings));
    } catch {} // a browser without the mode, or without layers
  }
  return added(add([encodingOf(0, 1, picture)]));
}
