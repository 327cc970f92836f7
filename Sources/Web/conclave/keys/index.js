// Key agreement (protocol section 5): lists, epochs, envelopes, confirmations, and the devices that may hear.

export { confirmationOf, rosterOf, stopOf } from './call-trust.js';
export { ringEpoch } from './envelopes.js';
export { JoinKeys } from './join-keys.js';
export { Untold } from './key-warnings.js';
export { KeyAgreement } from './keys.js';
export { MessageSealer } from './messages.js';
export { nameOf } from './roster.js';
export { RosterWatch, exactName } from './roster-watch.js';
export { seatsOf } from './seats.js';
