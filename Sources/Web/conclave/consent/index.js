// Signatures about a recording, the grants of its key, and a call's recording as each participant's device sees it.

export { CallRecording } from './call-recording.js';
export { countOf, grantIn, holdersOf, makeGrant, makeGrants, makeRecordingKey, openGrant } from './grants.js';
export {
  NOTE_INFO, REEL_KEY_INFO, idBytes, nextKeyInfo, noteBytes, noteData, reelKeyBytes, reelKeyData, segmentKeyInfo, witnessBytes,
} from './layouts.js';
export { Untimely, makeStatement, openStatement, signed, statementIn } from './statement.js';
export { openTrackKeys, trackKeysIn } from './track-keys.js';
