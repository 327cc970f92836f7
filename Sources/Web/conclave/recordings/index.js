// Recordings that the server cannot read: their format, their keys, and the checks of a reader.

export { manifestIn } from './manifest.js';
export { RecordingReader, Unreadable } from './recording-reader.js';
