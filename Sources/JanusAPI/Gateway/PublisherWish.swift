import MediaModel

/// The wishes of a publisher in `configure`, `publish` and `joinandconfigure`.
struct PublisherWish: Sendable {
  struct Stream: Sendable {
    var mid: String
    var isSent: Bool?
    var wantsKeyFrame: Bool
  }

  var display: String?
  var metadata: JSONTree?
  var bitrate: Int?
  var wantsKeyFrames: Bool
  /// The older form: all streams of a kind.
  var sendsAudio: Bool?
  var sendsVideo: Bool?
  var videoCodec: String?
  var streams: [Stream] = []
  /// Texts about its streams, by mid.
  var descriptions: [String: String] = [:]

  init(_ elements: Elements, limits: GatewayLimits) throws(JanusError) {
    display = try elements.text("display", limit: limits.displayBytes)
    metadata = try elements.metadata(limits)
    bitrate = try elements.count("bitrate")
    wantsKeyFrames = try elements.boolean("keyframe") ?? false
    sendsAudio = try elements.boolean("audio")
    sendsVideo = try elements.boolean("video")
    _ = try elements.codecs("audiocodec", known: RoomSettings.audioCodecs)
    videoCodec = try elements.codecs("videocodec", known: RoomSettings.videoCodecs)?.first
    for stream in try elements.objects("streams") ?? [] {
      guard let mid = try stream.text("mid") else { throw stream.missing("mid") }
      streams.append(
        Stream(
          mid: mid, isSent: try stream.boolean("send"), wantsKeyFrame: try stream.boolean("keyframe") ?? false))
    }
    for entry in try elements.objects("descriptions") ?? [] {
      guard let mid = try entry.text("mid") else { throw entry.missing("mid") }
      guard let text = try entry.text("description", limit: limits.descriptionBytes) else {
        throw entry.missing("description")
      }
      descriptions[mid] = text
    }
  }

  func apply(to stream: inout PublishedStream) {
    switch stream.kind {
    case .audio: if let sendsAudio { stream.isDisabled = !sendsAudio }
    case .video: if let sendsVideo { stream.isDisabled = !sendsVideo }
    }
    if let isSent = streams.last(where: { $0.mid == stream.mid })?.isSent { stream.isDisabled = !isSent }
    if let text = descriptions[stream.mid] { stream.text = text }
  }

  func wantsKeyFrame(of stream: PublishedStream) -> Bool {
    stream.kind == .video && (wantsKeyFrames || streams.contains { $0.mid == stream.mid && $0.wantsKeyFrame })
  }
}

extension Elements {
  func metadata(_ limits: GatewayLimits) throws(JanusError) -> JSONTree? {
    guard let value = self["metadata"] else { return nil }
    guard case .object = value else { throw invalid("metadata", "an object") }
    guard value.size <= limits.metadataBytes else {
      throw invalid("metadata", "an object of at most \(limits.metadataBytes) bytes")
    }
    return value
  }
}
