/// Which id an extension of one peer has at another one; 0 for an extension that is not passed on.
package struct HeaderExtensionMap: Sendable {
  private var ids = InlineArray<256, UInt8>(repeating: 0)

  /// Passes nothing on.
  package init() {}

  package subscript(id: UInt8) -> UInt8 {
    get { ids[Int(id)] }
    set { ids[Int(id)] = newValue }
  }
}
