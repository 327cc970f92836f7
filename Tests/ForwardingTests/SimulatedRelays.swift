@testable import Forwarding

/// The paths between the SFUs of a simulated call: messages arrive at once and in order, unless they are lost.
final class SimulatedRelays {
  struct Relayed {
    var from: RelayEnd
    var to: RelayEnd
    var message: RelayMessage
    var packet: [UInt8]
  }

  /// One SFU's path to the others.
  final class Way: Relay {
    private let from: RelayEnd
    private let relays: SimulatedRelays

    init(from: RelayEnd, _ relays: SimulatedRelays) {
      self.from = from
      self.relays = relays
    }

    func send(_ message: RelayMessage, _ packet: UnsafeRawBufferPointer, to end: RelayEnd) -> Bool {
      guard !relays.isFull(message) else { return false }
      relays.waiting.append(Relayed(from: from, to: end, message: message, packet: Array(packet)))
      return true
    }
  }

  /// Whether there is no room for a message.
  var isFull: (RelayMessage) -> Bool = { _ in false }
  /// The accepted packets, in order.
  private(set) var packets = 0
  private var waiting: [Relayed] = []
  private var taken = 0

  func next() -> Relayed? {
    guard taken < waiting.count else {
      waiting.removeAll(keepingCapacity: true)
      taken = 0
      return nil
    }
    taken += 1
    if case .packet = waiting[taken - 1].message.body { packets += 1 }
    return waiting[taken - 1]
  }
}
