// Numbers in network byte order, at any alignment. A read or write beyond the end traps in every build, so a parser that forgets a check
// ends the process instead of reading the memory behind.

extension RawSpan {
  @inlinable package subscript(offset: Int) -> UInt8 { unsafeLoad(fromByteOffset: offset, as: UInt8.self) }

  @inlinable package func uint16(at offset: Int) -> UInt16 {
    UInt16(bigEndian: unsafeLoadUnaligned(fromByteOffset: offset, as: UInt16.self))
  }

  @inlinable package func uint24(at offset: Int) -> UInt32 {
    UInt32(uint16(at: offset)) << 8 | UInt32(self[offset + 2])
  }

  @inlinable package func uint32(at offset: Int) -> UInt32 {
    UInt32(bigEndian: unsafeLoadUnaligned(fromByteOffset: offset, as: UInt32.self))
  }

  @inlinable package func uint64(at offset: Int) -> UInt64 {
    UInt64(bigEndian: unsafeLoadUnaligned(fromByteOffset: offset, as: UInt64.self))
  }
}

extension MutableRawSpan {
  /// Stores `value` in network byte order.
  @inlinable
  package mutating func store<Value: FixedWidthInteger & BitwiseCopyable>(_ value: Value, at offset: Int) {
    storeBytes(of: value.bigEndian, toByteOffset: offset, as: Value.self)
  }
}

extension UnsafeMutableRawBufferPointer {
  /// Stores `value` in network byte order.
  @inlinable package func store<Value: FixedWidthInteger & BitwiseCopyable>(_ value: Value, at offset: Int) {
    precondition(offset >= 0 && offset <= count - MemoryLayout<Value>.size)
    storeBytes(of: value.bigEndian, toByteOffset: offset, as: Value.self)
  }
}

extension UnsafeRawBufferPointer {
  /// The bytes in `range`, for a view that outlives the call and so cannot be a span.
  @inlinable package func part(_ range: Range<Int>) -> UnsafeRawBufferPointer {
    precondition(range.lowerBound >= 0 && range.upperBound <= count)
    return UnsafeRawBufferPointer(rebasing: self[range])
  }
}

extension UnsafeMutableRawBufferPointer {
  /// The bytes in `range`, to be changed in place.
  @inlinable package func part(_ range: Range<Int>) -> UnsafeMutableRawBufferPointer {
    precondition(range.lowerBound >= 0 && range.upperBound <= count)
    return UnsafeMutableRawBufferPointer(rebasing: self[range])
  }
}

extension FixedWidthInteger {
  /// The number whose network byte order is `bytes`; if there are more bytes than it has, the last ones count.
  @inlinable package init(networkOrder bytes: some Sequence<UInt8>) {
    self = bytes.reduce(0) { $0 << 8 | Self(truncatingIfNeeded: $1) }
  }

  /// Its bytes in network byte order.
  @inlinable package var networkOrderBytes: [UInt8] { Swift.withUnsafeBytes(of: bigEndian) { Array($0) } }
}
