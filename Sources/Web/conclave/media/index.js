// Microphone, camera and screen, and the path on which they go to the server and from it.

export { PATH_EVENTS } from './media-path.js';
export { QualityMeter } from './quality.js';
export { GONE, Sending } from './sending.js';
export { ServerPath } from './server-path.js';
export { Uplink } from './uplink.js';
export { VideoWishes } from './video-wishes.js';
export { WorkerAnswers, startWorker } from './worker.js';

/** @typedef {import('./media-path.js').MediaPath} MediaPath */
