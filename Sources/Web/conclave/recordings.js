// Recordings: the library's second entry, for pages that record or play. It is apart from `index.js`, so that a page loads it only when somebody does.

export {
  DeviceRecorder, Player, RecordingReader, RecordingWriter, ReelSource, SPEEDS, SegmentUploader, Unreadable, WebOutput, endWitness, exportWebM, manifestIn,
  openRecordings, ownerOf, playingObstacle, recordingObstacle, streamsFor,
} from './recordings/index.js';
