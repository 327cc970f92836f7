/// Why a datagram, or one receiver's copy of it, was not used. Every dropped datagram is counted under one of these, and nothing else happens.
package enum DropReason: UInt8, Sendable, CaseIterable {
  /// The first byte belongs to no protocol of RFC 7983.
  case unknownKind
  /// Too short, or its lengths contradict each other.
  case malformed
  /// A message that this side never answers: a STUN response to none of our checks, or a method other than Binding.
  case unexpected
  /// A check for a fragment that no peer has, or any other datagram from an address that passed no check.
  case unknownPeer
  /// The integrity check, the SRTP tag or the certificate's fingerprint is wrong.
  case unauthenticated
  /// Seen before, or too old for the replay window.
  case replayed
  /// One peer uses more SSRCs than are kept.
  case tooManySources
  /// Media or DTLS before the peer has keys, or after it has lost them.
  case notConnected
  /// Longer than an Ethernet frame can hold.
  case tooLong
  /// An authentic check from an address that belongs to another live peer.
  case addressTaken
  /// An authentic check that requests something this side does not do; it is answered with an error.
  case refused
  /// A handshake that failed.
  case handshakeFailed
  /// DTLS beyond what may wait while a step of the same handshake is running.
  case handshakeBusy
  /// An SSRC that is neither announced nor names a track by its MID extension.
  case unknownStream
  /// A media packet that has already arrived, itself or as RTX.
  case duplicate
  /// Too far behind the newest packet of its stream.
  case late
  /// The track is muted, or its participant is held.
  case muted
  /// A payload type that was not negotiated, with the sender or with this receiver.
  case payloadType
  /// An RTX packet without a packet in it: a probe.
  case emptyRetransmission
  /// A packet that contains only padding, with which a sender without RTX probes its path. Receivers see no gap.
  case padding
  /// For a slot that waits for a key frame.
  case awaitingKeyFrame
  /// A packet of a layer that this receiver does not get.
  case notSelected
  /// Its dependency descriptor cannot be read, or names a frame that this receiver did not get.
  case dependencies
  /// Too many packets wait for a receiver's narrow path.
  case paced
  /// From before the slot got its source.
  case beforeSwitch
  /// Its number is further ahead than packets can have been lost: the slot waits for a key frame.
  case jumped
  /// No room in the outbox.
  case outboxFull
  /// The cipher refused because the sequence number was already used: a bug of ours.
  case notProtected
  /// Requested again, but not kept, or beyond the peer's budget.
  case notRetransmitted
  /// Transport-wide feedback beyond a receiver's limit, or whose clock has jumped.
  case feedback
  /// A check or a flight of DTLS to an address that has not proven that it receives them, beyond the peer's budget.
  case unproven
  /// The SFrame header of the packet's frame names a participant or track other than the sender's, or a frame of Opus or VP8 has none.
  case sframeForeign
  /// No room in the ring to another worker that has peers of the call.
  case relayFull
  /// Media or RTCP beyond the budget of its track or its participant.
  case tooMuch
  /// Media or RTCP that waited too long for the worker.
  case stale
}
