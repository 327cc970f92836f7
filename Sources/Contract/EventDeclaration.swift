/// The properties of an event that do not depend on its body. The rows at the end of this file are the only place that states them.
package struct EventDeclaration: Sendable {
  /// The receivers of the event.
  package struct Recipients: OptionSet, Sendable {
    package let rawValue: Int
    package init(rawValue: Int) { self.rawValue = rawValue }

    /// Devices of users, whether or not they are in the call.
    package static let users = Recipients(rawValue: 1 << 0)
    /// Devices as participants: void for a device that is not a participant any longer.
    package static let participants = Recipients(rawValue: 1 << 1)
    /// Subscribers of the call's topic (protocol section 6).
    package static let topic = Recipients(rawValue: 1 << 2)
    /// The app's back end: topics of services and webhooks (protocol section 11).
    package static let services = Recipients(rawValue: 1 << 3)
  }

  /// Whether the event is kept for a device that is away, or has not acknowledged it (protocol section 3).
  package enum Keeping: Sendable {
    case dropped, kept
    /// The newest one of a call replaces those that wait.
    case newest
  }

  package struct Traits: OptionSet, Sendable {
    package let rawValue: Int
    package init(rawValue: Int) { self.rawValue = rawValue }

    /// It changes `CallState`, so that it has a revision.
    package static let changesState = Traits(rawValue: 1 << 0)
    /// Receivers only display it, or act on it when another event tells them to: in a large call it is flushed with others (protocol section 3).
    package static let mayWait = Traits(rawValue: 1 << 1)
    /// It may only be sent after the changes of members that came before it.
    package static let followsMembers = Traits(rawValue: 1 << 2)
    /// Topics and services get it in a form of their own, not as the devices do.
    package static let hasTopicForm = Traits(rawValue: 1 << 3)
  }

  package let recipients: Recipients
  package let keeping: Keeping
  package let traits: Traits
  /// Reads the body from an event's JSON.
  package let read: @Sendable (any Decoder) throws -> EventBody

  fileprivate init(
    to recipients: Recipients, _ keeping: Keeping, _ traits: Traits = [],
    read: @escaping @Sendable (any Decoder) throws -> EventBody
  ) {
    self.recipients = recipients
    self.keeping = keeping
    self.traits = traits
    self.read = read
  }
}

