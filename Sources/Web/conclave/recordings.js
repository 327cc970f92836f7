// Recordings: the library's second entry, for pages that record or play. It is apart from `index.js`, so that a page loads it only when somebody does.

export { RecordingReader, Unreadable, manifestIn } from './recordings/index.js';
