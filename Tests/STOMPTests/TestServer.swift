import NIOCore
import STOMP

/// The server's side without sockets: bytes in, written frames and application actions out, as in the real server.
struct TestServer {
  var session: Session
  var decoder = FrameDecoder(limits: .beforeLogin)
  var now: UInt64 = 0
  /// The written frames as UTF-8, each with NUL at the end.
  var written: [String] = []
  /// SENDs that reached the application.
  var sent: [Frame] = []
  var acknowledged: [(token: UInt64, accepted: Bool)] = []
  var subscribed: [String] = []
  /// The destinations about which the application has been asked.
  var asked: [String] = []
  var heartBeats = 0
  var closed: Session.End?
  var answersConnect = true
  var expiresAt: UInt64?

  init(
    _ version: Version? = nil, heartBeat: String? = nil, expiresAt: UInt64? = nil,
    configure: (inout Session.Configuration) -> Void = { _ in }
  ) {
    var configuration = Session.Configuration()
    configure(&configuration)
    session = Session(configuration: configuration, now: 0)
    self.expiresAt = expiresAt
    guard let version else { return }
    let beat = heartBeat.map { "heart-beat:\($0)\n" } ?? ""
    receive("CONNECT\naccept-version:\(version.rawValue)\n\(beat)host:h\n\n\0")
    written.removeAll()
  }

  mutating func receive(_ text: String) { receive(Array(text.utf8)) }

  mutating func receive(_ bytes: [UInt8]) {
    var buffer = ByteBuffer(bytes: bytes)
    decoder.append(&buffer)
    session.received(now: now)
    pull()
  }

  mutating func pull() {
    do {
      while !session.isWaiting, closed == nil, let frame = try next() {
        perform(session.handle(frame, admission: admission(of: frame), now: now))
      }
    } catch {
      perform(session.handle(error))
    }
  }

  private func admission(of frame: Frame) -> Session.Admission {
    let destination = frame.headers["destination"] ?? ""
    if destination.hasPrefix("/no") { return .refused("not allowed") }
    if destination.hasPrefix("/once") { return .allowedOnce("once only") }
    return destination.hasPrefix("/ask") ? .asked : .allowed
  }

  private mutating func next() throws(FrameError) -> Frame? {
    decoder.version = session.version
    return try decoder.next()
  }

  mutating func accept() {
    let welcome = Welcome(
      session: "s1", server: "conclave/1", user: "alice", device: "phone", expiresAt: expiresAt)
    perform(session.accept(welcome, now: now))
    decoder.limits = FrameLimits()
  }

  mutating func advance(to time: UInt64) {
    now = time
    perform(session.handleTimeout(now: now))
  }

  mutating func deliver(_ text: String, to destination: String, token: UInt64) {
    deliver(SharedMessage(destination: destination, headers: [:], body: ByteBuffer(string: text)), token: token)
  }

  /// Delivers to each subscription to the destination.
  mutating func deliver(_ message: SharedMessage, token: UInt64) {
    var message = message
    for key in session.subscriptions.filter({ $0.destination == message.destination }).map(\.key) {
      var bytes = ByteBuffer()
      if case .ended(let actions) = session.deliver(&message, to: key, token: token, into: &bytes) { perform(actions) }
      if bytes.readableBytes > 0 { written.append(String(buffer: bytes)) }
    }
  }

  mutating func perform(_ actions: [Session.Action]) {
    for action in actions {
      switch action {
      case .authenticate:
        if answersConnect { accept() }
      case .write(let frame):
        written.append(String(buffer: FrameEncoder(version: session.version).encode(frame)))
        session.wrote(now: now)
      case .heartBeat:
        heartBeats += 1
        session.wrote(now: now)
      case .ask(let subscription): asked.append(subscription.destination)
      case .subscribed(let subscription): subscribed.append(subscription.destination)
      case .unsubscribed(let subscription): subscribed.removeAll { $0 == subscription.destination }
      case .sent(let frame): sent.append(frame)
      case .acknowledged(_, let token, let accepted): acknowledged.append((token, accepted))
      case .close(let end): closed = end
      }
    }
  }

  /// The last written frame, parsed.
  var last: Frame? {
    guard let text = written.last else { return nil }
    return try? decode(text, version: session.version).last
  }

  /// The `message` of the ERROR that ended the session; nil if the session continues.
  var error: String? { closed != nil && last?.command == .error ? last?.headers["message"] : nil }
}

/// All frames of `text`.
func decode(
  _ text: String, version: Version = .v12, limits: FrameLimits = FrameLimits()
) throws(FrameError) -> [Frame] {
  try decode(Array(text.utf8), version: version, limits: limits)
}

func decode(
  _ bytes: [UInt8], version: Version = .v12, limits: FrameLimits = FrameLimits(), pieces: [Int] = []
) throws(FrameError) -> [Frame] {
  var decoder = FrameDecoder(version: version, limits: limits)
  var frames: [Frame] = []
  var start = 0
  for end in pieces.sorted() + [bytes.count] {
    var piece = ByteBuffer(bytes: bytes[start..<end])
    start = end
    decoder.append(&piece)
    while let frame = try decoder.next() { frames.append(frame) }
  }
  return frames
}

func error(
  _ text: String, version: Version = .v12, limits: FrameLimits = FrameLimits()
) -> FrameError.Reason? {
  do {
    _ = try decode(text, version: version, limits: limits)
    return nil
  } catch {
    return error.reason
  }
}
