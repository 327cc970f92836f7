// The worker's part: which key seals and opens which frame.

export { FrameWorker } from './frame-worker.js';
