import Contract
import Cryptography
import JSON
import MediaModel
import NIOCore

/// Sends pushes to browsers' push services (RFC 8030), encrypted and signed, by a `PushQueue`.
final class WebPush: Sendable {
  struct Statistics {
    var sent: UInt64 = 0
    var waiting = 0
    var failed: [PushPost.Failure: UInt64] = [:]
    var drops: [PushQueue.Drop: UInt64] = [:]
  }

  private let key: ApplicationServerKey
  private let post: PushPost
  private let sender: RetrySender<PushQueue>

  /// - Parameter gone: called with a user and an endpoint that the push service no longer knows.
  init(
    key: ApplicationServerKey, post: PushPost, clock: WallClock, loop: any EventLoop,
    gone: @escaping @Sendable (UserID, String) -> Void
  ) {
    self.key = key
    self.post = post
    sender = RetrySender(PushQueue(), clock: clock.now, on: loop) { push in
      do throws(PushPost.Failure) {
        try await Self.send(push, signedBy: key, over: post, clock)
        return nil
      } catch {
        if error == .gone { gone(push.user, push.subscription.endpoint) }
        return error
      }
    }
  }

  var publicKey: Base64Bytes { Base64Bytes(key.publicKey) }

  var statistics: Statistics {
    let queue = sender.queue
    return Statistics(sent: queue.sent, waiting: queue.count, failed: queue.failed, drops: queue.drops)
  }

  func send(_ notice: PushNotice, to subscription: PushSubscription, of user: UserID, until: Timestamp) {
    let push = PushQueue.Push(user: user, subscription: subscription, notice: notice, until: until)
    sender.update { $0.add(push, now: $1) }
  }

  /// Pushes that wait or are being sent are lost.
  func stop() {
    sender.stop { $0 = PushQueue() }
    post.stop()
  }

  /// One attempt.
  private static func send(
    _ push: PushQueue.Push, signedBy key: ApplicationServerKey, over post: PushPost, _ clock: WallClock
  ) async throws(PushPost.Failure) {
    let salt = (0..<16).map { _ in UInt8.random(in: .min ... .max) }
    guard let endpoint = PushEndpoint(push.subscription.endpoint), let content = try? JSONCoding.encode(push.notice),
      let body = PushEncryption.body(
        of: content, for: push.subscription, salt: salt, sender: P256PrivateKey()),
      let authorization = try? key.authorization(for: endpoint.origin, now: clock.machineTime())
    else { throw .key }
    let headers = [
      ("authorization", authorization), ("content-encoding", "aes128gcm"),
      ("content-type", "application/octet-stream"),
      ("ttl", "\(max(0, (push.until - clock.now()).nanoseconds / 1_000_000_000))"),
      ("urgency", push.notice.type.urgency),
      ("topic", topic(of: push.notice.subject)),
    ]
    try await post.post(body, to: endpoint, headers: headers)
  }

  /// At most 32 characters (RFC 8030 section 5.4), the same for all pushes of a call or a recording, and not its id.
  static func topic(of subject: String) -> String {
    Array(HashAlgorithm.sha256.digest(of: subject.utf8).prefix(24)).base64URL
  }
}

extension PushNotice.Kind {
  /// RFC 8030 section 5.3. A message can wait for a phone to wake.
  var urgency: String {
    switch self {
    case .ring, .ringOver, .alert: "high"
    case .message: "normal"
    }
  }
}
