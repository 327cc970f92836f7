/// Limits of one frame from a peer (protocol section 10), in bytes unless said otherwise. The decoder checks them while it reads.
package struct FrameLimits: Sendable, Equatable {
  /// The longest command of the specifications has 11.
  package var command = 32
  /// Number of header lines.
  package var headers = 64
  /// One header line without its end.
  package var headerLine = 8 << 10
  /// All header lines together.
  package var head = 512 << 10
  package var body = 1 << 20

  package init() {}

  /// Before CONNECT has been accepted: enough for a token, and hardly any body.
  package static var beforeLogin: FrameLimits {
    var limits = FrameLimits()
    limits.head = 64 << 10
    limits.body = 4 << 10
    return limits
  }

  /// For a client, which reads frames of its own server.
  package static var client: FrameLimits {
    var limits = FrameLimits()
    limits.body = 16 << 20
    return limits
  }
}
