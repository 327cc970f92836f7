/// Growing pauses between attempts, spread so that the devices of a restarted server do not return all at once.
package struct Backoff: Sendable {
  private var failures = 0

  package init() {}

  package mutating func succeeded() { failures = 0 }

  /// 0.25 s to 8 s, of which each device takes between half and all.
  package mutating func next(using generator: inout some RandomNumberGenerator) -> Duration {
    let whole = 250 << min(failures, 5)
    failures += 1
    return .milliseconds(Int.random(in: whole / 2...whole, using: &generator))
  }
}
