package import MediaModel

/// An offer that passed the call's rules: the shell negotiates it, configures the peer, and sends the `MediaAnswer` once the SFU has confirmed.
package struct Negotiate: Sendable, Hashable {
  package var peer: PeerID
  package var call: CallID
  package var participant: ParticipantNumber
  /// It takes part in the key agreement; the same during its whole stay.
  package var isOnKeyList: Bool
  package var isGuest: Bool
  /// The index of the user among the call's members, the same for all its participants.
  package var member: Int
  package var offer: MediaOffer
  /// The sending sections with their track ids, in the order of the request.
  package var tracks: [NamedTrack]
  /// The video codecs that the call's policy allows.
  package var codecs: [String]

  package init(
    peer: PeerID, call: CallID, participant: ParticipantNumber, isOnKeyList: Bool, isGuest: Bool = false,
    member: Int, offer: MediaOffer, tracks: [NamedTrack], codecs: [String]
  ) {
    self.peer = peer
    self.call = call
    self.participant = participant
    self.isOnKeyList = isOnKeyList
    self.isGuest = isGuest
    self.member = member
    self.offer = offer
    self.tracks = tracks
    self.codecs = codecs
  }
}
