import COpenSSL

/// Both ends of one association's I/O as a BIO: a datagram to read, and the datagrams that OpenSSL has written.
///
/// OpenSSL 3.0 has no memory BIO that keeps datagrams separate.
final class DatagramPipe {
  /// More than any flight; bounds the memory that an endless writer could take.
  private static let outputLimit = 65_536

  /// Read by OpenSSL once, as a whole. Set only during a call into OpenSSL.
  var input: UnsafeRawBufferPointer?
  private(set) var output = Flight()

  /// A BIO that points to this pipe without owning it; the pipe must live as long as the BIO.
  func makeBIO() -> OpaquePointer? {
    guard let bio = BIO_new(Self.method) else { return nil }
    BIO_set_data(bio, Unmanaged.passUnretained(self).toOpaque())
    BIO_set_init(bio, 1)
    return bio
  }

  /// Removes and returns the datagrams written since the last call.
  func takeOutput() -> Flight {
    defer { output = Flight() }
    return output
  }

  /// Created once for the process and never changed.
  nonisolated(unsafe) private static let method: OpaquePointer? = {
    let method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "datagrams")
    BIO_meth_set_write(method) { bio, bytes, count in DatagramPipe.of(bio).write(bytes, count) }
    BIO_meth_set_read(method) { bio, buffer, capacity in DatagramPipe.of(bio).read(bio, buffer, capacity) }
    BIO_meth_set_ctrl(method) { _, command, _, _ in
      switch command {
      case BIO_CTRL_FLUSH: 1
      // IPv4 and UDP headers; only queried.
      case BIO_CTRL_DGRAM_GET_MTU_OVERHEAD: 28
      default: 0
      }
    }
    return method
  }()

  private static func of(_ bio: OpaquePointer?) -> DatagramPipe {
    guard let data = BIO_get_data(bio) else { preconditionFailure("a BIO of this method always has its pipe") }
    return Unmanaged.fromOpaque(data).takeUnretainedValue()
  }

  private func write(_ bytes: UnsafePointer<CChar>?, _ count: Int32) -> Int32 {
    guard count > 0, output.byteCount + Int(count) <= Self.outputLimit else { return -1 }
    output.append(UnsafeRawBufferPointer(start: bytes, count: Int(count)))
    return count
  }

  private func read(_ bio: OpaquePointer?, _ buffer: UnsafeMutablePointer<CChar>?, _ capacity: Int32) -> Int32 {
    copenssl_clear_retry(bio)
    guard let datagram = input, let source = datagram.baseAddress, let buffer, capacity > 0 else {
      copenssl_set_retry_read(bio)
      return -1
    }
    input = nil
    let count = min(datagram.count, Int(capacity))
    UnsafeMutableRawPointer(buffer).copyMemory(from: source, byteCount: count)
    return Int32(count)
  }
}
