import CPostgreSQL
import Glibc
import LinuxIO
import MediaModel

/// One pipeline: what was sent up to one Sync, and the answers so far.
private struct Pipeline {
  enum Awaited {
    /// That a statement with this text is prepared.
    case preparation(String)
    case answer
    case end
  }

  var awaited: [Awaited] = []
  /// How many of them have been answered.
  var answered = 0
  /// A result of the next one has come.
  var hasBegun = false
  var rows: [PostgresRows] = []
  /// The first error; the server skips what comes after it.
  var refusal: SQLState?

  var next: Awaited? { answered < awaited.count ? awaited[answered] : nil }

  mutating func finishNext() {
    answered += 1
    hasBegun = false
  }
}

extension PostgresConnection {
  /// Sends the statements as one pipeline up to one Sync, and waits for all answers: one transaction, unless one is open by `BEGIN`.
  /// - Returns: an answer for each statement.
  /// - Throws: `PostgresError.refused` if one is refused; nothing of the transaction is done then. `.lost` if that is unknown, and `.unconfirmed` if it is done,
  ///   but perhaps not on a standby.
  @discardableResult package func run(_ statements: [PostgresStatement]) throws(PostgresError) -> [PostgresRows] {
    guard !isLost else { throw .lost(after: nil) }
    do throws(PostgresError) {
      return try answers(to: statements)
    } catch {
      if error.endsConnection { isLost = true }
      throw error
    }
  }

  private func answers(to statements: [PostgresStatement]) throws(PostgresError) -> [PostgresRows] {
    var pipeline = Pipeline()
    _ = takeWarnings()
    for (index, statement) in statements.enumerated() {
      try send(statement, &pipeline)
      // Early answers do not pile up.
      if index % 64 == 63 { _ = try flush(&pipeline) }
    }
    guard library.pipeline_sync(handle) == 1 else { throw .lost(after: nil) }
    pipeline.awaited.append(.end)
    while true {
      let hasMore = try flush(&pipeline)
      if pipeline.next == nil { break }
      try wait(for: hasMore ? POLLIN | POLLOUT : POLLIN)
    }
    if let state = pipeline.refusal { throw .refused(state) }
    guard takeWarnings() == 0 else { throw .unconfirmed }
    return pipeline.rows
  }

  // MARK: sending

  private func send(_ statement: PostgresStatement, _ pipeline: inout Pipeline) throws(PostgresError) {
    let text = statement.text
    let name: String
    if let known = prepared[text] {
      name = known
    } else {
      numberOfNames += 1
      name = "s\(numberOfNames)"
      let types = statement.values.map(\.type)
      guard library.send_prepare(handle, name, text, Int32(types.count), types) == 1 else { throw .lost(after: nil) }
      // Taken back if the server refuses it.
      prepared[text] = name
      pipeline.awaited.append(.preparation(text))
    }
    guard sendValues(of: statement, to: name) else { throw .lost(after: nil) }
    pipeline.awaited.append(.answer)
  }

  private func sendValues(of statement: PostgresStatement, to name: String) -> Bool {
    var bytes: [UInt8] = []
    var places: [Range<Int>?] = []
    for value in statement.values {
      let start = bytes.count
      places.append(value.write(to: &bytes) ? start..<bytes.count : nil)
    }
    // So that the buffer has an address.
    bytes.append(0)
    return bytes.withUnsafeBufferPointer { buffer in
      buffer.withMemoryRebound(to: CChar.self) { buffer in
        let values = places.map { place in place.flatMap { buffer.baseAddress?.advanced(by: $0.lowerBound) } }
        let lengths = places.map { Int32($0?.count ?? 0) }
        let formats = places.map { _ in Int32(1) }
        return library.send_prepared(handle, name, Int32(values.count), values, lengths, formats, 1) == 1
      }
    }
  }

  // MARK: receiving

  /// Sends and takes as much as goes without waiting. Returns whether there is more to send.
  private func flush(_ pipeline: inout Pipeline) throws(PostgresError) -> Bool {
    let rest = library.flush(handle)
    guard rest >= 0, library.consume_input(handle) == 1 else { throw .lost(after: nil) }
    while let next = pipeline.next, library.is_busy(handle) == 0 {
      if let result = library.get_result(handle) {
        try take(PostgresRows(result, library), of: library.result_status(result), for: next, &pipeline)
      } else if case .end = next {
        // After an error of the commit itself.
        guard pipeline.hasBegun else { throw .lost(after: nil) }
        pipeline.hasBegun = false
      } else {
        // A command's results end with none. Where none came at all, the connection has ended.
        guard pipeline.hasBegun else { throw .lost(after: nil) }
        pipeline.finishNext()
      }
    }
    return rest > 0
  }

  private func take(
    _ rows: PostgresRows, of status: ExecStatusType, for next: Pipeline.Awaited, _ pipeline: inout Pipeline
  ) throws(PostgresError) {
    pipeline.hasBegun = true
    if case .preparation(let text) = next, status != PGRES_COMMAND_OK { prepared[text] = nil }
    switch (next, status) {
    case (.end, PGRES_PIPELINE_SYNC): pipeline.finishNext()
    case (.preparation, PGRES_COMMAND_OK): break
    case (.answer, PGRES_COMMAND_OK), (.answer, PGRES_TUPLES_OK): pipeline.rows.append(rows)
    case (.preparation, PGRES_PIPELINE_ABORTED), (.answer, PGRES_PIPELINE_ABORTED): break
    case (_, PGRES_FATAL_ERROR):
      // libpq itself makes an error without a code when the connection ends.
      guard let state = rows.state, !state.endsSession else { throw .lost(after: nil) }
      if pipeline.refusal == nil { pipeline.refusal = state }
    default: throw .lost(after: nil)
    }
  }

  private func wait(for events: Int32) throws(PostgresError) {
    var waiting = pollfd(fd: library.socket(handle), events: Int16(events), revents: 0)
    let deadline = MonotonicClock.now().advanced(by: silence)
    while true {
      let left = MonotonicClock.now().duration(to: deadline).nanoseconds / 1_000_000
      guard left > 0 else { throw .lost(after: silence) }
      let count = poll(&waiting, 1, Int32(min(left, 60_000)))
      if count > 0 { return }
      guard count == 0 || errno == EINTR else { throw .lost(after: nil) }
    }
  }
}

extension SQLState {
  /// An operator's command, a shutdown, or the crash of another session; not the end of a statement that took too long.
  fileprivate var endsSession: Bool { category == "57" && self != "57014" }
}
