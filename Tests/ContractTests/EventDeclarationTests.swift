import Contract
import Foundation
import Testing

/// The declarations of events agree with docs/protocol.md.
struct EventDeclarationTests {
  private let text: String

  init() throws {
    let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
    text = try String(contentsOf: root.appending(path: "docs/protocol.md"), encoding: .utf8)
      .replacing(/\s+/, with: " ")
  }

  @Test func eventsThatMayBeDelayedAreThoseOfTheDocument() throws {
    #expect(
      try named(after: "needs no immediate action of any of them", until: "may be delayed")
        == names { $0.traits.contains(.mayWait) })
  }

  @Test func eventsWithARevisionAreThoseOfTheDocument() throws {
    #expect(
      try named(after: "The events that change the state have it, too", until: "A restart")
        == names { $0.traits.contains(.changesState) })
  }

  @Test func eventsThatFollowChangesOfMembersAreThoseOfTheDocument() throws {
    var expected = try named(after: "They go out earlier when a", until: "of the call follows")
    // A single change, which is sent in order with the other events.
    expected.insert(.callMember)
    #expect(expected == names { $0.traits.contains(.followsMembers) })
  }

  @Test func eventsOfATopicAreThoseOfTheDocument() throws {
    var expected = try named(after: "carries the call's public events", until: "to any of its members")
    #expect(text.contains("The topic never brings `call.state`"))
    expected.remove(.callState)
    #expect(expected == names { $0.recipients.contains(.topic) })
  }

  @Test func eventsThatAreNotKeptAreThoseOfTheDocument() throws {
    let listed = try named(after: "These events are not kept", until: "Only the last")
    #expect(text.contains("Only the last `media.slots` is kept"))
    #expect(text.contains("Presence events are not kept"))
    #expect(text.contains("Topic events have the header `event` and no `seq`, and are not kept"))
    // The next `keys.confirmed`, and `keys/list`, make up for a lost one.
    let expected = listed.union([.presence, .keysConfirmed]).union(names { $0.recipients == .services })
    #expect(expected == names { $0.keeping == .dropped })
    #expect(names { $0.keeping == .newest } == [.mediaSlots])
  }

  @Test func eventsOfCallsForServicesAreThoseOfTheDocument() throws {
    let expected = EventName.allCases.filter { $0.rawValue.hasPrefix("call.") || $0.rawValue.hasPrefix("push.") }
    #expect(Set(expected).union([.report, .recordingReached]) == names { $0.recipients.contains(.services) })
  }

  private func names(where matches: (EventDeclaration) -> Bool) -> Set<EventName> {
    Set(EventName.allCases.filter { matches($0.declaration) })
  }

  /// The events that a sentence names as code; `track.*` means all that begin with `track.`.
  private func named(after start: String, until end: String) throws -> Set<EventName> {
    let first = try #require(text.range(of: start), "docs/protocol.md says otherwise: \(start)")
    let last = try #require(text.range(of: end, range: first.upperBound..<text.endIndex), "\(end)")
    let words = text[first.upperBound..<last.lowerBound].matches(of: /`([a-z.\-]+\*?)`/).map { String($0.1) }
    #expect(!words.isEmpty)
    return Set(
      words.flatMap { word in
        word.hasSuffix("*")
          ? EventName.allCases.filter { $0.rawValue.hasPrefix(word.dropLast()) }
          : EventName.allCases.filter { $0.rawValue == word }
      })
  }
}
