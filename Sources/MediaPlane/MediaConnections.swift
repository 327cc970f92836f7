import LinuxIO
import MediaModel
import Transport

/// The TCP connections of one worker (RFC 6544, passive), for participants whose networks let no UDP out.
///
/// A datagram from a connection is treated like one from any path, so it is not trusted before an authentic check. A connection that belongs to no
/// participant is closed, and is the first to be evicted when all places are taken. Memory is bounded: for each connection one datagram in each
/// direction, and the kernel's buffers. For one thread.
final class MediaConnections {
  struct Limits {
    var connections = 2_048
    /// Unproven connections of one IPv4 address or IPv6 /64. Many clients can be behind one address.
    var waiting = 128
    /// How long a connection may belong to no participant.
    var patience = Duration.seconds(10)
    /// The same while more than half of all connections are taken.
    var patienceUnderLoad = Duration.seconds(1)
  }

  private(set) var counters = TCPCounters()
  /// When `sweep` must be called.
  private(set) var nextSweep: Instant?
  let listener: TCPListener

  private let limits: Limits
  private let token: UInt64
  /// Indexed by number; 0 is UDP's.
  private var table: [MediaConnection?]
  private var free: [UInt16]
  /// Connections that belong to no participant, oldest first, and how many each neighborhood has.
  private var unproven: NumberQueue
  private var waiting: [SocketAddress: Int] = [:]
  private let received: UnsafeMutableRawBufferPointer
  private let framed: UnsafeMutableRawBufferPointer

  private static let sweepInterval = Duration.seconds(1)
  private static let acceptsPerTurn = 64
  /// Bytes read before others have their turn.
  private static let readLength = 32 << 10

  /// - Parameter token: the listener's at epoll; that of a connection is greater by its number.
  init(_ listener: TCPListener, token: UInt64, limits: Limits = Limits()) {
    self.listener = listener
    self.token = token
    self.limits = limits
    table = Array(repeating: nil, count: limits.connections + 1)
    unproven = NumberQueue(greatest: limits.connections)
    free = (1...limits.connections).reversed().map { UInt16($0) }
    received = .allocate(byteCount: Self.readLength, alignment: 64)
    // A whole run of the outbox, the lengths of its datagrams, and what must leave first.
    framed = .allocate(byteCount: 68 << 10, alignment: 64)
  }

  deinit {
    received.deallocate()
    framed.deallocate()
  }

  /// Accepts pending connections.
  func accept(now: Instant, in epoll: borrowing Epoll) {
    for _ in 0..<Self.acceptsPerTurn {
      switch listener.accept() {
      case .none: return
      case .exhausted:
        counters[.exhausted] &+= 1
        // The listener stays readable, so asking again immediately would never end.
        epoll.change(listener.descriptor, token: token, readable: false, writable: false)
        nextSweep = nextSweep ?? now.advanced(by: Self.sweepInterval)
        return
      case .connection(let tcp): add(tcp, now: now, to: epoll)
      }
    }
  }

  private func add(_ tcp: TCPConnection, now: Instant, to epoll: borrowing Epoll) {
    guard waiting[tcp.remote.neighborhood, default: 0] < limits.waiting else {
      return counters[.tooManyWaiting] &+= 1
    }
    // An honest client proves itself with its first datagram; a flood of strangers replaces itself.
    if free.isEmpty, let oldest = unproven.first, let connection = table[Int(oldest)] { _ = end(connection, .evicted) }
    guard let number = free.last else { return counters[.full] &+= 1 }
    do { try epoll.add(tcp.descriptor, token: token + UInt64(number)) } catch { return counters[.exhausted] &+= 1 }
    free.removeLast()
    let connection = MediaConnection(tcp, number: number, now: now)
    table[Int(number)] = connection
    wait(connection)
    counters.accepted &+= 1
    counters.open += 1
    nextSweep = nextSweep ?? now.advanced(by: Self.sweepInterval)
  }

  private func wait(_ connection: MediaConnection) {
    connection.isProven = false
    unproven.append(connection.address.connection)
    waiting[connection.address.neighborhood, default: 0] += 1
  }

  private func stopWaiting(_ connection: MediaConnection) {
    unproven.remove(connection.address.connection)
    let neighborhood = connection.address.neighborhood
    let others = waiting[neighborhood, default: 1] - 1
    waiting[neighborhood] = others > 0 ? others : nil
  }

