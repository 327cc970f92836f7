import Contract
import MediaModel
import Seeded
import Simulation

@testable import Calls

/// The messages under way between `People` and `CallControl`, as in a network: each takes its own time, and only those of one sender to one receiver keep
/// their order. Each call and each user is a sender; a call's messages are one sequence for all users.
struct DelayedMail {
  enum Letter {
    /// From a call; nil for the answer to a request about none.
    case toPeople(ToPeople, from: CallID?)
    case toCalls(ToCalls)
  }

  private struct Lane: Hashable {
    var call: CallID?
    /// nil: from the call to all users.
    var user: UserID?

    init(_ letter: Letter) {
      switch letter {
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
    var letter: Letter
  }

  /// The longest time, in milliseconds.
  var slowest: Int
  private var random: SeededGenerator
  /// In the order of their arrival.
  private var entries: [Entry] = []

  init(seed: UInt64) {
    random = SeededGenerator(seed: seed)
    slowest = [1, 20, 300, 2_000][random.below(4)]
  }

  var isEmpty: Bool { entries.isEmpty }

  /// When the next one arrives.
  var due: Timestamp? { entries.first?.due }

  mutating func post(_ letter: Letter, now: Timestamp) {
    let lane = Lane(letter)
    let last = entries.last { $0.lane == lane }?.due ?? now
    let due = max(last, random.chance(30) ? now : now + .milliseconds(random.below(slowest + 1)))
    let place = entries.firstIndex { due < $0.due } ?? entries.endIndex
    entries.insert(Entry(due: due, lane: lane, letter: letter), at: place)
  }

  mutating func take() -> Letter? { entries.isEmpty ? nil : entries.removeFirst().letter }

  /// Exchanges the last two of the lane of this message.
  mutating func swapLast(of letter: Letter) {
    let lane = Lane(letter)
    let places = entries.indices.filter { entries[$0].lane == lane }.suffix(2)
    guard let first = places.first, let second = places.last else { return }
    let letter = entries[first].letter
    entries[first].letter = entries[second].letter
    entries[second].letter = letter
  }
}

extension ToPeople {
  /// The call that sends it; nil: the one that the request is about, which a request may go beyond (protocol section 4, "Calls that cross").
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
  /// The receiver; nil: whatever calls there are.
  var call: CallID? {
    switch self {
    case .request(let request): request.request.callID
    case .offer(_, _, _, let call, _, _), .greet(_, _, let call), .readTopic(_, _, let call),
      .signaling(_, _, let call), .hold(_, _, let call), .acknowledged(_, _, _, let call),
      .ringAcknowledged(_, let call),
      .pushed(_, let call), .devicesChanged(_, let call), .remove(_, let call):
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
    case .readTopic(_, let user, _), .pushed(let user, _), .devicesChanged(let user, _), .forget(let user): user
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
    case .history, .readTopic, .pushed, .devicesChanged, .forget, .remove(.user, _): nil
    }
  }

  /// The command that the message stands for, with which one server would have done the same; nil for those that change no member.
  var command: NodeCommand? {
    let none = SessionID(rawValue: 0)
    switch self {
    case .request(let request): return .request(request.session, id: request.id, .calls(request.request))
    case .offer(let session, let id, _, let call, let offer, let tracks):
      return .offer(session, id: id, call, offer, tracks)
    case .signaling(let device, true, _): return .connect(none, Identity(device: device, name: nil))
    case .signaling(_, false, _): return .disconnect(none)
    case .hold(_, _, let call): return .request(none, id: "", .call(call, .hold(Hold(held: true))))
    case .acknowledged(_, _, let accepted, _): return .acknowledge(none, seqs: [], accepted: accepted)
    case .remove(.device(let device), _):
      return .request(none, id: "", .people(.removeDevice(RemoveDevice(device: device.device))))
    case .remove(.user(let user), _), .forget(let user): return .forget(user)
    case .history, .greet, .readTopic, .ringAcknowledged, .pushed, .devicesChanged: return nil
    }
  }
}
