import CallMessages
import Contract
import MediaModel
import Octets

/// `message`: what participants tell each other, opaque to the server (protocol section 6).
extension Call {
  /// - Throws: `call.not-joined`, `request.too-large`, `rate.limited`, `user.not-found` if nobody that it names is in the
  ///   call.
  mutating func message(
    _ message: SendMessage, from device: Device, now: Timestamp, out: inout Outputs
  ) throws(RequestError) {
    let participant = try participant(of: device)
    guard message.body.bytes.count <= MessageBudget.maximumBytes else {
      throw RequestError(.requestTooLarge, "a message has at most 16 KiB", field: "body")
    }
    let receivers = try receivers(of: message, from: participant)
    var budget = participant.messages
    try budget.take(bytes: message.body.bytes.count, now: now)
    _ = withParticipant(of: device) { $0.messages = budget }
    guard !receivers.isEmpty else { return }
    out.event(.message(CallMessage(from: participant.number, body: message.body)), to: .devices(receivers))
  }

  /// All others, or the named ones that are still there.
  private func receivers(of message: SendMessage, from sender: Participant) throws(RequestError) -> [Device] {
    guard let to = message.to else { return participantDevices.filter { $0 != sender.device } }
    guard to.count <= limits.participants else {
      throw RequestError(.requestTooLarge, "a call has at most \(limits.participants) participants", field: "to")
    }
    let receivers = Set(to).sorted().filter { $0 != sender.number }.compactMap { self.participant($0)?.device }
    guard !receivers.isEmpty else {
      throw RequestError(.userNotFound, "none of these participants is in the call", field: "to")
    }
    return receivers
  }
}

/// The rate limit of a participant's `message` requests: 10 a second and 64 KiB a second (protocol section 6).
struct MessageBudget {
  static let maximumBytes = 16 << 10
  private var count = TokenBucket(perSecond: 10, burst: 10)
  private var bytes = TokenBucket(perSecond: 64 << 10, burst: 64 << 10)

  /// Charges one message of this size.
  /// - Throws: `rate.limited`; nothing is charged then.
  mutating func take(bytes size: Int, now: Timestamp) throws(RequestError) {
    var (count, bytes) = (self.count, self.bytes)
    let wait = max(count.take(now: now.nanoseconds) ?? 0, bytes.take(size, now: now.nanoseconds) ?? 0)
    guard wait == 0 else {
      throw RequestError(
        .rateLimited, "a participant sends at most 10 messages and 64 KiB a second",
        retryAfterMs: wait.millisecondsRoundedUp)
    }
    (self.count, self.bytes) = (count, bytes)
  }
}
