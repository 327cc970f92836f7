// Recordings: the library's second entry, for pages that record or play. It is apart from `index.js`, so that a page loads it only when somebody does.

export {
  DeviceRecorder, Player, Recordings, SPEEDS, WebOutput, exportWebM, openRecordings, playingObstacle, recordingObstacle, streamsFor,
} from './recordings/index.js';
