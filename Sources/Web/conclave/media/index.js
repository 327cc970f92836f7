// Microphone, camera and screen, and the path on which they go to the server and from it.

export { Capture, canBlur } from './capture.js';
export { Media, startWorker } from './media.js';
export { QualityMeter } from './quality.js';
export { Sending } from './sending.js';
export { Uplink } from './uplink.js';
export { VideoWishes } from './video-wishes.js';
