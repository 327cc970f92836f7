import Foundation

extension ProgressLine {
  func show(_ tally: Tally, rate: Double, elapsed: Duration, of total: Duration) {
    show(
      String(
        format: "%.1f of %.0f s   %.0f packets/s   %llu asked again   %llu lost   %llu undecryptable   p99 %.1f ms",
        elapsed.seconds, total.seconds, rate, tally.nacked, tally.abandoned, tally.decryptFailures,
        tally.latency.milliseconds(atShare: 0.99)))
  }
}
