// Which key seals and opens which frame: the worker's part, and what a reader of recorded frames needs of it.

export { FrameWorker } from './frame-worker.js';
export { clearBytes } from './frames.js';
export { TAG_BYTES, open, parseHeader } from './sframe.js';
