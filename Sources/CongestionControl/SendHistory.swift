/// The content of a packet with a transport-wide number.
package enum SentKind: UInt8, Sendable {
  case audio, video, retransmission, padding
}

/// The packets that left one transport, by their transport-wide numbers. Each is acknowledged at most once.
///
/// 4,096 packets are 2.7 s at 1,500 packets a second. A report on an older packet finds nothing.
struct SendHistory: Sendable {
  static let capacity = 4_096

  struct Record: Sendable {
    /// Low 32 bits of the time of departure in µs.
    var departure: UInt32 = 0
    var size: UInt16 = 0
    /// The probe that the packet belongs to; 0 for none.
    var probe: UInt8 = 0
    var kind = SentKind.padding
    var state = State.empty
  }

  enum State: UInt8, Sendable {
    case empty, inFlight, missing, received
    /// In flight, but assumed to have arrived because a later one was reported first.
    case assumed
    /// Missing, and sent again under the same number. From then on reports do not tell when the first copy arrived.
    case repeated
  }

  private var records = [Record](repeating: Record(), count: capacity)
  private var newest: UInt16 = 0

  /// - Parameter size: bytes on the wire.
  mutating func append(_ number: UInt16, size: Int, kind: SentKind, probe: UInt8, now: Microseconds) {
    records[Int(number) % Self.capacity] = Record(
      departure: UInt32(truncatingIfNeeded: now), size: UInt16(clamping: size), probe: probe, kind: kind,
      state: .inFlight)
    newest = number
  }

  /// Packets that left after `number`; up to 65,535 for one that has not left.
  func age(of number: UInt16) -> Int { Int(newest &- number) }

  /// Takes a report of `number`.
  /// - Returns: the record as it was before the report; nil if the number is unknown, too old, or was already reported so.
  mutating func report(_ number: UInt16, received: Bool) -> Record? {
    guard age(of: number) < Self.capacity else { return nil }
    let index = Int(number) % Self.capacity
    let record = records[index]
    switch (record.state, received) {
    case (.inFlight, _), (.assumed, _): records[index].state = received ? .received : .missing
    // A packet that was missing in one report may be in the next: it was late.
    case (.missing, true): records[index].state = .received
    case (.empty, _), (.received, _), (.repeated, _), (.missing, false): return nil
    }
    return record
  }

  /// A packet is sent again under its number. Reports on it no longer count.
  mutating func `repeat`(_ number: UInt16) {
    if knows(number) { records[Int(number) % Self.capacity].state = .repeated }
  }

  /// Assumes that a packet that no report has covered has arrived.
  /// - Returns: its record as it was; nil when there is nothing to assume.
  mutating func assume(_ number: UInt16) -> Record? {
    guard age(of: number) < Self.capacity else { return nil }
    let index = Int(number) % Self.capacity
    let record = records[index]
    guard record.state == .inFlight else { return nil }
    records[index].state = .assumed
    return record
  }

  /// Whether `number` is a packet of the history, whatever was reported about it.
  func knows(_ number: UInt16) -> Bool {
    age(of: number) < Self.capacity && records[Int(number) % Self.capacity].state != .empty
  }

  /// The full time of a departure, at most 71 minutes before `now`.
  static func departure(of record: Record, now: Microseconds) -> Microseconds {
    now - Microseconds(UInt32(truncatingIfNeeded: now) &- record.departure)  // in range: 32 bits
  }
}
