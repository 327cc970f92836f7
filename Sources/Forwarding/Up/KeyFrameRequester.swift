import MediaModel

/// Merges the receivers' wishes for a key frame of one stream into a PLI now and then (RFC 4585 6.3.1).
struct KeyFrameRequester {
  private let interval: Duration
  private var lastSent: Instant?
  /// No key frame was seen since the last request.
  private var isOutstanding = false
  /// When the next request is to be sent; nil when none is wanted.
  private(set) var deadline: Instant?

  init(interval: Duration) { self.interval = interval }

  /// - Parameter isNewSource: a slot just took this stream and shows nothing until the key frame; then only a request still unanswered holds this one back.
  mutating func request(_ now: Instant, isNewSource: Bool) {
    guard let lastSent else {
      deadline = now
      return
    }
    let allowed = isNewSource && !isOutstanding ? now : max(now, lastSent.advanced(by: interval))
    deadline = min(deadline ?? allowed, allowed)
  }

  /// Whether a PLI is due. It is repeated until a key frame comes only if `isAwaited`: else a stream whose key frames we cannot see would get PLIs for ever.
  mutating func takeDue(_ now: Instant, isAwaited: Bool) -> Bool {
    guard let due = deadline, due <= now else { return false }
    lastSent = now
    isOutstanding = true
    deadline = isAwaited ? now.advanced(by: interval) : nil
    return true
  }

  mutating func keyFrameArrived() {
    isOutstanding = false
    deadline = nil
  }
}
