/// A fault of an offer. The text is for the client's developer and says what to do. It never holds text of the offer, which is personal data.
package struct SDPError: Error, Hashable, Sendable {
  /// From 1.
  package var line: Int
  package var reason: String

  package init(line: Int, _ reason: String) {
    self.line = line
    self.reason = reason
  }
}

extension SDPError: CustomStringConvertible {
  package var description: String { "line \(line): \(reason)" }
}
