// The worker between the encoders and the network: every sent frame is sealed here, every received one is opened.

import { FrameWorker } from './frames/index.js';

const REPORT_MS = 1_000;

const worker = new FrameWorker((message) => postMessage(message));

addEventListener('rtctransform', ({ transformer }) => {
  const end = worker.attach(transformer);
  transformer.readable
    .pipeThrough(new TransformStream({ transform: (frame, controller) => end.transform(frame, controller) }))
    .pipeTo(transformer.writable)
    .catch(() => {}); // the track is gone
});

addEventListener('message', ({ data }) => worker.take(data));
setInterval(() => worker.report(), REPORT_MS);
postMessage({ type: 'ready' });
