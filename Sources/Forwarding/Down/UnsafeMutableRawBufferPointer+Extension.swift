import Octets
import RTP

extension UnsafeMutableRawBufferPointer {
  /// Adds an element with a short text to the header extension of the RTP header that fills the first `headerLength` bytes.
  /// - Parameters:
  ///   - id: from 1 to 14; others, and texts over 16 bytes, are left out.
  ///   - extensions: the header's, nil when it has none.
  /// - Returns: the header's new length, at most 24 more.
  func appendExtension(_ id: UInt8, _ text: String, headerLength: Int, of extensions: HeaderExtensions?) -> Int {
    let size = text.utf8.count
    guard 1...14 ~= id, 1...16 ~= size else { return headerLength }
    var end = headerLength
    var start = headerLength
    if extensions == nil {
      self[0] |= 0x10
      store(UInt16(0xbede), at: end)
      end += 4
    } else {
      start = RTPHeader.fixedLength + 4 * Int(self[0] & 0x0f)
    }
    if extensions?.hasTwoByteHeaders == true {
      self[end] = id
      self[end + 1] = UInt8(size)
      end += 2
    } else {
      self[end] = id << 4 | UInt8(size - 1)
      end += 1
    }
    for byte in text.utf8 {
      self[end] = byte
      end += 1
    }
    while (end - headerLength) % 4 != 0 {
      self[end] = 0
      end += 1
    }
    store(UInt16((end - start - 4) / 4), at: start + 2)
    return end
  }
}
