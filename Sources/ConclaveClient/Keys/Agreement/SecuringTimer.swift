import MediaModel

/// How long this device may send under epoch 1, whose key is also held by devices that only rang: 10 s with signaling, 60 s in total, from its
/// first frame.
struct SecuringTimer: Sendable {
  static let connectedTime: Duration = .seconds(10)
  static let time: Duration = .seconds(60)

  private var began: Instant?
  private var isConnected = true
  private var connectedSince: Instant?
  private var connected: Duration = .zero

  mutating func begin(now: Instant) {
    guard began == nil else { return }
    began = now
    connectedSince = isConnected ? now : nil
  }

  mutating func signaling(_ isConnected: Bool, now: Instant) {
    guard isConnected != self.isConnected else { return }
    self.isConnected = isConnected
    if let connectedSince { connected += connectedSince.duration(to: now) }
    connectedSince = isConnected && began != nil ? now : nil
  }

  func isOver(now: Instant) -> Bool { due.map { $0 <= now } ?? false }

  var due: Instant? {
    guard let began else { return nil }
    let inAll = began.advanced(by: Self.time)
    guard let connectedSince else { return connected >= Self.connectedTime ? began : inAll }
    return min(inAll, connectedSince.advanced(by: Self.connectedTime - connected))
  }
}
