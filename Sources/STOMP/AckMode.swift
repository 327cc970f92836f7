/// How a subscriber acknowledges what it got.
package enum AckMode: String, CaseIterable, Sendable {
  /// Written is acknowledged.
  case auto
  /// An ACK counts for its message and all earlier ones of the subscription.
  case client
  /// An ACK counts for its message alone.
  case individual = "client-individual"
}