extension EventName {
  package var declaration: EventDeclaration {
    switch self {
    case .callRing: .init(to: [.users, .topic, .services], .kept, [.hasTopicForm]) { .ring(try .init(from: $0)) }
    case .callAnsweredElsewhere:
      .init(to: [.users, .topic, .services], .kept) { .answeredElsewhere(try .init(from: $0)) }
    case .callDeclinedElsewhere:
      .init(to: [.users, .topic, .services], .kept) { .declinedElsewhere(try .init(from: $0)) }
    case .callCancelled: .init(to: [.users, .topic, .services], .kept) { .cancelled(try .init(from: $0)) }
    case .callMissed: .init(to: [.users, .topic, .services], .kept) { .missed(try .init(from: $0)) }
    case .callMember:
      .init(to: [.users, .topic, .services], .kept, [.changesState, .mayWait, .followsMembers]) {
        .member(try .init(from: $0))
      }
    case .callMembers:
      .init(to: [.users, .topic, .services], .kept, [.changesState, .mayWait]) { .members(try .init(from: $0)) }
    case .callState: .init(to: [.participants, .services], .dropped, [.hasTopicForm]) { .state(try .init(from: $0)) }
    case .guestKnock: .init(to: [.participants], .kept) { .knock(try .init(from: $0)) }
    case .guestKnockOver: .init(to: [.users], .kept) { .knockOver(try .init(from: $0)) }
    case .callEnded: .init(to: [.users, .topic, .services], .kept, [.followsMembers]) { .ended(try .init(from: $0)) }
    case .trackAdded:
      .init(to: [.participants, .topic], .kept, [.changesState, .mayWait, .followsMembers]) {
        .trackAdded(try .init(from: $0))
      }
    case .trackUpdated:
      .init(to: [.participants, .topic], .kept, [.changesState, .mayWait, .followsMembers]) {
        .trackUpdated(try .init(from: $0))
      }
    case .trackRemoved:
      .init(to: [.participants, .topic], .kept, [.changesState, .mayWait, .followsMembers]) {
        .trackRemoved(try .init(from: $0))
      }
    case .speakers: .init(to: [.participants, .topic], .dropped, [.mayWait]) { .speakers(try .init(from: $0)) }
    case .keysRotate: .init(to: [.participants], .kept, [.mayWait, .followsMembers]) { .rotate(try .init(from: $0)) }
    case .keysEnvelope: .init(to: [.participants], .kept) { .envelope(try .init(from: $0)) }
    case .keysSwitch: .init(to: [.participants], .kept, [.changesState]) { .switchKeys(try .init(from: $0)) }
    case .keysRequest: .init(to: [.participants], .kept) { .keyRequest(try .init(from: $0)) }
    case .keysWaiting: .init(to: [.participants], .kept) { .keyWaiting(try .init(from: $0)) }
    case .keysConfirmed: .init(to: [.participants], .dropped, [.mayWait]) { .confirmed(try .init(from: $0)) }
    case .keysDevicesChanged: .init(to: [.users], .kept, [.mayWait]) { .devicesChanged(try .init(from: $0)) }
    case .devicePair: .init(to: [.users], .dropped) { .pairing(try .init(from: $0)) }
    case .recordingShared: .init(to: [.users], .kept) { .recordingShared(try .init(from: $0)) }
    case .recordingChanged: .init(to: [.users], .dropped) { .recordingChanged(try .init(from: $0)) }
    case .recordingSeen: .init(to: [.users], .kept) { .recordingSeen(try .init(from: $0)) }
    case .recordingReached: .init(to: [.users, .services], .kept) { .recordingReached(try .init(from: $0)) }
    case .recordingRemoved: .init(to: [.users], .kept) { .recordingRemoved(try .init(from: $0)) }
    case .recordingStarted:
      .init(to: [.participants], .kept, [.changesState]) { .recordingStarted(try .init(from: $0)) }
    case .recordingConsent:
      .init(to: [.participants], .kept, [.changesState, .mayWait, .followsMembers]) {
        .recordingConsent(try .init(from: $0))
      }
    case .recordingRunning:
      .init(to: [.participants], .kept, [.changesState, .followsMembers]) { .recordingRuns(try .init(from: $0)) }
    case .recordingStopped:
      .init(to: [.participants], .kept, [.changesState]) { .recordingStopped(try .init(from: $0)) }
    case .mediaSlots: .init(to: [.participants], .newest) { .slots(try .init(from: $0)) }
    case .mediaNeed: .init(to: [.participants], .kept) { .need(try .init(from: $0)) }
    case .mediaWanted: .init(to: [.participants], .kept) { .wanted(try .init(from: $0)) }
    case .quality: .init(to: [.participants], .dropped) { .quality(try .init(from: $0)) }
    case .message: .init(to: [.participants], .kept, [.followsMembers]) { .message(try .init(from: $0)) }
    case .presence: .init(to: [.users], .dropped) { .presence(try .init(from: $0)) }
    case .linkChanged: .init(to: [.users], .dropped) { .linkChanged(try .init(from: $0)) }
    case .linkWaiting: .init(to: [.users], .dropped) { .linkWaiting(try .init(from: $0)) }
    case .pushRing: .init(to: [.services], .dropped) { .pushRing(try .init(from: $0)) }
    case .pushCancel: .init(to: [.services], .dropped) { .pushCancel(try .init(from: $0)) }
    case .pushMessage: .init(to: [.services], .dropped) { .pushMessage(try .init(from: $0)) }
    case .pushAlert: .init(to: [.services], .dropped) { .pushAlert(try .init(from: $0)) }
    case .report: .init(to: [.services], .dropped) { .report(try .init(from: $0)) }
    }
  }
}
