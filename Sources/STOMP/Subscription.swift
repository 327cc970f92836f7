import NIOCore

/// One subscription of a connection, with the messages that wait for an ACK.
package struct Subscription: Sendable {
  /// The client's id; only 1.0 may have none.
  package let id: String?
  package let destination: String
  package let mode: AckMode
  /// Its number on the connection, never used twice: the key by which callers store it.
  package let key: UInt64
  /// The header line of its MESSAGEs; empty without an id.
  let line: [UInt8]

  /// Numbers of unacknowledged MESSAGEs, rising, each with the caller's own key of the message.
  private(set) var pending: [(number: UInt64, token: UInt64)] = []

  init(id: String?, destination: String, mode: AckMode, key: UInt64, version: Version) {
    self.id = id
    self.destination = destination
    self.mode = mode
    self.key = key
    var line = ByteBuffer()
    if let id {
      HeaderCoding(version: version, command: .message).encode(.init(name: "subscription", value: id), into: &line)
    }
    self.line = Array(line.readableBytesView)
  }

  mutating func wait(for number: UInt64, token: UInt64) { pending.append((number, token)) }

  /// Takes out what an ACK of `number` counts for: all up to it, or it alone. Empty when it does not wait (any more).
  mutating func settle(_ number: UInt64) -> [UInt64] {
    guard let index = pending.binarySearch(number) else { return [] }
    let range = mode == .client ? 0..<index + 1 : index..<index + 1
    let tokens = pending[range].map(\.token)
    pending.removeSubrange(range)
    return tokens
  }

  func isWaiting(for number: UInt64) -> Bool { pending.binarySearch(number) != nil }
}

extension [(number: UInt64, token: UInt64)] {
  fileprivate func binarySearch(_ number: UInt64) -> Int? {
    var range = 0..<count
    while !range.isEmpty {
      let middle = range.lowerBound + range.count / 2
      if self[middle].number == number { return middle }
      range = self[middle].number < number ? middle + 1..<range.upperBound : range.lowerBound..<middle
    }
    return nil
  }
}

/// How a subscriber acknowledges messages.
package enum AckMode: String, CaseIterable, Sendable {
  /// Written is acknowledged.
  case auto
  /// An ACK counts for its message and all earlier ones of the subscription.
  case client
  /// An ACK counts for its message alone.
  case individual = "client-individual"
}