  private func prove(_ connection: MediaConnection) {
    stopWaiting(connection)
    connection.isProven = true
  }

  /// Passes what a connection has received to `each`, datagram by datagram; also continues with what it did not take.
  /// - Parameter isPath: whether an address belongs to a participant, after `each`.
  /// - Returns: the connection's address if it has ended.
  func receive(
    _ number: Int, in epoll: borrowing Epoll, isPath: (SocketAddress) -> Bool,
    each: (UnsafeMutableRawBufferPointer, SocketAddress) -> Void
  ) -> SocketAddress? {
    guard table.indices.contains(number), let connection = table[number] else { return nil }
    if connection.isBlocked { finish(connection, in: epoll) }
    let headroom = connection.input.headroom
    guard let count = connection.tcp.receive(into: UnsafeMutableRawBufferPointer(rebasing: received[headroom...]))
    else { return end(connection, .gone) }
    guard count > 0 else { return nil }
    let whole = UnsafeMutableRawBufferPointer(rebasing: received[..<(headroom + count)])
    guard connection.input.split(whole, each: { each($0, connection.address) }) else {
      return end(connection, .tooLong)
    }
    if !connection.isProven, isPath(connection.address) { prove(connection) }
    return nil
  }

  /// Sends those of the runs whose path is a connection. Datagrams that a connection does not accept are dropped and counted: late media is worth less
  /// than memory.
  func send(_ runs: UnsafeBufferPointer<DatagramRun>, in epoll: borrowing Epoll) {
    for run in runs where run.destination.connection != 0 {
      guard let connection = table[Int(run.destination.connection)], connection.address == run.destination else {
        counters[.ended] &+= UInt64(run.count)
        continue
      }
      guard !connection.isBlocked, let bytes = connection.output.frame(run, into: framed) else {
        counters[.slowReader] &+= UInt64(run.count)
        continue
      }
      let taken = connection.tcp.send(bytes)
      guard taken < bytes.count else { continue }
      counters[.slowReader] &+= UInt64(connection.output.took(taken, of: bytes))
      connection.isBlocked = true
      epoll.change(connection.tcp.descriptor, token: self.token(of: connection), readable: true, writable: true)
    }
  }

  /// Tries to send the rest of the datagram that was begun.
  private func finish(_ connection: MediaConnection, in epoll: borrowing Epoll) {
    let unfinished = connection.output.unfinished
    if !unfinished.isEmpty { connection.output.tookUnfinished(connection.tcp.send(unfinished)) }
    guard connection.output.unfinished.isEmpty else { return }
    connection.isBlocked = false
    epoll.change(connection.tcp.descriptor, token: token(of: connection), readable: true, writable: false)
  }

  /// Closes connections that belong to no participant, and accepts new ones again. Due at `nextSweep`.
  func sweep(now: Instant, in epoll: borrowing Epoll, isPath: (SocketAddress) -> Bool) {
    let patience = counters.open * 2 > limits.connections ? limits.patienceUnderLoad : limits.patience
    for number in table.indices {
      guard let connection = table[number] else { continue }
      if isPath(connection.address) {
        if !connection.isProven { prove(connection) }
        connection.provenAt = now
        continue
      }
      if connection.isProven { wait(connection) }
      if connection.provenAt.duration(to: now) >= patience {
        _ = end(connection, .unproven)
      }
    }
    epoll.change(listener.descriptor, token: token, readable: true, writable: false)
    nextSweep = counters.open > 0 ? now.advanced(by: Self.sweepInterval) : nil
  }

  private func end(_ connection: MediaConnection, _ reason: TCPCounters.Ending) -> SocketAddress {
    if !connection.isProven { stopWaiting(connection) }
    table[Int(connection.address.connection)] = nil
    free.append(connection.address.connection)
    counters.open -= 1
    counters[reason] &+= 1
    return connection.address
  }

  private func token(of connection: MediaConnection) -> UInt64 { token + UInt64(connection.address.connection) }
}

extension SocketAddress {
  /// Represents all addresses of the same IPv4 address or IPv6 /64, which one host may own completely.
  fileprivate var neighborhood: SocketAddress { SocketAddress(high: high, low: isIPv4 ? low : 0, port: 0) }
}
