// Recordings that the server cannot read: their format, their keys, the checks of a reader, and how a device records, uploads, plays and exports.

export { DeviceRecorder, recordingObstacle, streamsFor } from './device-recorder.js';
export { exportWebM } from './export.js';
export { manifestIn } from './manifest.js';
export { Player, SPEEDS } from './player.js';
export { RecordingReader, Unreadable } from './recording-reader.js';
export { RecordingWriter, endWitness, ownerOf } from './recording-writer.js';
export { ReelSource } from './reel-source.js';
export { SegmentUploader } from './segment-uploader.js';
export { openRecordings } from './store.js';
export { WebOutput, playingObstacle } from './web-output.js';
