import Glibc

/// A system call that failed where that is not the peer's doing: at start, almost always.
package struct SystemError: Error, Equatable, CustomStringConvertible {
  /// The attempted operation in words: "make an event descriptor".
  package var operation: String
  /// errno.
  package var code: Int32

  package init(_ operation: String, code: Int32) {
    self.operation = operation
    self.code = code
  }

  package var description: String { "could not \(operation): \(String(cString: strerror(code)))" }
}

/// Passes a C result on, or throws when it is a negative errno.
func checked(_ result: Int32, _ operation: @autoclosure () -> String) throws(SystemError) -> Int32 {
  guard result >= 0 else { throw SystemError(operation(), code: -result) }
  return result
}
