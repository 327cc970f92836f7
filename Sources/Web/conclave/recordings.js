// Recordings: the library's second entry, for pages that record or play. It is apart from `index.js`, so that a page loads it only when somebody does.

export {
  DeviceRecorder, RecordingReader, RecordingWriter, ReelSource, SegmentUploader, Unreadable, endWitness, exportWebM, manifestIn, openRecordings, ownerOf,
  recordingObstacle, streamsFor,
} from './recordings/index.js';
