import MediaModel

/// The 256 bytes of a message: when it was due to be sent, in 16 hexadecimal digits, and padding.
enum StampedBody {
  static let length = 256
  private static let digits = 16
  private static let hexadecimal = Array("0123456789abcdef".utf8)

  /// A SEND frame whose body is `length` bytes long.
  static func frame(to destination: String, at time: Instant) -> [UInt8] {
    var frame = Array("SEND\ndestination:\(destination)\ncontent-length:\(length)\n\n".utf8)
    for shift in stride(from: (digits - 1) * 4, through: 0, by: -4) {
      frame.append(hexadecimal[Int(time.nanoseconds >> UInt64(shift)) & 15])
    }
    frame.append(contentsOf: repeatElement(UInt8(ascii: "x"), count: length - digits))
    frame.append(0)
    return frame
  }

  /// The time in a MESSAGE frame that ends with the body; nil when it is not from this test.
  static func time(of frame: UnsafeRawBufferPointer) -> Instant? {
    guard frame.count > length else { return nil }
    var value: UInt64 = 0
    for byte in frame[(frame.count - length)..<(frame.count - length + digits)] {
      switch byte {
      case UInt8(ascii: "0")...UInt8(ascii: "9"): value = value << 4 | UInt64(byte - UInt8(ascii: "0"))
      case UInt8(ascii: "a")...UInt8(ascii: "f"): value = value << 4 | UInt64(byte - UInt8(ascii: "a") + 10)
      default: return nil
      }
    }
    return Instant(nanoseconds: value)
  }
}
