import NIOCore

/// A session after CONNECTED: subscriptions, transactions, heart-beats.
struct Conversation: Sendable {
  let configuration: Session.Configuration
  let version: Version
  let expiresAt: UInt64?
  var heartBeat: HeartBeatTimers
  private(set) var subscriptions: [Subscription] = []
  private var lastSubscription: UInt64 = 0
  /// The subject of `.ask`. No frame is handled before the answer.
  private var asked: (subscription: Subscription, receipt: String?)?
  private var transactions: [Transaction] = []
  /// The number of the last MESSAGE. It is both the `message-id` and the `ack`, because each subscription gets a separate
  /// MESSAGE.
  private var lastMessage: UInt64 = 0

  init(
    configuration: Session.Configuration, version: Version, heartBeat: HeartBeatTimers, expiresAt: UInt64?
  ) {
    self.configuration = configuration
    self.version = version
    self.heartBeat = heartBeat
    self.expiresAt = expiresAt
  }

  /// The size of all open transactions in bytes.
  var transactionBytes: Int { transactions.reduce(0) { $0 + $1.size } }

  // MARK: Time

  var nextDeadline: UInt64? { [heartBeat.beatDue, heartBeat.peerDead, expiresAt].compactMap { $0 }.min() }

  /// The violation that ends the session at `now`, if any.
  func violation(now: UInt64) -> Violation? {
    if let expiresAt, now >= expiresAt { return Violation(.tokenExpired, "token expired") }
    if let dead = heartBeat.peerDead, now >= dead { return Violation(.heartBeatMissing, "no heart-beat") }
    return nil
  }

  func owesHeartBeat(now: UInt64) -> Bool { heartBeat.beatDue.map { now >= $0 } ?? false }

  // MARK: Frames

  /// Carries out the frame completely or not at all; the receipt is the last action.
  mutating func handle(_ frame: Frame, _ admission: Session.Admission) throws(Violation) -> [Session.Action] {
    if version.refusesStrayBodies, !frame.command.mayHaveBody, frame.body.readableBytes > 0 {
      throw Violation(.protocolError, "only SEND may have a body")
    }
    var actions: [Session.Action] = []
    switch frame.command {
    case .send:
      _ = try header("destination", of: frame)
      if case .refused(let text) = admission { throw Violation(.protocolError, text) }
      if frame.headers["transaction"] == nil { actions = [.sent(frame)] } else { try stage(frame) }
    case .ack, .nack: actions = try acknowledge(frame)
    case .subscribe: actions = try subscribe(frame, admission)
    case .unsubscribe: actions = try unsubscribe(frame)
    case .begin: try begin(try name(of: frame))
    case .commit: actions = try commit(try end(try name(of: frame)))
    case .abort: _ = try end(try name(of: frame))
    case .disconnect: actions = [.close(.disconnected)]
    case .connect, .stomp: throw Violation(.protocolError, "already connected")
    case .connected, .message, .receipt, .error: throw Violation(.protocolError, "not a client's command")
    }
    if let receipt = frame.headers["receipt"], asked == nil {
      let reply = Session.Action.write(Frame(.receipt, ["receipt-id": receipt]))
      if case .close = actions.last { actions.insert(reply, at: actions.count - 1) } else { actions.append(reply) }
    }
    return actions
  }

  // MARK: Subscriptions

  private mutating func subscribe(
    _ frame: Frame, _ admission: Session.Admission
  ) throws(Violation) -> [Session.Action] {
    let destination = try header("destination", of: frame)
    let id = version.requiresSubscriptionID ? try header("id", of: frame) : frame.headers["id"]
    guard let mode = AckMode(rawValue: frame.headers["ack"] ?? "auto"), version.ackModes.contains(mode) else {
      throw Violation(.protocolError, "unknown ack mode")
    }
    // Ignoring it would deliver more than was requested.
    guard frame.headers["selector"] == nil else { throw Violation(.protocolError, "selectors are not supported") }
    guard !subscriptions.contains(where: { $0.id == id && (id != nil || $0.destination == destination) }) else {
      throw Violation(.protocolError, "subscription id is in use")
    }
    guard subscriptions.count < configuration.subscriptions else { throw Violation(.limit, "too many subscriptions") }
    switch admission {
    case .refused(let text): throw Violation(.protocolError, text)
    case .allowedOnce(let text) where subscriptions.contains(where: { $0.destination == destination }):
      throw Violation(.protocolError, text)
    case .allowed, .allowedOnce, .asked: break
    }
    lastSubscription += 1
    let subscription = Subscription(
      id: id, destination: destination, mode: mode, key: lastSubscription, version: version)
    if admission == .asked {
      asked = (subscription, frame.headers["receipt"])
      return [.ask(subscription)]
    }
    subscriptions.append(subscription)
    return [.subscribed(subscription)]
  }

  var isAsking: Bool { asked != nil }

  /// The answer to `.ask`.
  mutating func answer(refusal: String?) throws(SubscriptionRefused) -> [Session.Action] {
    guard let (subscription, receipt) = exchange(&asked, with: nil) else { return [] }
    if let refusal { throw SubscriptionRefused(violation: Violation(.protocolError, refusal), receipt: receipt) }
    subscriptions.append(subscription)
    guard let receipt else { return [.subscribed(subscription)] }
    return [.subscribed(subscription), .write(Frame(.receipt, ["receipt-id": receipt]))]
  }

  struct SubscriptionRefused: Error {
    let violation: Violation
    let receipt: String?
  }

