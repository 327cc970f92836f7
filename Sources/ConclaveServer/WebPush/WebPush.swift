import Contract
import Cryptography
import JSON
import MediaModel
import NIOCore
import Synchronization

/// Sends the waiting pushes of a `PushQueue` to browsers' push services (RFC 8030), encrypted and signed.
final class WebPush: Sendable {
  struct Statistics {
    var sent: UInt64 = 0
    var waiting = 0
    var failed: [PushPost.Failure: UInt64] = [:]
    var drops: [PushQueue.Drop: UInt64] = [:]
  }

  private struct State {
    var queue = PushQueue()
    var sent: UInt64 = 0
    var failed: [PushPost.Failure: UInt64] = [:]
    var timer: (deadline: Timestamp, task: Scheduled<Void>)?
  }

  private let key: ApplicationServerKey
  private let post: PushPost
  private let clock: WallClock
  private let loop: any EventLoop
  /// Called with a user and an endpoint that the push service no longer knows.
  private let gone: @Sendable (UserID, String) -> Void
  private let state = Mutex(State())

  init(
    key: ApplicationServerKey, post: PushPost, clock: WallClock, loop: any EventLoop,
    gone: @escaping @Sendable (UserID, String) -> Void
  ) {
    self.key = key
    self.post = post
    self.clock = clock
    self.loop = loop
    self.gone = gone
  }

  var publicKey: Base64Bytes { Base64Bytes(key.publicKey) }

  var statistics: Statistics {
    state.withLock {
      Statistics(sent: $0.sent, waiting: $0.queue.count, failed: $0.failed, drops: $0.queue.drops)
    }
  }

  func send(_ notice: PushNotice, to subscription: PushSubscription, of user: UserID, until: Timestamp) {
    let push = PushQueue.Push(user: user, subscription: subscription, notice: notice, until: until)
    let now = clock.now()
    state.withLock { $0.queue.add(push, now: now) }
    pump()
  }

  /// Pushes that wait or are being sent are lost.
  func stop() {
    state.withLock {
      $0.timer?.task.cancel()
      $0.timer = nil
      $0.queue = PushQueue()
    }
    post.stop()
  }

  /// Starts all pushes that may be sent, and wakes for the next retry.
  private func pump() {
    let now = clock.now()
    let pushes = state.withLock { state -> [PushQueue.Push] in
      var pushes: [PushQueue.Push] = []
      while let push = state.queue.next(now: now) { pushes.append(push) }
      schedule(&state, now: now)
      return pushes
    }
    for push in pushes { Task { await deliver(push) } }
  }

  private func schedule(_ state: inout State, now: Timestamp) {
    guard let deadline = state.queue.deadline(now: now), deadline != state.timer?.deadline else { return }
    state.timer?.task.cancel()
    let delay = TimeAmount.nanoseconds((deadline - now).nanoseconds)
    state.timer = (deadline, loop.scheduleTask(in: delay) { [weak self] in self?.wake() })
  }

  private func wake() {
    state.withLock { $0.timer = nil }
    pump()
  }

  private func deliver(_ push: PushQueue.Push) async {
    var failure: PushPost.Failure?
    do throws(PushPost.Failure) {
      try await attempt(push)
    } catch {
      failure = error
    }
    let now = clock.now()
    state.withLock { state in
      if let failure { state.failed[failure, default: 0] &+= 1 } else { state.sent &+= 1 }
      state.queue.finished(push, again: failure?.mayPass ?? false, now: now)
    }
    if failure == .gone { gone(push.user, push.subscription.endpoint) }
    pump()
  }

  private func attempt(_ push: PushQueue.Push) async throws(PushPost.Failure) {
    var generator = SystemRandomNumberGenerator()
    let salt = (0..<16).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
    guard let endpoint = PushEndpoint(push.subscription.endpoint), let content = try? JSONCoding.encode(push.notice),
      let body = PushEncryption.body(
        of: content, for: push.subscription, salt: salt, sender: P256PrivateKey()),
      let authorization = try? key.authorization(for: endpoint.origin, now: clock.machineTime())
    else { throw .key }
    let headers = [
      ("authorization", authorization), ("content-encoding", "aes128gcm"),
      ("content-type", "application/octet-stream"),
      ("ttl", "\(max(0, (push.until - clock.now()).nanoseconds / 1_000_000_000))"), ("urgency", "high"),
      ("topic", Self.topic(of: push.notice.call)),
    ]
    try await post.post(body, to: endpoint, headers: headers)
  }

  /// At most 32 characters (RFC 8030 section 5.4), the same for all pushes of a call, and not its id.
  static func topic(of call: String) -> String {
    Array(HashAlgorithm.sha256.digest(of: call.utf8).prefix(24)).base64URL
  }
}
