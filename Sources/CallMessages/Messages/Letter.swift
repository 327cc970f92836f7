/// A message between `People` and `CallControl` where they are in different processes: with the coding's version, and with its number among the messages of
/// one sender to one receiver, which begins at 1.
///
/// A `Node` passes messages as values and needs no letters: within a process nothing is lost, repeated or overtaken.
struct Letter<Message: Sendable>: Sendable {
  let number: UInt64
  let message: Message
}

extension Letter: Codable where Message: Codable {
  private enum CodingKeys: String, CodingKey { case version, number, message }

  /// Refuses another version.
  init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    let version = try container.decode(Int.self, forKey: .version)
    guard version == LetterVersion.current else {
      throw DecodingError.dataCorruptedError(
        forKey: .version, in: container,
        debugDescription:
          "is \(version), and this server reads \(LetterVersion.current): run one release on all servers")
    }
    number = try container.decode(UInt64.self, forKey: .number)
    message = try container.decode(Message.self, forKey: .message)
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(LetterVersion.current, forKey: .version)
    try container.encode(number, forKey: .number)
    try container.encode(message, forKey: .message)
  }
}

/// Rises with each change of a message that the servers before it cannot read.
enum LetterVersion {
  static let current = 1
}

/// The sender's end: numbers the messages to one receiver.
struct OutgoingLink: Sendable {
  private var last: UInt64 = 0

  mutating func letter<Message>(_ message: Message) -> Letter<Message> {
    last += 1
    return Letter(number: last, message: message)
  }
}

/// The receiver's end: takes the messages of one sender in their order, each once, however often and in whichever order they arrive.
struct IncomingLink<Message: Sendable>: Sendable {
  enum Arrival {
    /// The message, and those that waited for it: they can be handled, in this order.
    case next([Message])
    /// It arrived before, and is dropped.
    case repeated
    /// Earlier messages are missing, `missing` being the first. This one waits for them, unless too many wait already: then it is missing, too.
    case gap(missing: UInt64)
  }

  /// The maximum of messages that wait for an earlier one.
  static var capacity: Int { 1_024 }

  private var next: UInt64 = 1
  private var early: [UInt64: Message] = [:]

  /// Messages that wait for an earlier one.
  var waiting: Int { early.count }

  mutating func take(_ letter: Letter<Message>) -> Arrival {
    guard letter.number >= next, early[letter.number] == nil else { return .repeated }
    guard letter.number == next else {
      if early.count < Self.capacity { early[letter.number] = letter.message }
      return .gap(missing: next)
    }
    var messages = [letter.message]
    next += 1
    while let message = early.removeValue(forKey: next) {
      messages.append(message)
      next += 1
    }
    return .next(messages)
  }
}
