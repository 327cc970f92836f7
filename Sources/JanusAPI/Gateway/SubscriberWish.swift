/// A stream, or all streams of a feed, that a subscriber names.
struct FeedWish: Sendable {
  var feed: PluginID
  /// nil for all of the feed.
  var mid: String?
  /// The line to show it, in `switch`.
  var line: String?
  var reference: String?
  var wish: SubscribedLine.Wish
  /// The older form of a subscription names the kinds.
  var takesAudio = true
  var takesVideo = true

  init(_ elements: Elements, _ kind: PluginIDKind, needsFeed: Bool = true) throws(JanusError) {
    feed = try elements.required("feed", elements.id("feed", kind))
    mid = try elements.text("mid")
    line = try elements.text("sub_mid")
    reference = try elements.text("crossrefid")
    wish = SubscribedLine.Wish()
    try wish.change(elements)
  }
}

extension SubscribedLine.Wish {
  /// Reads the members that a subscriber's `configure` has for a line; those that are missing stay.
  mutating func change(_ elements: Elements) throws(JanusError) {
    if let send = try elements.boolean("send") { isSent = send }
    // Both forms: layers of simulcast, and layers within a stream.
    if let layer = try elements.first(of: ["substream", "spatial_layer"], Elements.count) { highestLayer = layer }
    if let layer = try elements.first(of: ["temporal", "temporal_layer"], Elements.count) { highestTemporal = layer }
    _ = try elements.count("fallback")
    _ = try elements.count("min_delay")
    _ = try elements.count("max_delay")
  }
}

/// The lines that an `unsubscribe` names.
struct LineChoice: Sendable {
  var feed: PluginID?
  var mid: String?
  var line: String?

  init(_ elements: Elements, _ kind: PluginIDKind) throws(JanusError) {
    feed = try elements.id("feed", kind)
    mid = try elements.text("mid")
    line = try elements.text("sub_mid")
    guard feed != nil || line != nil else { throw elements.missing("feed") }
  }

  func contains(_ candidate: SubscribedLine) -> Bool {
    guard let source = candidate.source else { return false }
    return (feed.map { $0 == source.feed } ?? true) && (mid.map { $0 == source.stream.mid } ?? true)
      && (line.map { $0 == candidate.mid } ?? true)
  }
}
