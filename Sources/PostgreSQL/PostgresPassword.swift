/// A role's password. It is never printed.
package struct PostgresPassword: Sendable {
  let text: String

  package init(_ text: String) { self.text = text }
}

extension PostgresPassword: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  package var description: String { "password" }
  package var debugDescription: String { "password" }
  package var customMirror: Mirror { Mirror(self, children: []) }
}
