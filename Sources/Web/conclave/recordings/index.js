// Recordings that the server cannot read: their format, their keys, the checks of a reader, and how a device records, uploads, plays and exports.

export { DeviceRecorder, recordingObstacle, streamsFor } from './device-recorder.js';
export { exportWebM } from './export.js';
export { Player, SPEEDS } from './player.js';
export { Recordings } from './recordings.js';
export { openRecordings } from './store.js';
export { WebOutput, playingObstacle } from './web-output.js';
