import CallMessages
import Contract
import MediaModel
import NIOCore

/// Commands on their way into the control plane: in order of arrival within a user, round-robin among users, so that no user waits for all requests of
/// another one.
///
/// ## Invariants
/// - Commands of one connection come out in the order in which they went in.
/// - Requests are bounded, per user and in total. Other commands are bounded by what a connection may have: subscriptions, and deliveries to acknowledge.
struct CommandQueue: Sendable {
  struct Limits: Sendable {
    /// Pending requests of one user.
    var ofUser = 1_000
    var ofService = 4_096
    var ofAll = 20_000
  }

  enum Overflow: String, CaseIterable, Sendable { case user, all }

  private enum Owner: Hashable {
    case user(UserID)
    case service(UserID)
  }

  private struct UserQueue {
    var commands = CircularBuffer<NodeCommand>()
    var requests = 0
    /// It returns nothing until `resume`.
    var isHeld = false
    /// Its owner is in `turns`.
    var hasTurn = false
  }

  private let limits: Limits
  /// The server's own commands: the media plane's events, answers, timers. They go first.
  private var own = CircularBuffer<NodeCommand>()
  /// The queues of owners with pending commands.
  private var queues: [Owner: UserQueue] = [:]
  /// Owners in round-robin order; those that are held are skipped.
  private var turns = CircularBuffer<Owner>()
  private var owners: [SessionID: Owner] = [:]
  /// Pending requests.
  private(set) var waiting = 0
  private(set) var refused: [Overflow: UInt64] = [:]

  init(limits: Limits = Limits()) { self.limits = limits }

  /// Appends a command, or refuses a request.
  mutating func append(_ command: NodeCommand) -> Overflow? {
    if case .connect(let session, let identity) = command {
      owners[session] = identity.isService ? .service(identity.device.user) : .user(identity.device.user)
    }
    guard let session = command.session, let owner = owners[session] else {
      own.append(command)
      return nil
    }
    if command.isRequest {
      if let overflow = overflow(of: owner) {
        refused[overflow, default: 0] += 1
        return overflow
      }
      waiting += 1
      queues[owner, default: UserQueue()].requests += 1
    }
    queues[owner, default: UserQueue()].commands.append(command)
    takeTurn(owner)
    return nil
  }

  private mutating func takeTurn(_ owner: Owner) {
    guard let queue = queues[owner], !queue.isHeld, !queue.hasTurn else { return }
    queues[owner]?.hasTurn = true
    turns.append(owner)
  }

  private func overflow(of owner: Owner) -> Overflow? {
    if waiting >= limits.ofAll { return .all }
    let most = if case .service = owner { limits.ofService } else { limits.ofUser }
    return queues[owner, default: UserQueue()].requests >= most ? .user : nil
  }

  /// Takes out the next command; nil if there is none, or if all wait for `resume`.
  /// - Parameter takesAll: false for only the server's own commands.
  mutating func next(takesAll: Bool = true) -> NodeCommand? {
    if let command = own.popFirst() { return command }
    guard takesAll else { return nil }
    while let owner = turns.popFirst() {
      queues[owner]?.hasTurn = false
      guard queues[owner]?.isHeld == false, let command = queues[owner]?.commands.popFirst() else { continue }
      if command.isRequest {
        waiting -= 1
        queues[owner]?.requests -= 1
      }
      if case .disconnect(let session) = command { owners[session] = nil }
      if queues[owner]?.commands.isEmpty == true { queues[owner] = nil } else { takeTurn(owner) }
      return command
    }
    return nil
  }

  /// Holds the other pending commands of the session's user while the session's last command is being prepared elsewhere.
  mutating func hold(_ session: SessionID) {
    guard let owner = owners[session] else { return }
    queues[owner, default: UserQueue()].isHeld = true
  }

  /// Ends the session's hold: `command`, now prepared, comes next for its user.
  mutating func resume(_ session: SessionID, with command: NodeCommand) {
    guard let owner = owners[session] else { return own.append(command) }
    queues[owner, default: UserQueue()].isHeld = false
    queues[owner, default: UserQueue()].commands.prepend(command)
    takeTurn(owner)
  }
}

extension NodeCommand {
  /// The session that sent it; nil for the server's own.
  fileprivate var session: SessionID? {
    switch self {
    case .connect(let session, _), .disconnect(let session), .subscribe(let session, _, _),
      .unsubscribe(let session, _),
      .acknowledge(let session, _, _), .request(let session, _, _), .offer(let session, _, _, _, _):
      session
    case .media, .answer, .recording, .recordingFailed, .pushGone, .waitsAtLink, .forget, .end, .disconnectUser,
      .endLinks, .failures, .drain,
      .timeout:
      nil
    }
  }

  fileprivate var isRequest: Bool { if case .request = self { true } else { false } }
}
