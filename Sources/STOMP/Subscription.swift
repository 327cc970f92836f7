import NIOCore

/// One subscription of a connection, with the messages that wait for an ACK.
package struct Subscription: Sendable {
  /// The client's id; absent only in 1.0.
  package let id: String?
  package let destination: String
  package let mode: AckMode
  /// Its number on the connection, never reused: the key by which callers store it.
  package let key: UInt64
  /// The header line of its MESSAGEs; empty without an id.
  let line: [UInt8]

  /// Numbers of unacknowledged MESSAGEs, rising, each with the caller's key of the message.
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

  /// Removes the messages that an ACK of `number` covers: all up to it, or only it. Empty if it is not pending (any
  /// longer).
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
  /// Acknowledged when written.
  case auto
  /// An ACK covers its message and all earlier ones of the subscription.
  case client
  /// An ACK covers only its message.
  case individual = "client-individual"
}
