import CallMessages
import Connections
import Listening
import MediaModel
import NIOCore
import STOMP

/// CONNECT: authentication.
extension ConnectionHandler {
  func authenticate(_ request: ConnectRequest) {
    guard let context else { return }
    guard let token = request.token else { return refuse() }
    let authenticator = services.authenticator
    context.eventLoop.makeFutureWithTask { await authenticator.claims(of: token) }
      .assumeIsolated()
      .whenComplete { [weak self] result in self?.authenticated(try? result.get(), for: request) }
  }

  private func authenticated(_ claims: Claims?, for request: ConnectRequest) {
    // It may have taken too long, or the client may be gone meanwhile.
    guard !isEnded, session.isAuthenticating else { return }
    let left = claims.map { ($0.expiresAt - services.clock()).nanoseconds } ?? 0
    if let claims, left > 0, let identity = Identity(claims, asking: request, madeUp: .random()) {
      letIn(identity, expiresAt: now.addingReportingOverflow(UInt64(left)).partialValue)
    } else {
      refuse()
    }
    readFrames()
  }

  private func letIn(_ identity: Identity, expiresAt: UInt64) {
    guard let context, services.listeners.logIn(context.channel) else { return }
    guard !identity.isService else { return logIn(identity, nil, expiresAt: expiresAt) }
    switch services.clients.shares.connect(identity.device.user, now: now) {
    case .success(let share): logIn(identity, share, expiresAt: expiresAt)
    case .failure(let full):
      services.counters.drop(full.reason)
      let text =
        full.reason == .userConnectionsFull
        ? "this user has too many connections: close some first"
        : "this user asked for too much in a short time: wait some seconds"
      perform(session.fail(Violation(.limit, text)))
      flush()
    }
  }

  private func refuse() {
    perform(session.fail(Violation(.authenticationFailed, "Bad CONNECT: authentication failed")))
    flush()
  }
}

extension DeviceID {
  /// A name for a device that has none.
  fileprivate static func random() -> DeviceID {
    DeviceID(unchecked: "device-" + String(UInt64.random(in: .min ... .max), radix: 36))
  }
}
