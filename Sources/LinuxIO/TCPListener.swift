import CLinux
import Glibc
import MediaModel

/// A non-blocking TCP listener on all addresses of the host, for the thread that uses it.
package final class TCPListener {
  package enum Accepted {
    case connection(TCPConnection)
    /// Nobody waits.
    case none
    /// The system can give no more, of files or of memory: those who wait go on waiting, and the listener stays readable.
    case exhausted
  }

  package let descriptor: Int32
  /// What may wait in the kernel for a connection that is slower than what is sent to it, in bytes.
  private static let unsentLimit: Int32 = 128 << 10

  /// - Parameter ipv6: take both families, else IPv4 alone.
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
    // Nobody, or somebody who was gone before (accept(2) hands over errors of the network).
    default: return .none
    }
  }
}
