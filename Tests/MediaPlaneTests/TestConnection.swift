import Glibc
import LinuxIO

/// A port that is free for UDP and TCP.
func openPort() throws -> (UDPSocket, TCPListener) {
  while true {
    let socket = try UDPSocket(port: 0)
    if let listener = try? TCPListener(port: socket.port, ipv6: socket.hasIPv6) { return (socket, listener) }
  }
}

/// A client's TCP connection with plain system calls and its own framing.
final class TestConnection {
  private let descriptor: Int32
  private var input: [UInt8] = []
  private(set) var hasEnded = false

  struct Refused: Error { var code: Int32 }

  /// - Parameters:
  ///   - source: the last byte of its source address in 127.0.0.0/24.
  ///   - receiveBuffer: the number of bytes that may be unread; nil: the system's choice.
  init(port: UInt16, from source: UInt32 = 1, receiveBuffer: Int32? = nil) throws {
    descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    if var receiveBuffer {
      setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &receiveBuffer, socklen_t(MemoryLayout<Int32>.size))
    }
    var local = sockaddr_in()
    local.sin_family = sa_family_t(AF_INET)
    local.sin_addr.s_addr = (0x7f00_0000 | source).bigEndian
    _ = withUnsafeBytes(of: local) {
      bind(descriptor, $0.assumingMemoryBound(to: sockaddr.self).baseAddress, socklen_t($0.count))
    }
    var target = sockaddr_in()
    target.sin_family = sa_family_t(AF_INET)
    target.sin_port = port.bigEndian
    target.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    let result = withUnsafeBytes(of: target) {
      connect(descriptor, $0.assumingMemoryBound(to: sockaddr.self).baseAddress, socklen_t($0.count))
    }
    if result != 0 { throw Refused(code: errno) }
  }

  deinit { close(descriptor) }

  /// Sends bytes unchanged.
  func write(_ bytes: [UInt8]) {
    _ = Glibc.send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL))
  }

  func send(_ datagram: some Collection<UInt8>) {
    write([UInt8(datagram.count >> 8), UInt8(datagram.count & 0xff)] + datagram)
  }

  /// The complete datagrams that have arrived, after waiting at most this long for something.
  func receive(milliseconds: Int32 = 0) -> [[UInt8]] {
    var ready = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    guard !hasEnded, poll(&ready, 1, milliseconds) > 0 else { return [] }
    var bytes = [UInt8](repeating: 0, count: 65_536)
    var count = recv(descriptor, &bytes, bytes.count, Int32(MSG_DONTWAIT))
    hasEnded = count == 0 || count < 0 && errno != EAGAIN
    while count > 0 {
      input += bytes[..<count]
      count = recv(descriptor, &bytes, bytes.count, Int32(MSG_DONTWAIT))
    }
    return datagrams()
  }

  /// Closes it by a reset instead of a FIN.
  func reset() {
    var linger = linger(l_onoff: 1, l_linger: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout<Glibc.linger>.size))
    shutdown(descriptor, Int32(SHUT_RD))
    var none = sockaddr()
    none.sa_family = sa_family_t(AF_UNSPEC)
    connect(descriptor, &none, socklen_t(MemoryLayout<sockaddr>.size))
  }

  private func datagrams() -> [[UInt8]] {
    var datagrams: [[UInt8]] = []
    var next = 0
    while input.count - next >= 2 {
      let end = next + 2 + Int(input[next]) << 8 + Int(input[next + 1])
      guard end <= input.count else { break }
      datagrams.append(Array(input[next + 2..<end]))
      next = end
    }
    input.removeFirst(next)
    return datagrams
  }
}
