import CallMessages
import Connections
import Contract
import Listening
import NIOCore
import NIOWebSocket
import STOMP

/// Replies and events out.
extension ConnectionHandler: ClientConnection {
  func deliver(_ outgoing: Outgoing) {
    switch outgoing {
    case .reply(let id, let reply): self.reply(to: id, reply)
    case .event(let event, let seq, let redelivered): publish(event, seq: seq, redelivered: redelivered)
    case .publish(let event, let newestOnly): publish(event, newestOnly: newestOnly)
    case .admission(let refusal): admit(refusal: refusal)
    }
  }

  func send() {
    flush()
    armTimer()
  }

  func sendSoon() { flushSoon() }

  func close(reason: String) { perform(session.fail(Violation(.closedByServer, reason))) }

  /// The control plane admits the client to the topic that it requested, or says why not.
  private func admit(refusal: String?) {
    perform(session.answer(refusal: refusal))
    readFrames()
  }

  func reply(to requestID: String?, _ reply: EncodedReply) {
    var headers: Headers = ["content-type": "application/json"]
    headers.append("request-id", requestID)
    headers.append("status", reply.isOK ? "ok" : "error")
    // It costs its bytes.
    if reply.body.count >> 12 > 0 { share?.owe(reply.body.count >> 12, now: now) }
    var message = SharedMessage(
      destination: Destination.replies, headers: headers, body: ByteBuffer(bytes: reply.body))
    publish(&message)
  }

  private func publish(
    _ event: EncodedEvent, newestOnly: Bool = false, seq: UInt64? = nil, redelivered: Bool = false
  ) {
    var message = written.take(event)
    publish(&message, newestOnly: newestOnly, seq: seq, redelivered: redelivered)
    written.keep(message, of: event)
  }

  /// Writes a message to each of the connection's subscriptions to its destination, or only to the newest; an event with its number for this
  /// device.
  private func publish(
    _ message: inout SharedMessage, newestOnly: Bool = false, seq: UInt64? = nil, redelivered: Bool = false
  ) {
    guard !isEnded else { return }
    let all = session.subscriptions.filter { $0.destination == message.destination }.map(\.key)
    let keys = newestOnly ? all.suffix(1) : all[...]
    if keys.isEmpty { services.counters.drop(.notSubscribed) }
    for key in keys where !isEnded {
      services.counters.update { $0.framesOut += 1 }
      let delivered = write(isText: message.isText) {
        session.deliver(&message, to: key, token: seq ?? 0, seq: seq, redelivered: redelivered, into: &$0)
      }
      if case .ended(let actions) = delivered { perform(actions) }
    }
  }
}

extension Session.End {
  /// With which a WebSocket closes (RFC 6455 section 7.4).
  var closeCode: WebSocketErrorCode {
    switch self {
    case .disconnected: .normalClosure
    case .violation(.protocolError): .protocolError
    case .violation: .policyViolation
    }
  }
}