  private mutating func unsubscribe(_ frame: Frame) throws(Violation) -> [Session.Action] {
    let index: Int?
    if version.requiresSubscriptionID || frame.headers["id"] != nil {
      let id = try header("id", of: frame)
      index = subscriptions.firstIndex { $0.id == id }
    } else {
      let destination = try header("destination", of: frame)
      index = subscriptions.firstIndex { $0.destination == destination }
    }
    guard let index else { throw Violation(.protocolError, "no such subscription") }
    return [.unsubscribed(subscriptions.remove(at: index))]
  }

  /// Appends the MESSAGE for the subscription with this key.
  mutating func deliver(
    _ message: inout SharedMessage, to key: UInt64, token: UInt64, seq: UInt64?, redelivered: Bool,
    into output: inout ByteBuffer
  ) throws(Violation) -> Session.Delivered {
    guard let index = subscriptions.firstIndex(where: { $0.key == key }) else { return .unknown }
    let wantsAck = subscriptions[index].mode != .auto
    guard !wantsAck || subscriptions[index].pending.count < configuration.unacknowledged else {
      throw Violation(.limit, "too many messages without ACK")
    }
    lastMessage += 1
    if wantsAck { subscriptions[index].wait(for: lastMessage, token: token) }
    let tail = message.tail(for: version)
    output.reserveCapacity(minimumWritableBytes: tail.readableBytes + subscriptions[index].line.count + 96)
    output.writeStaticString("MESSAGE\n")
    output.writeBytes(subscriptions[index].line)
    let number = String(lastMessage)
    output.writeStaticString("message-id:")
    output.writeString(number)
    if wantsAck, version >= .v12 {
      output.writeStaticString("\nack:")
      output.writeString(number)
    }
    if let seq {
      output.writeStaticString("\nseq:")
      output.writeString(String(seq))
    }
    output.writeStaticString(redelivered ? "\nredelivered:true\n" : "\n")
    output.writeImmutableBuffer(tail)
    return .written(isSettled: !wantsAck)
  }

  // MARK: ACK, NACK

  /// Determines which message an ACK or NACK means. In a transaction the message must be pending, and pending again at
  /// the COMMIT.
  private mutating func acknowledge(_ frame: Frame) throws(Violation) -> [Session.Action] {
    guard frame.headers["transaction"] != nil else { return try settle(frame) }
    _ = try acknowledged(by: frame)
    try stage(frame)
    return []
  }

  /// Keeps a frame for the COMMIT of its transaction.
  private mutating func stage(_ frame: Frame) throws(Violation) {
    let index = try transactionIndex(named: try name(of: frame))
    guard transactions[index].frames.count < configuration.framesInTransaction else {
      throw Violation(.limit, "too many frames in a transaction")
    }
    guard transactionBytes + frame.size <= configuration.transactionBytes else {
      throw Violation(.limit, "open transactions are too large")
    }
    transactions[index].append(frame)
  }

  private mutating func settle(_ frame: Frame) throws(Violation) -> [Session.Action] {
    let (index, number) = try acknowledged(by: frame)
    let receiver = Session.Receiver(key: subscriptions[index].key, destination: subscriptions[index].destination)
    return subscriptions[index].settle(number).map { token in
      .acknowledged(receiver, token: token, accepted: frame.command == .ack)
    }
  }

  /// The message that an ACK or NACK means, and the index of its subscription.
  private func acknowledged(by frame: Frame) throws(Violation) -> (subscription: Int, message: UInt64) {
    guard frame.command == .ack || version.hasNack else { throw Violation(.protocolError, "1.0 has no NACK") }
    let text = try header(version.acknowledgedBy, of: frame)
    let subscription = version.acknowledgesBySubscription ? try header("subscription", of: frame) : nil
    guard let number = decimal(text).map(UInt64.init),
      let index = subscriptions.firstIndex(where: { $0.isWaiting(for: number) }),
      subscription == nil || subscriptions[index].id == subscription
    else { throw Violation(.protocolError, "no message waits for this ACK") }
    return (index, number)
  }

  // MARK: Transactions

  private mutating func begin(_ name: String) throws(Violation) {
    guard !transactions.contains(where: { $0.name == name }) else {
      throw Violation(.protocolError, "transaction is open already")
    }
    guard transactions.count < configuration.transactions else {
      throw Violation(.limit, "too many open transactions")
    }
    transactions.append(Transaction(name: name))
  }

  /// Removes the transaction, for COMMIT or ABORT.
  private mutating func end(_ name: String) throws(Violation) -> Transaction {
    transactions.remove(at: try transactionIndex(named: name))
  }

  /// If an ACK in it has become void since, the whole COMMIT fails: the thrown error drops the actions collected so far.
  private mutating func commit(_ transaction: Transaction) throws(Violation) -> [Session.Action] {
    var actions: [Session.Action] = []
    for frame in transaction.frames { actions += frame.command == .send ? [.sent(frame)] : try settle(frame) }
    return actions
  }

  private func transactionIndex(named name: String) throws(Violation) -> Int {
    guard let index = transactions.firstIndex(where: { $0.name == name }) else {
      throw Violation(.protocolError, "no such transaction")
    }
    return index
  }

  private func name(of frame: Frame) throws(Violation) -> String { try header("transaction", of: frame) }

  private func header(_ name: String, of frame: Frame) throws(Violation) -> String {
    guard let value = frame.headers[name], !value.isEmpty else {
      throw Violation(.protocolError, "header \(name) is missing")
    }
    return value
  }
}

/// An open transaction: SEND, ACK and NACK frames that wait for COMMIT.
struct Transaction: Sendable {
  let name: String
  private(set) var frames: [Frame] = []
  /// Bytes of the frames kept.
  private(set) var size = 0

  init(name: String) { self.name = name }

  mutating func append(_ frame: Frame) {
    frames.append(frame)
    size += frame.size
  }
}
