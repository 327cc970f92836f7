// This device's keys, those of other devices and what people decided about them, and the words that let people into a call.

export { Admissions } from './admissions.js';
export { Directory, SENT_TO } from './directory.js';
export { Identity, fingerprintOf, isSignedBy, readable, sameDevice, spkiOf } from './identity.js';
export { makeStatement } from './vouching.js';
export { LinkSecret, isWordSigned, lastingLinkID, wordsIn } from './words.js';
