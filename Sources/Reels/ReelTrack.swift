import MediaModel
import Octets
import RTP
import Recording

/// One RTP stream of a recorded track: a track has one, or one for each simulcast layer.
final class ReelLayer {
  /// A stream is dead after this time without a packet.
  static let deadAfter = Duration.seconds(1)
  /// Time between two requests for a key frame of a stream.
  static let keyFramePause = Duration.seconds(2)
  /// The longest time without a key frame, for those who jump to a place.
  static let keyFrameInterval = Duration.seconds(20)

  /// A frame whose key may still be exported, or one behind it.
  struct Held {
    var frame: FrameAssembler.Frame
    var keyID: FrameKeyID
  }

  let rank: UInt8
  var assembler = FrameAssembler()
  /// As the SFU counts streams of the sender that followed one another.
  var restarts: UInt32?
  var lastPacket: Instant?
  /// The sender's newest report: a timestamp and its instant.
  var report: (timestamp: UInt32, at: Instant)?
  /// The first packet that is known.
  var arrival: (timestamp: UInt32, at: Instant)?
  var held: [Held] = []
  var heldBytes = 0
  /// Pictures are stored from the next key frame on.
  var awaitsKeyFrame = true
  var lastKeyFrame: Instant?
  private var lastRequest: Instant?
  /// Frames are missing since then.
  var gap: Reel.Gap?
  /// The last frame that was stored, as a stream of the reel.
  var stream: Reel.Stream?
  /// When it arrived.
  var lastStored: Instant?
  /// The last wish that was sent, and when it is repeated.
  var wish: ReelWish.Kind?

  init(rank: UInt8) { self.rank = rank }

  func isAlive(_ now: Instant) -> Bool { lastPacket.map { $0.advanced(by: Self.deadAfter) > now } ?? false }

  /// Something was not stored that would have continued what is stored.
  func miss(_ reason: GapReason, packets: UInt32 = 0) {
    guard stream != nil, let lastStored else { return }
    if gap == nil { gap = Reel.Gap(reason: reason, since: lastStored, packets: 0) }
    gap?.packets &+= packets
  }

  func takeKeyFrameRequest(_ now: Instant) -> Bool {
    guard lastRequest.map({ $0.advanced(by: Self.keyFramePause) <= now }) ?? true else { return false }
    lastRequest = now
    return true
  }

  /// Nothing of it is stored for now, and nothing is missing.
  func leave() {
    stream = nil
    gap = nil
  }

  /// The sender's packets are another stream from now on, or are not asked for.
  func restart() {
    assembler = FrameAssembler()
    report = nil
    arrival = nil
    held = []
    heldBytes = 0
    awaitsKeyFrame = true
  }
}

/// A recorded track.
final class ReelTrack {
  private(set) var description: UpTrackDescription
  private(set) var layers: [ReelLayer]
  /// The layer that is stored; nil before its first key frame.
  var shown: ReelLayer?
  private(set) var codec: PayloadCodec = .other
  private(set) var clockRate: UInt32 = 90_000
  private var payloads: [UInt8: PayloadCodec] = [:]

  init(_ description: UpTrackDescription) {
    self.description = description
    layers = (0..<max(1, description.rids.count)).map { ReelLayer(rank: UInt8($0)) }
    describe(description)
  }

  var id: TrackID { description.track }
  var isVideo: Bool { description.source.kind == .video }
  /// Its frames can be put together.
  var isStorable: Bool { codecCode != nil }

  /// As in a stream record.
  var codecCode: UInt8? {
    switch codec {
    case .opus: 1
    case .vp8: 2
    case .vp9: 3
    case .h264, .av1, .other: nil
    }
  }

  func describe(_ description: UpTrackDescription) {
    self.description = description
    payloads = [:]
    for format in description.formats {
      let codec = PayloadCodec(name: format.codec)
      if payloads.isEmpty {
        self.codec = codec
        clockRate = max(1, format.clockRate)
      }
      payloads[format.payloadType] = codec
    }
  }

  /// nil for a payload type of another codec than the first: a sender keeps to it.
  func codec(of payloadType: UInt8) -> PayloadCodec? { payloads[payloadType] == codec ? codec : nil }

  /// In pixels, as browsers send layers.
  static func height(of rank: UInt8) -> Int { 180 << Int(min(rank, 4)) }

  /// The layer to store: the highest one that flows and is not higher than the bound, else the lowest that flows.
  func best(bound: Int, now: Instant) -> ReelLayer? {
    guard layers.count > 1 else { return layers[0] }
    let alive = layers.filter { $0.isAlive(now) }
    return alive.last { Self.height(of: $0.rank) <= bound } ?? alive.first
  }

  /// The layer that the sender is asked to encode for the recording: the lowest that suffices.
  func wanted(minimum: Int) -> ReelLayer {
    layers.first { layers.count == 1 || Self.height(of: $0.rank) >= minimum } ?? layers[layers.count - 1]
  }
}
