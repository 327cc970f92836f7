import CLinux
import Glibc
import MediaModel

/// A non-blocking TCP listener on all addresses of the host, for the thread that uses it.
package final class TCPListener {
  package enum Accepted {
    case connection(TCPConnection)
    /// No connection is pending.
    case none
    /// The system is out of files or memory. Pending connections keep waiting, and the listener stays readable.
    case exhausted
  }

  package let descriptor: Int32
  /// The most that may wait in the kernel for a connection that reads more slowly than the server sends, in bytes.
  private static let unsentLimit: Int32 = 128 << 10

  /// - Parameter ipv6: accept both families, else only IPv4.
  package init(port: UInt16, ipv6: Bool) throws(PortError) {
    descriptor = clinux_tcp_listen(ipv6, port)
    guard descriptor >= 0 else { throw PortError(.tcp, port, code: -descriptor) }
  }

  deinit { close(descriptor) }

  package func accept() -> Accepted {
    var source = clinux_address()
    let result = clinux_tcp_accept(descriptor, &source, Self.unsentLimit)
    guard result < 0 else { return .connection(TCPConnection(result, from: SocketAddress(source))) }
    switch -result {
    case EMFILE, ENFILE, ENOBUFS, ENOMEM: return .exhausted
    // No connection is pending, or it is already gone (accept(2) passes on network errors).
    default: return .none
    }
  }
}
