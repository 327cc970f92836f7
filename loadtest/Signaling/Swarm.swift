import Glibc
import LinuxIO
import MediaModel

/// Connections to one broker, driven by the calling thread. The first may publish, and all may subscribe.
final class Swarm {
  /// A message for the person who runs the test.
  struct Failure: Error, CustomStringConvertible { var description: String }

  /// The `server` header of CONNECTED.
  private(set) var serverName: String?
  private(set) var deliveries = 0
  /// The latency of messages that were due after `measuringSince`.
  private(set) var latency = LatencyHistogram()
  var measuringSince = Instant(nanoseconds: .max)

  private let broker: MeasuredBroker
  private let epoll: Epoll
  private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 64)
  private var connections: [StompConnection] = []
  private var connected = 0
  private var subscribed = 0
  private var failure: Failure?

  init(_ broker: MeasuredBroker) throws(SystemError) {
    self.broker = broker
    epoll = try Epoll()
  }

  deinit { buffer.deallocate() }

  /// Opens connections, at most so many `atOnce` that are not CONNECTED yet.
  /// - Returns: time until the last was CONNECTED.
  func connect(_ count: Int, atOnce: Int, within limit: Duration) throws -> Duration {
    let start = MonotonicClock.now()
    var hints = addrinfo()
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    var found: UnsafeMutablePointer<addrinfo>?
    guard getaddrinfo(broker.address.host, String(broker.address.port), &hints, &found) == 0, let found else {
      throw Failure(description: "\(broker.address.host): there is no such host; check --url and --against")
    }
    defer { freeaddrinfo(found) }
    connections.reserveCapacity(count)
    for number in 0..<count {
      let connection = StompConnection(try StreamSocket(to: found), connectFrame: broker.connectFrame(number))
      connections.append(connection)
      try epoll.addStream(connection.socket.descriptor, token: UInt64(number))
    }
    try wait(limit) {
      connected == count
    } orFail: {
      "\(connected) of \(count) connections got CONNECTED"
    }
    return start.duration(to: MonotonicClock.now())
  }

  /// Subscribes all but the first `excluded`; returns when the broker has confirmed it.
  func subscribe(to destination: String, excluding excluded: Int, within limit: Duration) throws {
    let frame = Array("SUBSCRIBE\nid:1\nack:auto\nreceipt:1\ndestination:\(destination)\n\n\0".utf8)
    for connection in connections.dropFirst(excluded) { connection.write(frame) }
    let count = connections.count - excluded
    try wait(limit) {
      subscribed == count
    } orFail: {
      "\(subscribed) of \(count) subscriptions were confirmed"
    }
  }

  /// Sends a message that was due at `time`, on the first connection.
  func publish(to destination: String, at time: Instant) {
    connections[0].write(StampedBody.frame(to: destination, at: time))
  }

  /// The test has been interrupted.
  struct Interrupted: Error {}

  /// The interval at which the interrupt flag is polled, since a signal may arrive on another thread.
  private static let longestTurn = Duration.milliseconds(100)

  /// Handles what arrives until `end`, at most for `longestTurn`, and at least once; returns early when something
  /// arrived.
  func turn(until end: Instant) throws {
    if Interrupt.hasCome { throw Interrupted() }
    let now = MonotonicClock.now()
    let end = min(end, now.advanced(by: Self.longestTurn))
    for token in epoll.wait(nanoseconds: end > now ? end.nanoseconds - now.nanoseconds : 0) { handle(Int(token)) }
    if let failure { throw failure }
  }

  private func wait(_ limit: Duration, until isDone: () -> Bool, orFail words: () -> String) throws {
    let end = MonotonicClock.now().advanced(by: limit)
    while !isDone() {
      guard MonotonicClock.now() < end else {
        throw Failure(
          description: "\(words()) within \(limit); look at the server's log and limits, or raise --join-timeout")
      }
      try turn(until: end)
    }
  }

  private func handle(_ number: Int) {
    let connection = connections[number]
    let now = MonotonicClock.now()
    do throws(StompConnection.Failure) {
      try connection.checkConnecting()
      connection.flush()
      try connection.read(into: buffer) { take($0, from: connection, now) }
    } catch {
      failure = failure ?? words(error, number)
    }
  }

  private func take(_ frame: UnsafeRawBufferPointer, from connection: StompConnection, _ now: Instant) {
    switch frame.first {
    case UInt8(ascii: "M"):
      deliveries += 1
      if let time = StampedBody.time(of: frame), time >= measuringSince {
        latency.record(nanoseconds: UInt64(max(0, time.duration(to: now).nanoseconds)))
      }
    case UInt8(ascii: "C") where connection.phase == .greeting:
      connection.phase = .connected
      connected += 1
      serverName = serverName ?? Self.header("server", of: frame)
    case UInt8(ascii: "R") where connection.phase == .connected:
      connection.phase = .subscribed
      subscribed += 1
    default:
      let message = Self.header("message", of: frame) ?? String(decoding: frame.prefix(200), as: UTF8.self)
      failure =
        failure
        ?? Failure(
          description:
            "the server at \(broker.address.port) refused: \(message); Conclave needs \"destinations\": [\"/topic/\"] and tokens of its secret, another broker LOGIN:PASSCODE@ in its URL"
        )
    }
  }

  private static func header(_ name: String, of frame: UnsafeRawBufferPointer) -> String? {
    let head = String(decoding: frame.prefix(4_096), as: UTF8.self)
    return head.split(separator: "\n").first { $0.hasPrefix(name + ":") }.map { String($0.dropFirst(name.count + 1)) }
  }

  private func words(_ failure: StompConnection.Failure, _ number: Int) -> Failure {
    let name = "\(broker.address.host):\(broker.address.port)"
    switch failure {
    case .notConnected(let error): return Failure(description: "\(name): \(error); is the server running there?")
    case .frameTooLong: return Failure(description: "\(name): a frame is longer than 64 KiB; is this a STOMP port?")
    case .ended:
      return Failure(
        description:
          "\(name) closed connection \(number + 1) of \(connections.count); look at the server's log, its limits and its open files"
      )
    }
  }
}
