// The wishes of a server’s path for its transceivers: codecs, header extensions, and what gives way on a slow path.

const LAYER_IDS = ['urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id', 'urn:ietf:params:rtp-hdrext:sdes:repaired-rtp-stream-id'];
const DESCRIPTOR = 'https://aomediacodec.github.io/av1-rtp-spec/#dependency-descriptor-rtp-header-extension';

/** VP8 before the other codecs that the worker can open, and no codec that it cannot. The call's policy decides among them. */
export function preferCodecs(transceiver) {
  const codecs = RTCRtpReceiver.getCapabilities('video')?.codecs ?? [];
  const named = (name) => codecs.filter(({ mimeType }) => mimeType.toLowerCase() === `video/${name}`);
  transceiver.setCodecPreferences([...named('vp8'), ...named('vp9'), ...named('av1'), ...named('rtx')]);
}

/**
 * Requests dependency descriptors in a slot, by which the browser knows which frames it can do without. Chromium sends them, but does not offer to receive them
 * by itself (WebRTC Extensions, section 5.2).
 */
export function takeDescriptors(transceiver) {
  const extensions = transceiver.getHeaderExtensionsToNegotiate?.();
  if (!extensions?.some(({ uri }) => uri === DESCRIPTOR)) return;
  const offered = extensions.map((extension) => (extension.uri === DESCRIPTOR ? { ...extension, direction: 'sendrecv' } : extension));
  transceiver.setHeaderExtensionsToNegotiate(offered);
}

/**
 * Offers the ids of layers. Chromium gives a new transceiver the directions that one before it has negotiated: a camera that is started after slots would have layers
 * without their ids, and Chromium refuses its own offer.
 */
export function offerLayerIDs(transceiver) {
  const extensions = transceiver.getHeaderExtensionsToNegotiate?.();
  if (!extensions?.some(({ uri }) => LAYER_IDS.includes(uri))) return;
  const offered = extensions.map((extension) => (LAYER_IDS.includes(extension.uri) ? { ...extension, direction: 'sendrecv' } : extension));
  transceiver.setHeaderExtensionsToNegotiate(offered);
}

/** On a slow path a screen gets fewer pictures a second rather than fewer pixels, so that its text stays readable (mst-content-hint, section 5). */
export function keepSharp(sender) {
  const parameters = sender.getParameters?.();
  if (parameters) sender.setParameters({ ...parameters, degradationPreference: 'maintain-resolution' }).catch(() => {}); // not in every browser
}
