package import CallMessages

/// The receiver of clients' requests. The control plane is one.
package protocol SignalingSink: Sendable {
  /// Accepts a command; called on the connections' event loops, in order for each session, and must return immediately.
  /// A session's first command is `.connect`, its last `.disconnect`.
  func submit(_ command: NodeCommand)
}
