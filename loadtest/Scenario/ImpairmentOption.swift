import Paths

/// An impairment on the command line, as `loss=5%,delay=50ms,jitter=10ms,rate=400kbit/s,queue=200ms`.
struct ImpairmentOption: Sendable, Hashable {
  struct Failure: Error, CustomStringConvertible { var description: String }

  let impairment: Impairment
  let text: String

  init(_ text: String) throws(Failure) {
    var impairment = Impairment()
    for part in text.split(separator: ",", omittingEmptySubsequences: false) {
      let words = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard words.count == 2 else { throw Self.failure(part, "is no NAME=VALUE") }
      switch words[0] {
      case "loss":
        guard let share = Quantity.share(words[1]), share <= 1 else { throw Self.failure(part, "is no share") }
        impairment.loss = share
      case "rate":
        guard let rate = Quantity.bitrate(words[1]), 1_000...1e11 ~= rate else {
          throw Self.failure(part, "is no rate of 1 kbit/s or more")
        }
        impairment.rate = Int(rate)
      case "delay", "jitter", "queue":
        guard let time = Quantity.milliseconds(words[1]), time <= 60_000 else {
          throw Self.failure(part, "is no time of at most 60 s")
        }
        let microseconds = Int(time * 1_000)
        switch words[0] {
        case "delay": impairment.delay = microseconds
        case "jitter": impairment.jitter = microseconds
        default: impairment.queue = microseconds
        }
      default: throw Self.failure(part, "is none of loss, delay, jitter, rate, queue")
      }
    }
    self.impairment = impairment
    self.text = text
  }

  private static func failure(_ part: Substring, _ problem: String) -> Failure {
    Failure(
      description: "\(part) \(problem); write it as loss=5%,delay=50ms,jitter=10ms,rate=400kbit/s,queue=200ms")
  }
}
