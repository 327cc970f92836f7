/// Why a store cannot be used, in words for the operator.
package struct StoreError: Error, Equatable, CustomStringConvertible {
  package enum Kind: Sendable {
    case cannotOpen, broken, newer, full, readOnly, busy, failed
    /// No connection to it, or no answer: it may be there again in a moment.
    case unreachable
    /// A later start of a server has the store now (`FencingToken`).
    case fenced
  }

  package var kind: Kind
  package var description: String

  package init(_ kind: Kind, _ description: String) {
    self.kind = kind
    self.description = description
  }
}
