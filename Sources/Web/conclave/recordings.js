// Recordings: the library's second entry, for pages that record or play. It is apart from `index.js`, so that a page loads it only when somebody does.

export {
  RecordingReader, RecordingWriter, SegmentUploader, Unreadable, endWitness, manifestIn, openRecordings, ownerOf,
} from './recordings/index.js';
