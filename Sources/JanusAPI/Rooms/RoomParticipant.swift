import MediaModel

/// Somebody who joined a room as a publisher, and publishes or does not.
struct RoomParticipant: Sendable {
  let number: ParticipantNumber
  let id: PluginID
  let handle: UInt64
  /// Known to its owner only: shows that a subscriber belongs to it.
  let privateID: UInt32
  /// The person, where a token names one.
  let identity: String?
  var display: String?
  var metadata: JSONTree?
  /// In bit/s, as asked for.
  var bitrate: Int?
  var videoCodec: String?
  var publication: Publication?
  /// Its media went silent, and has not come back.
  var isSilent = false

  /// Others know its streams.
  var isPublic: Bool { publication?.isUp ?? false }
}

/// A publisher's PeerConnection.
struct Publication: Sendable {
  var peer: PeerID
  var fingerprint: CertificateFingerprint
  var streams: [PublishedStream] = []
  var isUp = false
  /// The client says that it encrypts its frames, which the server cannot verify.
  var isEncrypted: Bool
  /// The index of each m-line's track, while the offer has the m-line.
  var indexes: [String: UInt8] = [:]

  func stream(mid: String) -> PublishedStream? { streams.first { $0.mid == mid } }

  /// The index of a m-line's track: the one that it has, or the lowest that is free.
  /// - Returns: nil if all 255 are taken.
  mutating func index(of mid: String) -> UInt8? {
    if let known = indexes[mid] { return known }
    let taken = Set(indexes.values)
    guard let free = (1...UInt8.max).first(where: { !taken.contains($0) }) else { return nil }
    indexes[mid] = free
    return free
  }
}

/// One m-line of a publisher.
struct PublishedStream: Sendable, Hashable {
  var track: TrackID
  var kind: MediaKind
  var mid: String
  var line: Int
  var format: PayloadFormat
  var hasLayers: Bool
  var text: String?
  /// The publisher stopped it.
  var isDisabled = false
  /// The room's administrator stopped it.
  var isModerated = false

  var isMuted: Bool { isDisabled || isModerated }
  var codec: String { format.codec.lowercased() }

  var tree: JSONTree {
    var object: JSONObject = [
      "type": .text(kind.rawValue), "mindex": JSONTree(line), "mid": .text(mid), "codec": .text(codec),
    ]
    object.add("description", text.map { .text($0) })
    object.add("disabled", isDisabled ? true : nil)
    object.add("moderated", isModerated ? true : nil)
    object.add("simulcast", hasLayers ? true : nil)
    object.add("h264_profile", parameter("profile-level-id", of: "h264"))
    object.add("vp9_profile", parameter("profile-id", of: "vp9"))
    return .object(object)
  }

  func parameter(_ name: String, of codec: String) -> JSONTree? {
    guard self.codec == codec else { return nil }
    let value = format.parameters.split(separator: ";").lazy.map { $0.drop { $0 == " " } }
      .first { $0.hasPrefix(name + "=") }
    return value.map { .text(String($0.dropFirst(name.utf8.count + 1))) }
  }
}
