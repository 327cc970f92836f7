import MediaModel

extension HeaderExtensionIDs {
  /// The extensions that are used here, with the order of their lines in an answer.
  static let uris: [(String, any WritableKeyPath<HeaderExtensionIDs, UInt8> & Sendable)] = [
    ("urn:ietf:params:rtp-hdrext:ssrc-audio-level", \.audioLevel),
    ("urn:ietf:params:rtp-hdrext:sdes:mid", \.mid),
    ("urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id", \.rid),
    ("urn:ietf:params:rtp-hdrext:sdes:repaired-rtp-stream-id", \.repairedRID),
    ("urn:3gpp:video-orientation", \.videoOrientation),
    ("http://www.webrtc.org/experiments/rtp-hdrext/playout-delay", \.playoutDelay),
    (
      "https://aomediacodec.github.io/av1-rtp-spec/#dependency-descriptor-rtp-header-extension",
      \.dependencyDescriptor
    ),
    ("http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01", \.transportSequence),
    ("http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time", \.sendTime),
  ]

  /// The ids of a section's a=extmap lines (RFC 8285 section 8) that can be used in its `direction`, and which of them have their own
  /// direction.
  static func parse(
    _ attributes: [SessionDescription.Attribute], direction: MediaOffer.Direction
  ) -> (ids: HeaderExtensionIDs, oneWay: Set<UInt8>) {
    var ids = HeaderExtensionIDs()
    var oneWay: Set<UInt8> = []
    for attribute in attributes.all("extmap") {
      let words = attribute.value.split(separator: " ", maxSplits: 2)
      guard words.count >= 2, let path = uris.first(where: { $0.0 == words[1] })?.1 else { continue }
      let parts = words[0].split(separator: "/", maxSplits: 1)
      // 0 and 15 are reserved; ids above 255 are placeholders for ids that ran out.
      guard let id = parts.first.flatMap({ UInt8($0) }), id != 0, id != 15, ids[keyPath: path] == 0 else { continue }
      if parts.count == 2 {
        guard let own = MediaOffer.Direction(rawValue: String(parts[1])), own.serves(direction) else { continue }
        if own != .sendrecv { oneWay.insert(id) }
      }
      ids[keyPath: path] = id
    }
    return (ids, oneWay)
  }
}

extension MediaOffer.Direction {
  /// Whether an m-line can use an extension that is offered for `self`: in the direction in which it sends if it can send, else in which it
  /// receives.
  fileprivate func serves(_ media: MediaOffer.Direction) -> Bool {
    switch media {
    case .sendrecv, .sendonly: self == .sendrecv || self == .sendonly
    case .recvonly: self == .sendrecv || self == .recvonly
    case .inactive: self != .inactive
    }
  }
}
