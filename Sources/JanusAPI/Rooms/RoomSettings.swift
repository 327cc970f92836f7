/// The settings of a room, by `create` and `edit`.
struct RoomSettings: Sendable, Hashable {
  static let audioCodecs = ["opus"]
  static let videoCodecs = ["vp8", "vp9", "av1", "h264", "h265"]

  var description: String
  var secret: String?
  var pin: String?
  var isPrivate = false
  /// The tokens that may join; nil: no token is needed.
  var allowed: Set<String>?
  /// The most publishers.
  var publishers = 3
  /// In bit/s, the most that a publisher sends; 0 for no limit.
  var bitrate = 0
  /// A publisher may not ask for more than `bitrate`.
  var capsBitrate = false
  var videoCodecs = ["vp8"]
  var tellsSpeakers = false
  var tellsJoining = false
  var requiresPrivateID = false
  var requiresEncryption = false
  var requiresSignedTokens = false

  /// Reads the members of `create`.
  init(_ elements: Elements, id: PluginID, limits: GatewayLimits) throws(JanusError) {
    description = try elements.text("description", limit: limits.descriptionBytes) ?? "Room \(id.description)"
    secret = try elements.text("secret")
    pin = try elements.text("pin")
    isPrivate = try elements.boolean("is_private") ?? false
    if let tokens = try elements.texts("allowed") { allowed = Set(tokens) }
    if let count = try elements.count("publishers"), count > 0 { publishers = count }
    bitrate = try elements.count("bitrate") ?? 0
    capsBitrate = try elements.boolean("bitrate_cap") ?? false
    _ = try elements.count("fir_freq")
    _ = try elements.codecs("audiocodec", known: Self.audioCodecs)
    videoCodecs = try elements.codecs("videocodec", known: Self.videoCodecs) ?? ["vp8"]
    tellsSpeakers = try elements.boolean("audiolevel_event") ?? false
    tellsJoining = try elements.boolean("notify_joining") ?? false
    requiresPrivateID = try elements.boolean("require_pvtid") ?? false
    requiresEncryption = try elements.boolean("require_e2ee") ?? false
    requiresSignedTokens = try elements.boolean("signed_tokens") ?? false
    if try elements.boolean("record") == true {
      throw JanusError(.roomInvalidElement, "Invalid element (record): this server does not record rooms")
    }
    if try elements.boolean("dummy_publisher") == true {
      throw JanusError(.roomInvalidElement, "Invalid element (dummy_publisher): this server has no dummy publishers")
    }
    if try elements.boolean("permanent") == true {
      throw JanusError(.roomUnknownError, "Can't save the room: put it into the server's configuration")
    }
    if (allowed?.count ?? 0) > limits.allowedTokens {
      throw JanusError(.roomInvalidElement, "Invalid element (allowed): at most \(limits.allowedTokens) tokens")
    }
  }

  /// Reads the members of `edit`; all of them are read before any has an effect.
  mutating func edit(_ elements: Elements, limits: GatewayLimits) throws(JanusError) {
    var edited = self
    edited.description =
      try elements.text("new_description", limit: limits.descriptionBytes) ?? description
    edited.secret = try elements.text("new_secret") ?? secret
    edited.pin = try elements.text("new_pin") ?? pin
    edited.isPrivate = try elements.boolean("new_is_private") ?? isPrivate
    edited.requiresPrivateID = try elements.boolean("new_require_pvtid") ?? requiresPrivateID
    edited.bitrate = try elements.count("new_bitrate") ?? bitrate
    if let count = try elements.count("new_publishers"), count > 0 { edited.publishers = count }
    _ = try elements.count("new_fir_freq")
    if try elements.boolean("permanent") == true {
      throw JanusError(.roomUnknownError, "Can't save the room: put it into the server's configuration")
    }
    self = edited
  }

  /// The bit rate of a publisher that asks for `wanted`; nil for no limit.
  func bitrate(wanted: Int?) -> Int? {
    guard let wanted, wanted > 0 else { return bitrate > 0 ? bitrate : nil }
    return capsBitrate && bitrate > 0 ? min(wanted, bitrate) : wanted
  }
}
