import RTP

/// One received RTP packet on its way to the receivers: its memory, and the fields that are read once for all of them.
///
/// It is a view: a borrower cannot change its fields, and writes to its memory through `overwritten`. As an `inout` argument it is copied on its
/// way to each receiver, which takes 37 instructions more.
struct Packet {
  var base: UnsafeMutableRawPointer
  /// Header and payload; the sender's padding is cut off.
  var length: Int
  var header: RTPHeader
  /// The unwrapped sequence number.
  var index: UInt64
  var extensions: HeaderExtensions?
  /// The descriptor, in a VP8 stream.
  var vp8: VP8Descriptor?
  /// The frame to which it belongs, in a stream with dependency descriptors.
  var frame: EncodedFrame?
  /// It has a dependency descriptor that cannot be used.
  var isUnreadable = false
  /// It begins a key frame, as far as the clear bytes tell.
  var isKeyFrame = false

  init(base: UnsafeMutableRawPointer, length: Int, header: RTPHeader, index: UInt64) {
    self.base = base
    self.length = length
    self.header = header
    self.index = index
    extensions = HeaderExtensions(header)
  }

  var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: base, count: length) }

  var payload: UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(start: base + header.headerLength, count: length - header.headerLength)
  }

  /// The bytes of header and payload. Each receiver writes some of them, and some are no longer needed.
  var overwritten: UnsafeMutableRawBufferPointer { UnsafeMutableRawBufferPointer(start: base, count: length) }

  /// Reads the dependency descriptor, whose extension has this id, if there is one.
  mutating func readFrame(_ id: UInt8, by reader: UnsafeMutablePointer<FrameReader>) {
    guard let element = extensions?.element(id, in: bytes.bytes) else { return }
    frame = reader.pointee.read(element, in: bytes.bytes, index: index, timestamp: header.timestamp)
    isUnreadable = frame == nil
    isKeyFrame = frame.map { $0.isKeyFrame && $0.startsFrame } ?? false
  }

  /// Reads the fields that only VP8 has.
  mutating func readVP8() {
    vp8 = VP8Descriptor(parsing: payload.bytes)
  }
}
