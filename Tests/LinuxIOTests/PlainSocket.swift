import Glibc
import LinuxIO
import MediaModel

/// A connected IPv4 socket that uses plain system calls: a peer that shares no code with `UDPSocket`.
final class PlainSocket {
  let descriptor: Int32

  init(to address: SocketAddress) throws {
    descriptor = socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
    var target = sockaddr_in()
    target.sin_family = sa_family_t(AF_INET)
    target.sin_port = address.port.bigEndian
    target.sin_addr.s_addr = address.ipv4.bigEndian
    guard connect(descriptor, to: target) else { throw SystemError("connect", code: errno) }
  }

  deinit { close(descriptor) }

  /// The lengths of the next datagrams; fewer if none arrives for two seconds.
  func receive(_ count: Int) throws -> [Int] {
    var timeout = timeval(tv_sec: 2, tv_usec: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
    var buffer = [UInt8](repeating: 0, count: 2_048)
    var lengths: [Int] = []
    while lengths.count < count {
      let length = recv(descriptor, &buffer, buffer.count, 0)
      guard length >= 0 else { break }
      lengths.append(length)
    }
    return lengths
  }
}

/// Connects a socket, which can still send to others by address.
func connect(_ socket: UDPSocket, toIPv4 address: SocketAddress) -> Bool {
  var target = sockaddr_in6()
  target.sin6_family = sa_family_t(AF_INET6)
  target.sin6_port = address.port.bigEndian
  withUnsafeMutableBytes(of: &target.sin6_addr) {
    $0.storeBytes(of: (0xffff_0000_0000 | UInt64(address.ipv4)).bigEndian, toByteOffset: 8, as: UInt64.self)
  }
  return connect(socket.descriptor, to: target)
}

private func connect<Address>(_ descriptor: Int32, to target: Address) -> Bool {
  withUnsafeBytes(of: target) {
    connect(descriptor, $0.assumingMemoryBound(to: sockaddr.self).baseAddress, socklen_t($0.count)) == 0
  }
}

func setOption(_ descriptor: Int32, _ level: Int32, _ option: Int32, _ value: Int32) -> Bool {
  var value = value
  return setsockopt(descriptor, level, option, &value, socklen_t(MemoryLayout<Int32>.size)) == 0
}
