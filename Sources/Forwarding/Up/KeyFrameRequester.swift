import MediaModel

/// How a sender accepts requests for a key frame.
enum KeyFrameFeedback {
  /// PLI (RFC 4585 section 6.3.1).
  case pictureLoss
  /// FIR (RFC 5104 section 4.3.1).
  case fullIntraRequest
}

/// Merges the receivers' wishes for a key frame of one stream into occasional requests (RFC 4585 6.3.1).
struct KeyFrameRequester {
  /// Browsers ignore a request less than 300 ms after the previous one (libwebrtc, `EncoderRtcpFeedback`).
  static let cameraInterval = Duration.milliseconds(334)
  /// The key frames of a screen are large.
  static let screenInterval = Duration.milliseconds(500)

  /// After this time of requests, an awaited key frame is not expected any longer.
  static let patience = Duration.seconds(3)

  private let interval: Duration
  private var lastSent: Instant?
  /// Time from the last request to the next: longer than `interval` while no key frame has answered on a long path.
  private var spacing: Duration
  /// When the next request must be sent; nil if none is wanted.
  private(set) var deadline: Instant?
  /// FIR's number of the last request (RFC 5104 section 4.3.1.1). A repeated request gets a new one: two round trips later it is a new wish.
  private(set) var sequence: UInt8 = 0
  /// Since when requests are repeated; nil if none is.
  private var awaitedSince: Instant?

  init(interval: Duration) {
    self.interval = interval
    spacing = interval
  }

  mutating func request(_ now: Instant) {
    let allowed = max(now, lastSent?.advanced(by: spacing) ?? now)
    deadline = min(deadline ?? allowed, allowed)
  }

  /// Whether a request is due. It is repeated until a key frame comes only if `isAwaited`: otherwise a stream whose key frames we cannot see would be sent requests
  /// forever.
  /// - Parameter roundTrip: to the sender.
  mutating func takeDue(_ now: Instant, isAwaited: Bool, roundTrip: Duration) -> Bool {
    guard let due = deadline, due <= now else { return false }
    lastSent = now
    sequence &+= 1
    spacing = max(interval, roundTrip * 2)
    deadline = isAwaited ? now.advanced(by: spacing) : nil
    awaitedSince = isAwaited ? awaitedSince ?? now : nil
    return true
  }

  /// Requests have been repeated for `patience`: the stream seems to have no key frame that can be recognized.
  func isUnanswered(_ now: Instant) -> Bool {
    awaitedSince.map { $0.advanced(by: Self.patience) <= now } ?? false
  }

  mutating func keyFrameArrived() {
    spacing = interval
    deadline = nil
    awaitedSince = nil
  }
}
