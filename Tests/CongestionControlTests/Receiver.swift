import CongestionControl

/// A receiving browser: reports on every packet, NACKs, and frames that are complete in time or not.
struct Receiver {
  private struct Missing {
    var sequence: Int
    var due: Microseconds
    var tries = 0
  }

  private struct Frame {
    var packets: Int
    var received = 0
    var began: Microseconds
    var highest: Int
  }

  /// The receiver's clock has a different origin.
  static let clockOffset: Microseconds = 7_777_777_000

  // Reports.
  private var arrivals = [Microseconds](repeating: -1, count: 65_536)
  private var highest = -1
  private var reported = -1
  private var lowestNew = Int.max
  private var nextReport: Microseconds = 0
  private var bytesSinceReport = 0

  // Video.
  private var highestSequence = -1
  private var missing: [Missing] = []
  private var receivedSequences: Set<Int> = []
  private var frames: [Int: Frame] = [:]
  private(set) var inTime = 0
  private(set) var late = 0
  /// Original video packets of which neither the original nor a copy has arrived.
  private(set) var received = 0

  mutating func begins(frame: Int, packets: Int, highestSequence: Int, at time: Microseconds) {
    frames[frame] = Frame(packets: packets, began: time, highest: highestSequence)
  }

  mutating func arrived(_ packet: Packet, at time: Microseconds) {
    if packet.number > highest {
      for number in highest + 1...packet.number { arrivals[number & 0xffff] = -1 }
      highest = packet.number
    }
    if highest - packet.number < 32_768 {
      // 250 µs are the unit of a report.
      arrivals[packet.number & 0xffff] = (time + Self.clockOffset) / 250 * 250
      lowestNew = min(lowestNew, packet.number)
    }
    bytesSinceReport += packet.size
    guard packet.sequence >= 0, receivedSequences.insert(packet.sequence).inserted else { return }
    received += 1
    if packet.sequence > highestSequence {
      for sequence in highestSequence + 1..<packet.sequence {
        missing.append(Missing(sequence: sequence, due: time + 10 * millisecond))
      }
      highestSequence = packet.sequence
    } else {
      missing.removeAll { $0.sequence == packet.sequence }
    }
    guard var frame = frames[packet.frame] else { return }
    frame.received += 1
    if frame.received == frame.packets {
      if time - frame.began <= 400 * millisecond { inTime += 1 } else { late += 1 }
      frames[packet.frame] = nil
    } else {
      frames[packet.frame] = frame
    }
  }

  /// Frames that are incomplete and can no longer be complete in time.
  func overdue(at time: Microseconds) -> Int { frames.values.count { time - $0.began > 400 * millisecond } }

  /// Sequence numbers to ask for now.
  mutating func nacks(roundTrip: Microseconds, now: Microseconds) -> [Int] {
    guard !missing.isEmpty else { return [] }
    var due: [Int] = []
    for i in missing.indices where missing[i].due <= now {
      due.append(missing[i].sequence)
      missing[i].tries += 1
      missing[i].due = now + max(20 * millisecond, roundTrip + 10 * millisecond)
    }
    missing.removeAll { $0.tries >= 10 }
    return due
  }

  /// The report that is due: every 50 ms, or every 100 ms at low rates (libwebrtc spends 5 % of its estimate on
  /// reports).
  mutating func report(now: Microseconds) -> [(number: Int, arrival: Microseconds?)]? {
    guard now >= nextReport else { return nil }
    nextReport = now + (bytesSinceReport * 8 * 20 > 217_000 ? 50 : 100) * millisecond
    bytesSinceReport = 0
    guard lowestNew != .max else { return nil }
    let first = min(lowestNew, reported + 1)
    reported = highest
    lowestNew = .max
    return (first...highest).map { number in
      let arrival = arrivals[number & 0xffff]
      return (number, arrival < 0 ? nil : arrival)
    }
  }
}
