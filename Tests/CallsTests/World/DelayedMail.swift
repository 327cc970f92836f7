@testable import PeopleMachine
import Contract
import JSON
import MediaModel
import Seeded
import Simulation

@testable import CallMessages

/// The messages in flight between `People` and `CallControl`, as in a network: each has its own delay, may overtake
/// others, and may arrive twice. Their numbers restore the order of one sender to one receiver. Each call and each user
/// is a sender; a call's messages are one sequence for all users.
struct DelayedMail {
  enum Message {
    /// From a call; nil for the answer to a request about none.
    case toPeople(ToPeople, from: CallID?)
    case toCalls(ToCalls)
  }

  private struct Lane: Hashable {
    var call: CallID?
    /// nil: from the call to all users.
    var user: UserID?

    init(_ message: Message) {
      switch message {
      case .toPeople(_, let sender): call = sender
      case .toCalls(let message):
        call = message.call
        user = message.user
      }
    }
  }

  private struct Entry {
    var due: Timestamp
    var lane: Lane
    var letter: Letter<Message>
    /// A copy of a letter that is or was in flight.
    var isRepeat: Bool
  }

  /// The longest delay, in milliseconds.
  var slowest: Int
  /// Whether letters are encoded as JSON and decoded again.
  var isCoded = false
  /// A fault of the receivers: they handle a repeated letter again.
  var takesRepeats = false
  /// Letters that were dropped because they had arrived before.
  private(set) var repeats = 0
  /// Letters that arrived before an earlier one.
  private(set) var gaps = 0
  private var random: SeededGenerator
  /// The generator for repeats, separate so that they do not affect the delays of other letters.
  private var whims: SeededGenerator
  private var senders: [Lane: OutgoingLink] = [:]
  private var receivers: [Lane: IncomingLink<Message>] = [:]
  /// In the order of their arrival.
  private var entries: [Entry] = []
  /// Entries that are not repeats.
  private var firsts = 0
  /// Letters that have arrived and wait for an earlier one.
  private var held = 0

  init(seed: UInt64) {
    random = SeededGenerator(seed: seed)
    whims = SeededGenerator(seed: ~seed)
    slowest = [1, 20, 300, 2_000][random.below(4)]
  }

  /// Nothing but repeats is in flight.
  var isEmpty: Bool { firsts == 0 && held == 0 }

  /// Letters have arrived that wait for an earlier one.
  var isWaiting: Bool { held > 0 }

  /// When the next one arrives.
  var due: Timestamp? { entries.first?.due }

  mutating func post(_ message: Message, now: Timestamp) throws {
    let lane = Lane(message)
    let letter = try coded(senders[lane, default: OutgoingLink()].letter(message))
    let due = random.chance(30) ? now : now + .milliseconds(random.below(slowest + 1))
    insert(Entry(due: due, lane: lane, letter: letter, isRepeat: false))
    guard whims.chance(5) else { return }
    let again = now + .milliseconds(whims.below(2 * slowest + 1))
    insert(Entry(due: again, lane: lane, letter: letter, isRepeat: true))
  }

  private mutating func insert(_ entry: Entry) {
    if !entry.isRepeat { firsts += 1 }
    let place = entries.firstIndex { entry.due < $0.due } ?? entries.endIndex
    entries.insert(entry, at: place)
  }

  private func coded(_ letter: Letter<Message>) throws -> Letter<Message> {
    guard isCoded else { return letter }
    switch letter.message {
    case .toPeople(let message, let sender):
      let read = try passed(Letter(number: letter.number, message: message))
      return Letter(number: read.number, message: .toPeople(read.message, from: sender))
    case .toCalls(let message):
      let read = try passed(Letter(number: letter.number, message: message))
      return Letter(number: read.number, message: .toCalls(read.message))
    }
  }

  private func passed<Content: Codable>(_ letter: Letter<Content>) throws -> Letter<Content> {
    try JSONCoding.decode(Letter<Content>.self, from: try JSONCoding.encode(letter))
  }

  /// The network loses the message.
  mutating func lose(_ message: Message) { _ = senders[Lane(message), default: OutgoingLink()].letter(message) }

