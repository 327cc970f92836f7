import MediaModel

/// A subscriber's handle: lines that show streams of the room's publishers, in a PeerConnection that the server offers.
struct RoomSubscription: Sendable {
  enum Phase: Sendable, Hashable {
    /// No offer has been made, or the PeerConnection has ended.
    case none
    /// The media plane writes the offer.
    case offering
    /// The client has the offer.
    case offered
    /// The media plane reads the answer.
    case answering
    case settled
  }

  let room: PluginID
  var usesMediaStreamIDs: Bool
  /// Publishers that go make new offers.
  var followsPublishers: Bool
  var peer: PeerID?
  var phase: Phase = .none
  /// The number of the last offer.
  var offer: UInt64 = 0
  var lines: [SubscribedLine] = []
  /// Something changed that the last offer does not say.
  var isOutdated = false
  /// The next offer has new ICE credentials.
  var restartsICE = false
  var isUp = false
  var isPaused = false
  /// Whether its feeds say that they encrypt their frames; all say the same.
  var isEncrypted: Bool?

  var isNegotiating: Bool { phase == .offering || phase == .offered || phase == .answering }

  /// Shows a stream in an idle line that its receiver's decoder fits, or in a new one.
  mutating func show(_ source: SubscribedLine.Source, wish: SubscribedLine.Wish, reference: String?) {
    let idle = lines.firstIndex { line in
      line.source == nil && !line.isRefused && line.kind == source.stream.kind
        && line.format.carries(source.stream.format) && source.stream.format.carries(line.format)
    }
    if let idle {
      lines[idle].source = source
      lines[idle].wish = wish
      lines[idle].reference = reference
      lines[idle].isReady = false
    } else {
      lines.append(
        SubscribedLine(
          index: lines.count, kind: source.stream.kind, format: source.stream.format, source: source, wish: wish,
          reference: reference))
    }
    isOutdated = true
  }

  /// Stops the lines for which `isUnwanted` holds.
  /// - Returns: whether there was one.
  mutating func hide(where isUnwanted: (SubscribedLine) -> Bool) -> Bool {
    let hidden = lines.indices.filter { lines[$0].source != nil && isUnwanted(lines[$0]) }
    for index in hidden {
      lines[index].source = nil
      lines[index].isReady = false
    }
    if !hidden.isEmpty { isOutdated = true }
    if lines.allSatisfy({ $0.source == nil }) { isEncrypted = nil }
    return !hidden.isEmpty
  }

  func shows(feed: PluginID, mid: String) -> Bool {
    lines.contains { $0.source?.feed == feed && $0.source?.stream.mid == mid }
  }

  /// The pins of the active lines, by mid.
  var pins: [String: LinePin] {
    var pins: [String: LinePin] = [:]
    for line in lines { pins[line.mid] = line.pin(isPaused: isPaused) }
    return pins
  }

  var tree: JSONTree { .list(lines.map(\.tree)) }
}

/// One m-line of a subscriber. It keeps its place for the life of the PeerConnection.
struct SubscribedLine: Sendable {
  struct Source: Sendable {
    var feed: PluginID
    /// The peer of the feed.
    var peer: PeerID
    var display: String?
    var stream: PublishedStream
  }

  /// How much of its stream the subscriber wants.
  struct Wish: Sendable {
    var isSent = true
    var highestLayer: Int?
    var highestTemporal: Int?
  }

  let index: Int
  let kind: MediaKind
  let format: PayloadFormat
  var source: Source?
  var wish = Wish()
  var reference: String?
  /// Offered, answered, and the PeerConnection is up.
  var isReady = false
  /// The client answered with port 0.
  var isRefused = false

  var mid: String { String(index) }

  func pin(isPaused: Bool) -> LinePin? {
    guard let source, !isRefused else { return nil }
    return LinePin(
      publisher: source.peer, track: source.stream.track, highestLayer: wish.highestLayer,
      highestTemporal: wish.highestTemporal,
      isPaused: isPaused || !wish.isSent)
  }

  func label(usingIDs: Bool) -> String {
    guard usingIDs, let source else { return "janus janus\(mid)" }
    return "\(source.feed.description) \(source.stream.mid)"
  }

  var tree: JSONTree {
    var object: JSONObject = [
      "type": .text(kind.rawValue), "active": .boolean(source != nil), "mindex": JSONTree(index), "mid": .text(mid),
    ]
    object.add("crossrefid", source == nil ? nil : reference.map { .text($0) })
    object.add("ready", .boolean(isReady))
    object.add("send", .boolean(wish.isSent))
    guard let source else { return .object(object) }
    object.add("feed_id", source.feed.tree)
    object.add("feed_display", source.display.map { .text($0) })
    object.add("feed_mid", .text(source.stream.mid))
    object.add("feed_description", source.stream.text.map { .text($0) })
    object.add("codec", .text(source.stream.codec))
    object.add("h264-profile", source.stream.parameter("profile-level-id", of: "h264"))
    object.add("vp9-profile", source.stream.parameter("profile-id", of: "vp9"))
    object.add("moderated", source.stream.isModerated ? true : nil)
    return .object(object)
  }
}
