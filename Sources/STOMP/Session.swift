package import NIOCore

/// The server's side of one STOMP connection, as a value.
///
/// ## Overview
/// `handle(frame)` takes a decoded frame, `received` and `wrote` report traffic on the wire, `handleTimeout` the passing of time. The
/// caller carries out the returned actions in order. Time is an argument, in nanoseconds of any clock that never runs backwards.
///
/// ## Invariants
/// - After `.authenticate` or `.ask` the caller passes no frame while `isWaiting`; bytes that arrive meanwhile stay in its decoder.
/// - `version` changes only in `accept`; the caller then copies it into its decoder.
/// - After `.close` there are no further actions, whatever arrives.
/// - A frame either does everything that it requests and then gets its RECEIPT, or does nothing and gets an ERROR.
package struct Session: Sendable {
  private let configuration: Configuration
  private var state: State

  private enum State {
    case fresh(connectBy: UInt64)
    case authenticating(ConnectRequest, connectBy: UInt64)
    case connected
    case closed
  }

  /// While `connected`. Not in the state, because each change would move all of it out and in.
  private var conversation: Conversation?

  package init(configuration: Configuration, now: UInt64) {
    self.configuration = configuration
    state = .fresh(connectBy: now + configuration.connectTimeout)
  }

  /// The version for reading and writing the next frame. Until one is agreed on it is 1.0, whose ERROR everybody can read because nothing in it
  /// is escaped.
  package private(set) var version = Version.v10

  package var isAuthenticating: Bool {
    if case .authenticating = state { true } else { false }
  }

  /// Whether an answer to `.authenticate` or `.ask` is awaited before the next frame may be passed.
  package var isWaiting: Bool {
    switch state {
    case .authenticating: true
    case .connected: conversation?.isAsking ?? false
    case .fresh, .closed: false
    }
  }

  package var isClosed: Bool {
    if case .closed = state { true } else { false }
  }

  /// The client's subscriptions.
  package var subscriptions: [Subscription] {
    conversation?.subscriptions ?? []
  }

  /// The size of all open transactions in bytes.
  package var transactionBytes: Int { conversation?.transactionBytes ?? 0 }

  // MARK: From the network

  /// A whole frame arrived.
  /// - Parameter admission: of the destination of a SEND or SUBSCRIBE; other frames have none. For a SEND it is applied when the SEND arrives, so
  ///   that COMMIT cannot fail because of it.
  package mutating func handle(_ frame: Frame, admission: Admission, now: UInt64) -> [Action] {
    let receipt = frame.headers["receipt"]
    do {
      switch state {
      case .fresh(let connectBy):
        let request = try connectRequest(frame)
        state = .authenticating(request, connectBy: connectBy)
        return [.authenticate(request)]
      case .authenticating:
        preconditionFailure("a frame was handed in before the answer to CONNECT")
      case .connected:
        let actions = try conversation?.handle(frame, admission) ?? []
        if case .close = actions.last { close() }
        return actions
      case .closed:
        return []
      }
    } catch {
      return end(error, receipt: receipt)
    }
  }

  /// The bytes were not a frame.
  package mutating func handle(_ error: FrameError) -> [Action] {
    guard !isClosed else { return [] }
    let violation = Violation(error.isLimit ? .limit : .protocolError, error.reason.rawValue)
    return end(violation, receipt: error.receipt)
  }

  /// Octets arrived, whether or not a frame is complete.
  package mutating func received(now: UInt64) {
    conversation?.heartBeat.received(now: now)
  }

  /// Anything was written.
  package mutating func wrote(now: UInt64) {
    conversation?.heartBeat.wrote(now: now)
  }

  // MARK: Time

  /// When `handleTimeout` must be called next; nil for never.
  package var nextDeadline: UInt64? {
    switch state {
    case .fresh(let connectBy), .authenticating(_, let connectBy): connectBy
    case .connected: conversation?.nextDeadline
    case .closed: nil
    }
  }

  package mutating func handleTimeout(now: UInt64) -> [Action] {
    switch state {
    case .fresh(let connectBy), .authenticating(_, let connectBy):
      guard now >= connectBy else { return [] }
      return end(Violation(.connectTimeout, "Bad CONNECT: too late"), receipt: nil)
    case .connected:
      if let violation = conversation?.violation(now: now) { return end(violation, receipt: nil) }
      return conversation?.owesHeartBeat(now: now) == true ? [.heartBeat] : []
    case .closed:
      return []
    }
  }

  // MARK: From the application

  /// The client of the last `.authenticate` is accepted.
  package mutating func accept(_ welcome: Welcome, now: UInt64) -> [Action] {
    guard case .authenticating(let request, _) = state else { return [] }
    var conversation = Conversation(
      configuration: configuration, version: request.version,
      heartBeat: configuration.heartBeat.agreed(with: request.heartBeat), expiresAt: welcome.expiresAt)
    conversation.heartBeat.start(now: now)
    self.conversation = conversation
    state = .connected
    version = request.version
    return [
      .write(
        Frame(
          .connected,
          [
            "version": request.version.rawValue, "session": welcome.session, "server": welcome.server,
            "heart-beat": request.version.hasHeartBeats ? configuration.heartBeat.header : "0,0",
            "user-name": welcome.user, "device": welcome.device,
          ]))
    ]
  }

  /// The connection ends with an ERROR: the client is not accepted, or may not stay.
  package mutating func fail(_ violation: Violation) -> [Action] {
    isClosed ? [] : end(violation, receipt: nil)
  }

  /// The answer to the last `.ask`: the subscription is valid, or the connection ends with an ERROR with this text. Ignored without a question.
  package mutating func answer(refusal: String?) -> [Action] {
    do {
      return try conversation?.answer(refusal: refusal) ?? []
    } catch {
      return end(error.violation, receipt: error.receipt)
    }
  }

  /// Appends the MESSAGE for the subscription with this key to `output`; `token` comes back in `.acknowledged`, and `seq` is a header of this subscriber.
  package mutating func deliver(
    _ message: inout SharedMessage, to key: UInt64, token: UInt64 = 0, seq: UInt64? = nil, redelivered: Bool = false,
    into output: inout ByteBuffer
  ) -> Delivered {
    do {
      return try conversation?.deliver(
        &message, to: key, token: token, seq: seq, redelivered: redelivered, into: &output) ?? .unknown
    } catch {
      return .ended(end(error, receipt: nil))
    }
  }

  // MARK: Inside

  private mutating func close() {
    state = .closed
    conversation = nil
  }

  private mutating func end(_ violation: Violation, receipt: String?) -> [Action] {
    close()
    var headers: Headers = ["message": violation.message]
    headers.append("receipt-id", receipt)
    for field in violation.headers.fields { headers.append(field.name, field.value) }
    headers.append("content-type", "text/plain")
    return [
      .write(Frame(.error, headers, body: ByteBuffer(string: violation.message))), .close(.violation(violation.kind)),
    ]
  }

  private func connectRequest(_ frame: Frame) throws(Violation) -> ConnectRequest {
    guard frame.command == .connect || frame.command == .stomp else {
      throw Violation(.protocolError, "not connected: the first frame must be CONNECT")
    }
    guard let version = Version.highest(acceptedBy: frame.headers["accept-version"]) else {
      let all = Version.allCases.map(\.rawValue).joined(separator: ",")
      throw Violation(.protocolError, "Bad CONNECT: supported versions are \(all)", headers: ["version": all])
    }
    guard frame.body.readableBytes == 0 || !version.refusesStrayBodies else {
      throw Violation(.protocolError, "Bad CONNECT: only SEND may have a body")
    }
    guard version.hasHeartBeats else {
      return ConnectRequest(version: version, heartBeat: HeartBeat(sends: 0, wants: 0), headers: frame.headers)
    }
    guard let heartBeat = HeartBeat(header: frame.headers["heart-beat"]) else {
      throw Violation(.protocolError, "Bad CONNECT: heart-beat is two numbers of milliseconds")
    }
    return ConnectRequest(version: version, heartBeat: heartBeat, headers: frame.headers)
  }
}
