import CallMessages
import Synchronization

/// Commands on their way from any thread to the control plane's loop.
///
/// ## Invariants
/// - While commands can be taken out, `work` is running or scheduled; it is never scheduled twice.
final class CommandInbox: Sendable {
  private struct State: Sendable {
    var commands = CommandQueue()
    /// `work` is called, or about to be.
    var isWorking = false
    var work: (@Sendable () -> Void)?
  }

  private let state = Mutex(State())

  /// - Parameter work: makes the loop take out the pending commands; must not block.
  func start(work: @escaping @Sendable () -> Void) {
    let begins = state.withLock { state in
      state.work = work
      return state.isWorking
    }
    if begins { work() }
  }

  /// Appends a command. Returns false for a request above the limit.
  func append(_ command: NodeCommand) -> Bool { change { $0.append(command) } == nil }

  /// The session's user has to wait for a command that is being prepared.
  func hold(_ session: SessionID) { state.withLock { $0.commands.hold(session) } }

  /// Ends the hold with the prepared command.
  func resume(_ session: SessionID, with command: NodeCommand) { change { $0.resume(session, with: command) } }

  /// Calls `work`, unless that is about to happen.
  func wake() { change { _ in () } }

  /// Takes out the next command, on the loop.
  /// - Parameters:
  ///   - takesAll: false for only the server's own commands.
  ///   - goesOn: `work` has more to do even without a command.
  func next(takesAll: Bool, goesOn: Bool) -> NodeCommand? {
    state.withLock { state in
      let command = state.commands.next(takesAll: takesAll)
      state.isWorking = command != nil || goesOn
      return command
    }
  }

  /// Pending requests, and requests refused since the start.
  var backlog: (waiting: Int, refused: [CommandQueue.Overflow: UInt64]) {
    state.withLock { ($0.commands.waiting, $0.commands.refused) }
  }

  @discardableResult private func change<Result: Sendable>(_ body: (inout CommandQueue) -> Result) -> Result {
    let (result, work) = state.withLock { state in
      let result = body(&state.commands)
      defer { state.isWorking = true }
      return (result, state.isWorking ? nil : state.work)
    }
    work?()
    return result
  }
}