  /// Lets the next letter arrive; returns the messages that can be handled now.
  mutating func take() -> [Message] {
    guard !entries.isEmpty else { return [] }
    let entry = entries.removeFirst()
    if !entry.isRepeat { firsts -= 1 }
    switch receivers[entry.lane, default: IncomingLink()].take(entry.letter) {
    case .next(let messages):
      held -= messages.count - 1
      return messages
    case .repeated:
      repeats += 1
      return takesRepeats ? [entry.letter.message] : []
    case .gap:
      held += 1
      gaps += 1
      return []
    }
  }

  /// The server dies: nothing is in flight any longer, and all numbers restart.
  mutating func restart() {
    entries = []
    senders = [:]
    receivers = [:]
    firsts = 0
    held = 0
  }

  /// Swaps the last two letters in the lane of this message, as if they had been sent in the other order.
  mutating func swapLast(of message: Message) {
    let lane = Lane(message)
    let places = entries.indices.filter { entries[$0].lane == lane && !entries[$0].isRepeat }
      .sorted { entries[$0].letter.number < entries[$1].letter.number }.suffix(2)
    guard let first = places.first, let second = places.last else { return }
    let (one, other) = (entries[first].letter, entries[second].letter)
    entries[first].letter = Letter(number: one.number, message: other.message)
    entries[second].letter = Letter(number: other.number, message: one.message)
  }
}

extension ToPeople {
  /// The call that sends it; nil: the call of the request, which a request may also leave for another (protocol section
  /// 4, "Calls that cross").
  var call: CallID? {
    switch self {
    case .speaks(_, let call, _), .greeting(_, let call, _, _), .topic(_, let call, _), .removed(_, let call),
      .news(_, let call, _), .report(_, _, _, let call, _):
      call
    case .reply, .checked, .history: nil
    }
  }
}

extension ToCalls {
  /// The receiver; nil: all calls.
  var call: CallID? {
    switch self {
    case .request(let request): request.request.callID
    case .offer(_, _, _, let call, _, _), .greet(_, _, let call), .readTopic(_, _, let call),
      .signaling(_, _, let call), .hold(_, _, let call), .acknowledged(_, _, _, let call),
      .ringAcknowledged(_, let call),
      .pushed(_, let call), .devicesChanged(_, let call), .remove(_, let call),
      .voidLinks(_, let call):
      call
    case .history, .forget: nil
    }
  }

  /// The sender.
  var user: UserID {
    switch self {
    case .request(let request): request.caller.device.user
    case .offer(_, _, let identity, _, _, _): identity.device.user
    case .history(_, _, let device, _, _), .greet(_, let device, _), .signaling(let device, _, _),
      .hold(let device, _, _), .acknowledged(let device, _, _, _), .ringAcknowledged(let device, _):
      device.user
    case .readTopic(_, let user, _), .pushed(let user, _), .devicesChanged(let user, _), .forget(let user),
      .voidLinks(let user, _):
      user
    case .remove(let leaver, _): leaver.user
    }
  }

  /// The device that acts; nil: a service, or a user without a device.
  var device: Device? {
    switch self {
    case .request(let request): request.caller.identity.isService ? nil : request.caller.device
    case .offer(_, _, let identity, _, _, _): identity.device
    case .greet(_, let device, _), .signaling(let device, _, _), .hold(let device, _, _),
      .acknowledged(let device, _, _, _), .ringAcknowledged(let device, _), .remove(.device(let device), _):
      device
    case .history, .readTopic, .pushed, .devicesChanged, .voidLinks, .forget, .remove(.user, _): nil
    }
  }

  /// The command with which a whole server would have done the same; nil for messages that change no member.
  var command: NodeCommand? {
    let none = SessionID(rawValue: 0)
    switch self {
    case .request(let request): return .request(request.session, id: request.id, .calls(request.request))
    case .offer(let session, let id, _, let call, let offer, let tracks):
      return .offer(session, id: id, call, offer.result, tracks)
    case .signaling(let device, true, _): return .connect(none, Identity(device: device, name: nil))
    case .signaling(_, false, _): return .disconnect(none)
    case .hold(_, _, let call): return .request(none, id: "", .call(call, .hold(Hold(held: true))))
    case .acknowledged(_, _, let accepted, _): return .acknowledge(none, seqs: [], accepted: accepted)
    case .remove(.device(let device), _):
      return .request(none, id: "", .people(.removeDevice(RemoveDevice(device: device.device))))
    case .remove(.user(let user), _), .forget(let user): return .forget(user)
    case .history, .greet, .readTopic, .ringAcknowledged, .pushed, .devicesChanged, .voidLinks: return nil
    }
  }
}
