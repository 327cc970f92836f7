import Octets

/// Remembers when the packets of a publisher's transport arrived, and writes the reports on them
/// (draft-holmer-rmcat-transport-wide-cc-extensions-01). It allocates only in `init`.
///
/// A report begins with the lowest newly arrived number, so that late packets are reported, and covers each number up to the highest.
package struct TransportFeedbackRecorder: Sendable {
  /// How many numbers are remembered: 50 ms of 20,000 packets a second. Older ones that arrive are not reported.
  package static let capacity = 1_024
  /// Statuses in one report: its chunks and deltas fit into 1,000 bytes.
  private static let mostPackets = 400

  /// A number that arrived. The slot of a number that never arrived contains an older index, so a jump of the numbers clears nothing.
  private struct Arrival {
    /// The low bits of the number's index. Indexes begin at 65,536.
    var index: UInt32 = 0
    /// In 250 µs, modulo 2^32, so that its upper 24 bits are the report's reference time.
    var time: UInt32 = 0
  }

  private var arrivals = [Arrival](repeating: Arrival(), count: capacity)
  private var numbers = SequenceUnwrapper()
  /// The lowest number that no report has covered since it arrived.
  private var lowest: UInt64 = .max
  /// The next number that no report has covered.
  private var fresh: UInt64 = 0
  private var reports: UInt8 = 0

  package init() {}

  /// Whether there is something to report.
  package var isDue: Bool { lowest != .max }

  /// A packet with a transport-wide number has arrived.
  /// - Parameter now: µs of a clock that never runs backwards.
  /// - Returns: false if it will not be reported: it is too old, or another copy has arrived.
  @discardableResult
  package mutating func received(_ number: UInt16, now: Int64) -> Bool {
    let highest = numbers.highest
    let index = numbers.unwrap(number)
    if let highest {
      // In range: each packet adds 2^15 to an index of 64 bits.
      guard index + UInt64(Self.capacity) > highest else { return false }
    } else {
      fresh = index
    }
    guard arrival(index) == nil else { return false }
    arrivals[place(index)] = Arrival(
      index: UInt32(truncatingIfNeeded: index), time: UInt32(truncatingIfNeeded: now / 250))
    lowest = min(lowest, index)
    return true
  }

  /// Writes the report that is due.
  /// - Parameters:
  ///   - buffer: at least 1,000 bytes.
  ///   - media: any SSRC of the transport.
  /// - Returns: its length in bytes, with RTCP's header; 0 if there is nothing new. More may be due afterwards.
  ///
  /// In range: each packet adds 2^15 to an index of 64 bits, which begins at 65,536.
  package mutating func write(sender: UInt32, media: UInt32, into buffer: UnsafeMutableRawBufferPointer) -> Int {
    guard let highest = numbers.highest, lowest != .max, buffer.count >= 1_000 else { return 0 }
    let oldest = highest + 1 - UInt64(Self.capacity)
    let first = max(min(lowest, fresh), oldest)
    guard let start = firstArrival(in: max(lowest, first)...highest) else {
      // The numbers jumped so far that none of the waiting ones are left.
      lowest = .max
      return 0
    }
    // At most 64 ms before the first arrival, so that its delta fits.
    let reference = start.time >> 8
    var previous = reference << 8
    var end = first
    while end <= highest, end - first < UInt64(Self.mostPackets) {
      if let time = arrival(end) {
        guard Int16(exactly: delta(from: previous, to: time)) != nil else { break }
        previous = time
      }
      end += 1
    }
    let length = write(first..<end, reference: reference, sender: sender, media: media, into: buffer)
    fresh = max(fresh, end)
    lowest = end > highest ? .max : firstArrival(in: end...highest)?.index ?? .max
    return length
  }

  private func firstArrival(in range: ClosedRange<UInt64>) -> (index: UInt64, time: UInt32)? {
    for index in range { if let time = arrival(index) { return (index, time) } }
    return nil
  }

  /// In range: there are 400 numbers at most, and their indices are as above.
  private mutating func write(
    _ range: Range<UInt64>, reference: UInt32, sender: UInt32, media: UInt32, into buffer: UnsafeMutableRawBufferPointer
  ) -> Int {
    buffer[0] = 0x80 | TransportFeedback.format
    buffer[1] = RTCPType.transportFeedback
    buffer.store(sender, at: 4)
    buffer.store(media, at: 8)
    buffer.store(UInt16(truncatingIfNeeded: range.lowerBound), at: 12)
    buffer.store(UInt16(range.count), at: 14)
    buffer.store(reference << 8 | UInt32(reports), at: 16)
    reports &+= 1
    var length = 20
    // Vectors of two bits for seven packets each: one kind of chunk, at two bits a packet.
    var index = range.lowerBound
    var previous = reference << 8
    while index < range.upperBound {
      var chunk: UInt16 = 0xc000
      for slot in 0..<7 where index + UInt64(slot) < range.upperBound {
        guard let time = arrival(index + UInt64(slot)) else { continue }
        chunk |= ((0...255).contains(delta(from: previous, to: time)) ? 1 : 2) << UInt16(12 - 2 * slot)
        previous = time
      }
      buffer.store(chunk, at: length)
      length += 2
      index += 7
    }
    previous = reference << 8
    for index in range {
      guard let time = arrival(index) else { continue }
      let delta = delta(from: previous, to: time)
      previous = time
      if (0...255).contains(delta) {
        buffer[length] = UInt8(delta)
        length += 1
      } else {
        buffer.store(Int16(delta), at: length)
        length += 2
      }
    }
    // Zeros up to a whole word (section 3.1): the count determines where the deltas end.
    while length % 4 != 0 {
      buffer[length] = 0
      length += 1
    }
    buffer.store(UInt16(length / 4 - 1), at: 2)
    return length
  }

  /// When the number arrived; nil if it has not.
  private func arrival(_ index: UInt64) -> UInt32? {
    let arrival = arrivals[place(index)]
    return arrival.index == UInt32(truncatingIfNeeded: index) ? arrival.time : nil
  }

  private func delta(from a: UInt32, to b: UInt32) -> Int32 { Int32(bitPattern: b &- a) }

  private func place(_ index: UInt64) -> Int { Int(index % UInt64(Self.capacity)) }
}
