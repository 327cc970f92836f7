package import MediaModel

/// Something that one node owns at a time.
package enum EntityID: Hashable, Comparable, Sendable {
  case call(CallID)
  case user(UserID)
}

/// The number of a claim: a later claim of an entity has a larger one, whoever claims. A message names the term in which its sender owned what it speaks for,
/// so one that a former owner sent is recognised however late it arrives.
package struct Term: Hashable, Comparable, Sendable {
  package let rawValue: UInt64

  package init(_ rawValue: UInt64) { self.rawValue = rawValue }

  package static func < (one: Term, other: Term) -> Bool { one.rawValue < other.rawValue }
}

/// A row of the table `owner`.
package struct Owner: Hashable, Sendable {
  package var node: Incarnation
  package var term: Term

  package init(node: Incarnation, term: Term) {
    self.node = node
    self.term = term
  }
}
