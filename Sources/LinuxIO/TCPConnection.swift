import CLinux
import Glibc
package import MediaModel

/// An accepted, non-blocking TCP connection. It ends with the last reference.
package final class TCPConnection {
  package let descriptor: Int32
  package let remote: SocketAddress

  init(_ descriptor: Int32, from remote: SocketAddress) {
    self.descriptor = descriptor
    self.remote = remote
  }

  deinit { close(descriptor) }

  /// Reads what has arrived and returns the number of bytes: 0 if there is nothing yet, nil if the connection is over.
  package func receive(into buffer: UnsafeMutableRawBufferPointer) -> Int? {
    let result = clinux_tcp_receive(descriptor, buffer.baseAddress, buffer.count)
    if result == -EAGAIN { return 0 }
    return result > 0 ? Int(result) : nil
  }

  /// The number of bytes that the kernel took. An end shows up only in `receive`.
  package func send(_ bytes: UnsafeRawBufferPointer) -> Int {
    max(0, Int(clinux_tcp_send(descriptor, bytes.baseAddress, bytes.count)))
  }
}
