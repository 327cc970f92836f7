// Network byte order on memory of any alignment. The caller has checked the bounds: these are checked in debug builds only.

extension UnsafeRawBufferPointer {
  @inlinable package func uint16(at offset: Int) -> UInt16 {
    UInt16(bigEndian: loadUnaligned(fromByteOffset: offset, as: UInt16.self))
  }

  @inlinable package func uint24(at offset: Int) -> UInt32 {
    UInt32(uint16(at: offset)) << 8 | UInt32(self[offset + 2])
  }

  @inlinable package func uint32(at offset: Int) -> UInt32 {
    UInt32(bigEndian: loadUnaligned(fromByteOffset: offset, as: UInt32.self))
  }

  @inlinable package func uint64(at offset: Int) -> UInt64 {
    UInt64(bigEndian: loadUnaligned(fromByteOffset: offset, as: UInt64.self))
  }

  /// The part in `range`, its offsets counted from 0 again.
  @inlinable package func part(_ range: Range<Int>) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(rebasing: self[range])
  }
}

extension UnsafeMutableRawBufferPointer {
  /// Stores `value` big-endian; with `UInt16`, `UInt32` and `UInt64`.
  @inlinable package func store<Value: FixedWidthInteger & BitwiseCopyable>(_ value: Value, at offset: Int) {
    storeBytes(of: value.bigEndian, toByteOffset: offset, as: Value.self)
  }
}
