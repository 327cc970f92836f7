import CallMessages
import JSON
import LinuxIO
import MediaModel
import PostgreSQL

/// Writes the batches of a start, each as one transaction with a number. The number decides what a connection that was lost leaves open: whether the batch
/// is in, and that it cannot come in later, when it would overwrite what a newer one wrote.
struct PostgresWriter {
  private static let firstPause = Duration.milliseconds(50)
  private static let longestPause = Duration.seconds(1)

  /// The numbers of one start's batches.
  private struct Numbers {
    let token: FencingToken
    /// The last that was confirmed.
    var confirmed: Int64 = 0
    /// The last that was sent. It may be in, or not, unless `isSettled`.
    var sent: Int64 = 0
    var isSettled = false
  }

  /// Why an attempt failed.
  private enum Failure: Error {
    case postgres(PostgresError)
    case fenced
    /// The database confirmed numbers that it does not have any more.
    case wentBack
    /// Another process writes as this start.
    case shared
    case unreadable
  }

  private var session: PostgresSession
  private let place: String
  private let patience: Duration
  private var numbers: Numbers?
  /// The last batch was tried in vain.
  private var isAway = false

  /// - Parameter patience: how long a batch is tried before its failure is reported. After that a batch is tried once until one succeeds, so that those that
  ///   wait do not wait for each other.
  init(_ session: PostgresSession, place: String, patience: Duration) {
    self.session = session
    self.place = place
    self.patience = patience
  }

  /// For what belongs to no start's batches.
  /// - Parameter body: may run twice, if the connection was lost.
  mutating func use<Value>(
    _ body: (PostgresConnection) throws -> Value
  ) throws(StoreError) -> Value {
    do {
      return try session.repeatedly(body)
    } catch {
      throw StoreError(error, place: place)
    }
  }

  /// The start whose batches come next, with none so far.
  mutating func begin(_ token: FencingToken) { numbers = Numbers(token: token, isSettled: true) }

  /// Writes all changes or none. Blocks for `patience`, and then for as long as one more answer takes.
  mutating func write(_ changes: [StoreChange], as token: FencingToken) throws(StoreError) {
    let deadline = MonotonicClock.now().advanced(by: isAway ? .zero : patience)
    var numbers = self.numbers.flatMap { $0.token == token ? $0 : nil } ?? Numbers(token: token)
    defer { self.numbers = numbers }
    /// The number under which these changes may be in.
    var unclear: Int64?
    var pause = Self.firstPause
    while true {
      do throws(Failure) {
        try attempt(changes, &numbers, &unclear)
        isAway = false
        return
      } catch {
        guard case .postgres(let reason) = error, reason.isTemporary else { throw storeError(error, token) }
        guard MonotonicClock.now() < deadline else {
          isAway = true
          throw storeError(error, token)
        }
        MonotonicClock.sleep(nanoseconds: UInt64(pause.nanoseconds))
        pause = min(pause * 2, Self.longestPause)
      }
    }
  }

  private mutating func attempt(
    _ changes: [StoreChange], _ numbers: inout Numbers, _ unclear: inout Int64?
  ) throws(Failure) {
    if !numbers.isSettled {
      let last = try settle(&numbers)
      if let number = unclear, number <= last { return }
    }
    let number = numbers.sent + 1
    numbers.sent = number
    numbers.isSettled = false
    do {
      let token = numbers.token
      try session.use { connection in try Self.send(changes, as: token, number, connection) }
      numbers.confirmed = number
      numbers.isSettled = true
    } catch let error as PostgresError {
      switch error {
      case .refused("CL001"): throw .fenced
      case .refused("CL002"): throw .shared
      case .refused("CL003"):
        // Told once.
        numbers.confirmed = 0
        throw .wentBack
      case .lost, .unconfirmed: unclear = number
      case .refused, .notConnected, .noLibrary, .badURL, .parameterNotAllowed, .unsuitable, .malformed:
        // Undone, or not begun.
        numbers.sent = number - 1
        numbers.isSettled = true
      }
      throw .postgres(error)
    } catch {
      numbers.sent = number - 1
      numbers.isSettled = true
      throw .unreadable
    }
  }

  /// Asks which of the sent batches are in. The others cannot come in any more. The question is itself a transaction that a standby has to confirm: its answer is
  /// as safe as the batches before it.
  /// - Returns: the number of the last batch that is in.
  private mutating func settle(_ numbers: inout Numbers) throws(Failure) -> Int64 {
    let last: Int64?
    do {
      let (token, sent) = (numbers.token, numbers.sent)
      last = try session.use { connection in
        let question = PostgresStatement(
          "SELECT resume($1, $2)", .integer(Int64(token.number)), .integer(sent))
        return try connection.run([question])[0].first?.optionalInteger(0)
      }
    } catch {
      throw .postgres(error as? PostgresError ?? .malformed)
    }
    guard let last else { throw .fenced }
    let confirmed = numbers.confirmed
    numbers.sent = max(numbers.sent, last)
    numbers.confirmed = numbers.sent
    numbers.isSettled = true
    guard last >= confirmed else { throw .wentBack }
    return last
  }

  private static func send(
    _ changes: [StoreChange], as token: FencingToken, _ number: Int64, _ connection: PostgresConnection
  ) throws {
    var statements = [
      PostgresStatement("SELECT fence($1, $2)", .integer(Int64(token.number)), .integer(number))
    ]
    let isWhole = !changes.contains { if case .forgotten = $0 { true } else { false } }
    if !isWhole { statements.insert(PostgresStatement("BEGIN"), at: 0) }
    for change in changes {
      if case .forgotten(let user) = change {
        let ends = try connection.run(statements + [.ends(of: user)]).last
        statements = try ends.map { try PostgresStatement.forget(user, in: $0) } ?? []
      }
      statements += try PostgresStatement.statements(for: change, as: token)
    }
    if !isWhole { statements.append(PostgresStatement("COMMIT")) }
    try connection.run(statements)
  }

  private func storeError(_ failure: Failure, _ token: FencingToken) -> StoreError {
    switch failure {
    case .postgres(let error): StoreError(error, place: place)
    case .fenced: .fenced(place, token)
    case .wentBack: .wentBack(place)
    case .shared: .shared(place)
    case .unreadable: .unreadable(place)
    }
  }
}
