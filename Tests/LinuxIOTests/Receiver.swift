import LinuxIO
import MediaModel
import Testing

/// A socket that collects what arrives, with a bounded wait.
final class Receiver {
  struct Datagram: Equatable {
    var bytes: [UInt8]
    var source: SocketAddress
  }

  let socket: UDPSocket
  let batch: ReceiveBatch
  private let epoll: Epoll
  /// The index of the local address of each collected datagram.
  private(set) var locals: [UInt16] = []
  /// How long each datagram waited, in nanoseconds.
  private(set) var ages: [UInt64] = []

  init(receiveOffload: Bool = true, batchCapacity: Int = 64, ipv6: Bool = true) throws {
    var options = UDPSocket.Options()
    options.receiveOffload = receiveOffload
    options.ipv6 = ipv6
    socket = try UDPSocket(port: 0, options: options)
    batch = ReceiveBatch(capacity: batchCapacity, coalesced: receiveOffload)
    epoll = try Epoll()
    try epoll.add(socket.descriptor, token: 1)
  }

  var address: SocketAddress { SocketAddress(ipv4: 0x7f00_0001, port: socket.port) }
  var address6: SocketAddress { SocketAddress(high: 0, low: 1, port: socket.port) }

  /// Waits until `count` datagrams have arrived, or none has for two seconds.
  func collect(_ count: Int) -> [Datagram] {
    var all: [Datagram] = []
    while all.count < count {
      guard !epoll.wait(nanoseconds: 2_000_000_000).isEmpty else { break }
      socket.receive(into: batch)
      for datagram in batch.datagrams {
        var source = datagram.source
        locals.append(source.localAddress)
        ages.append(datagram.age)
        source.localAddress = 0
        all.append(Datagram(bytes: Array(datagram.bytes), source: source))
      }
    }
    return all
  }
}

/// A run in its own memory: byte i of datagram d is d + i.
final class TestRun {
  let memory: UnsafeMutableRawPointer
  let run: DatagramRun
  let datagrams: [[UInt8]]

  init(lengths: [Int], to destination: SocketAddress) {
    datagrams = lengths.enumerated().map { d, length in (0..<length).map { UInt8(truncatingIfNeeded: d + $0) } }
    let bytes = datagrams.flatMap { $0 }
    memory = .allocate(byteCount: bytes.count, alignment: 16)
    memory.copyMemory(from: bytes, byteCount: bytes.count)
    run = DatagramRun(base: memory, length: bytes.count, segment: lengths[0], destination: destination)
  }

  deinit { memory.deallocate() }
}

extension UDPSocket {
  func send(_ runs: [TestRun]) {
    withExtendedLifetime(runs) { runs.map(\.run).withUnsafeBufferPointer { send($0) } }
  }
}
