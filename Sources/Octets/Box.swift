/// One value in memory of its own, which does not move: the path of the packets keeps pointers to it, and access through one is not guarded at run time, as a class's
/// properties are.
package struct Box<Value>: ~Copyable {
  /// Valid as long as the box.
  package let pointer: UnsafeMutablePointer<Value>

  @inlinable package init(_ value: consuming Value) {
    pointer = .allocate(capacity: 1)
    pointer.initialize(to: value)
  }

  @inlinable deinit {
    pointer.deinitialize(count: 1)
    pointer.deallocate()
  }
}
