import CallMessages
import Connections
import Listening
import MediaModel
import Octets
import STOMP

/// An app's own messages, to and from the broker.
extension ConnectionHandler {
  /// Passes a SEND on to the broker, without the headers that subscribers must not see.
  func send(_ frame: Frame, as destination: String, to address: Broker.Address) {
    var headers = Headers()
    for field in frame.headers.fields where !Headers.isKeptBack(field.name) {
      headers.append(field.name, field.value)
    }
    operations.append(.send(SharedMessage(destination: destination, headers: headers, body: frame.body), address))
    services.counters.update { $0.messages += 1 }
    if let wait = messageRate.owe(now: now) { pause(for: wait) }
  }

  func subscribe(_ subscription: Subscription, to address: Broker.Address) {
    guard let loop, let subscriber = subscriber(subscription.key) else { return }
    if addresses.isEmpty { loop.insert(self) }
    addresses[subscription.key] = address
    operations.append(.subscribe(subscriber, address))
  }

  func unsubscribe(_ key: UInt64) {
    guard let subscriber = subscriber(key), let address = addresses.removeValue(forKey: key) else { return }
    operations.append(.unsubscribe(subscriber, address))
    if addresses.isEmpty { loop?.remove(id) }
  }

  func settle(_ token: UInt64, of key: UInt64, accepted: Bool) {
    guard let subscriber = subscriber(key), let address = addresses[key], token != 0 else { return }
    operations.append(.settle(subscriber, address, number: token, accepted: accepted))
  }

  /// Passes everything that has accumulated to the broker, as one.
  func flushOperations() {
    guard !operations.isEmpty else { return }
    let bytes = services.broker.perform(exchange(&operations, with: []), now: now)
    if bytes > 0, let wait = share?.fanOut(bytes, now: now) { pause(for: wait) }
  }

  /// Writes one message; nil if the subscription is gone or the connection ended, else whether no ACK will follow.
  func deliver(_ message: inout SharedMessage, _ batch: Broker.Batch, key: UInt64) -> Bool? {
    guard !isEnded else { return nil }
    let delivered = write(isText: message.isText) {
      session.deliver(&message, to: key, token: batch.number, redelivered: batch.redelivered, into: &$0)
    }
    switch delivered {
    case .written(let isSettled): return isSettled
    case .unknown: return nil
    case .ended(let actions):
      perform(actions)
      return nil
    }
  }

  private func subscriber(_ key: UInt64) -> Broker.Subscriber? {
    loop.map { Broker.Subscriber(session: id, key: key, loop: $0.number) }
  }
}

extension Headers {
  /// Headers of a SEND that are for the server, secret, or set by the server itself (`destination` and `content-length` are replaced). Subscribers have no
  /// use for them, or they would be forgeries.
  fileprivate static func isKeptBack(_ name: String) -> Bool { keptBack.contains(name.lowercased()) }

  private static let keptBack: Set<String> = [
    "destination", "receipt", "transaction", "content-length", "login", "passcode", "authorization", "subscription",
    "message-id", "ack", "redelivered", "user-name",
  ]
}
