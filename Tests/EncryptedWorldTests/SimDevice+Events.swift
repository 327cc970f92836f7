import CallMessages
import Contract
import MediaModel

@testable import ConclaveClient

/// The server's events, handled as by our client.
extension SimDevice {
  func receive(_ message: EventMessage, _ seq: UInt64) {
    guard let call = message.call else { return acknowledge(seq) }
    announce(message.body, of: call)
    route(message, seq, to: call)
  }

  private func announce(_ body: EventBody, of call: CallID) {
    switch body {
    case .ring(let ring):
      rings[call] = ring
      ringers.note(ring.from, of: call)
      ask(.people(.listDevices(ListDevices(users: (ring.list ?? []).map(\.user))))) { [unowned self] (reply: Devices) in
        directory.learn(reply.devices)
      }
    case .cancelled, .missed, .answeredElsewhere, .declinedElsewhere: rings[call] = nil
    default: break
    }
  }

  private func route(_ message: EventMessage, _ seq: UInt64, to call: CallID) {
    guard let stay, stay.call == call, !stay.recovery.isRejoining else {
      if isEntering(call) { return early.append((message, seq)) }
      // The app was restarted in a call: it goes back.
      if case .state = message.body, self.stay == nil { rejoin(call) }
      return acknowledge(seq)
    }
    if stay.isBeginning, !message.body.begins(stay.participant) { return acknowledge(seq) }
    if case .envelope(let envelope) = message.body { return feed(.envelope(envelope, delivery: seq), to: stay) }
    acknowledge(seq)
    apply(message.body, rev: message.rev, to: stay)
  }

  private func isEntering(_ call: CallID) -> Bool {
    pending.values.contains {
      switch $0.request {
      case .calls(.call(call, .accept)), .calls(.call(call, .join)), .calls(.call(call, .rejoin)),
        .calls(.call(call, .transfer)):
        true
      default: false
      }
    }
  }

  /// Handles the early events; those before the state that begins a new stay were for the former participant.
  func takeEarly(_ stay: Stay, isRejoined: Bool) {
    let deliveries = early
    early = []
    let start = deliveries.firstIndex { $0.message.body.begins(stay.participant) }
    stay.isBeginning = isRejoined && start == nil
    for delivery in deliveries[..<(start ?? 0)] { acknowledge(delivery.seq) }
    for delivery in deliveries[(start ?? 0)...] { route(delivery.message, delivery.seq, to: stay.call) }
  }

  /// A join was refused: the events kept for it belong to a call that this device is not in.
  func dropEarly() {
    let isOver = early.map { $0.message.call.map(isEntering) != true }
    for (delivery, isOver) in zip(early, isOver) where isOver { acknowledge(delivery.seq) }
    early = zip(early, isOver).filter { !$1 }.map(\.0)
  }
}
