package import JanusAPI
import Synchronization

/// The connections and HTTP requests that wait for something, by the numbers that the rooms know them by.
package final class JanusClients: Sendable {
  /// Gives a message to its receiver.
  typealias Receiver = @Sendable (JSONTree) -> Void

  private struct State: Sendable {
    var lastNumber: UInt64 = 0
    var receivers: [Requester: Receiver] = [:]
  }

  private let state = Mutex(State())

  package init() {}

  /// WebSockets that are open.
  package var sockets: Int {
    state.withLock { $0.receivers.keys.count { if case .socket = $0 { true } else { false } } }
  }

  func nextNumber() -> UInt64 {
    state.withLock { state in
      state.lastNumber += 1
      return state.lastNumber
    }
  }

  func add(_ requester: Requester, _ receiver: @escaping Receiver) {
    state.withLock { $0.receivers[requester] = receiver }
  }

  func remove(_ requester: Requester) { state.withLock { $0.receivers[requester] = nil } }

  /// Delivers messages in their order. An HTTP request gets one.
  package func deliver(_ messages: [(to: Requester, JSONTree)]) {
    for (requester, message) in messages {
      let receiver = state.withLock { state -> Receiver? in
        if case .exchange = requester { return state.receivers.removeValue(forKey: requester) }
        return state.receivers[requester]
      }
      receiver?(message)
    }
  }
}
