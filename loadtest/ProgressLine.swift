import Foundation

/// One line on standard error that is written over while the test runs; without a terminal it says nothing.
final class ProgressLine {
  private let isTerminal = isatty(2) == 1
  private var shown = 0

  func show(_ text: String) {
    guard isTerminal else { return }
    let padding = String(repeating: " ", count: max(0, shown - text.count))
    FileHandle.standardError.write(Data("\r\(text)\(padding)".utf8))
    shown = text.count
  }

  func show(_ tally: Tally, rate: Double, elapsed: Duration, of total: Duration) {
    show(
      String(
        format: "%.1f of %.0f s   %.0f packets/s   %llu asked again   %llu lost   %llu undecryptable   p99 %.1f ms",
        elapsed.seconds, total.seconds, rate, tally.nacked, tally.abandoned, tally.decryptFailures,
        tally.latency.milliseconds(atShare: 0.99)))
  }

  /// Clears the line.
  func finish() {
    guard isTerminal else { return }
    FileHandle.standardError.write(Data(("\r" + String(repeating: " ", count: shown) + "\r").utf8))
  }
}
