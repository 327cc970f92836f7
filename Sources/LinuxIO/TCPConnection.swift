import CLinux
import Glibc
package import MediaModel

/// A non-blocking TCP connection that was accepted. It ends with the last reference.
package final class TCPConnection {
  package let descriptor: Int32
  package let remote: SocketAddress

  init(_ descriptor: Int32, from remote: SocketAddress) {
    self.descriptor = descriptor
    self.remote = remote
  }

  deinit { close(descriptor) }

  /// Reads what has arrived and returns the number of bytes: 0 when there is nothing yet, nil when the connection is over.
  package func receive(into buffer: UnsafeMutableRawBufferPointer) -> Int? {
    let result = clinux_tcp_receive(descriptor, buffer.baseAddress, buffer.count)
    if result == -EAGAIN { return 0 }
    return result > 0 ? Int(result) : nil
  }

  /// How many of the bytes the kernel took. An end shows up in `receive` only.
  package func send(_ bytes: UnsafeRawBufferPointer) -> Int {
    max(0, Int(clinux_tcp_send(descriptor, bytes.baseAddress, bytes.count)))
  }
}
