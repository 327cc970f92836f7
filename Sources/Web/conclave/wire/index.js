// Bytes, the checks of the server's data, and the layouts of protocol section 5.

export { concat, equal, fromBase64, lp, random, sha256, toBase64, toHex, u32, u64, utf8 } from './bytes.js';
export {
  MAX_ENTRIES, MAX_LINKS, MAX_NUMBER, MAX_TRACK, Refusal, announcementIn, bucketsIn, bytesIn, callIDIn, callIn, changesIn, demandIn, entryIn,
  envelopeIn, epochIn, flagIn, hashIn, idIn, isCallID, isID, isWhole, listIn, listOf, listReplyIn, memberIn, nameTextIn, numberIn, objectIn,
  participantIn, recordingFields, replyIn, shape, slotsIn, tagsIn, trackIn, whole, wordsIn,
} from './checks.js';
export {
  NO_LIST, SECRET_BYTES, TAG_BYTES, TRACK_KEY_INFO, baseKeyOf, byUserThenDevice, callCodeOf, confirmationKeyOf, envelopeBytes, importSecret, isSecret, joinBytes,
  kidOf, listHashOf, partsOf, ratchet, rosterHashOf, tagOf,
  trackKeyBytes, trackKeyContext,
} from './transcript.js';
export { HPKE, canWrap, hpkeOpen, hpkeSeal, wrap } from './wrap.js';
