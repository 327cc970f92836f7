import CZlib

/// Compression in the gzip format (RFC 1952), for files that are compressed once.
enum Gzip {
  /// nil if zlib has no memory, or compression makes the bytes no smaller.
  static func compress(_ bytes: [UInt8]) -> [UInt8]? {
    var stream = z_stream()
    guard conclave_begin_gzip(&stream) == Z_OK else { return nil }
    defer { deflateEnd(&stream) }
    // zlib declares its input as mutable but does not write to it.
    var input = bytes
    var isWhole = false
    let compressed = [UInt8](unsafeUninitializedCapacity: bytes.count) { output, count in
      input.withUnsafeMutableBufferPointer { input in
        stream.next_in = input.baseAddress
        stream.avail_in = UInt32(input.count)
        stream.next_out = output.baseAddress
        stream.avail_out = UInt32(output.count)
        isWhole = deflate(&stream, Z_FINISH) == Z_STREAM_END
        count = output.count - Int(stream.avail_out)
      }
    }
    return isWhole && compressed.count < bytes.count ? compressed : nil
  }
}
