/// Pauses between the attempts to send something, doubled after each failure.
struct ExponentialBackoff: Sendable {
  /// After the first failure.
  var first: Duration
  var longest: Duration

  /// - Parameter jitter: 0 to 1, random: spreads the retries of those that failed together.
  /// - Returns: between half of the doubled pause and all of it.
  func pause(after failures: Int, jitter: Double) -> Duration {
    let doubled = min(first * Int(1 << min(max(0, failures - 1), 16)), longest)
    return doubled * (0.5 + 0.5 * min(max(0, jitter), 1))
  }
}
