import Contract
import MediaModel
import Testing

@testable import ConclaveClient

struct CallSessionTests {
  private func member(_ user: String, _ phase: MemberPhase, participant: ParticipantNumber? = nil) -> MemberState {
    MemberState(
      user: UserID(user)!, name: nil, state: phase,
      participants: participant.map {
        [
          ParticipantState(
            participant: $0, device: DeviceID("d")!, joinId: Base64Bytes([]), connected: true, held: false, tracks: [])
        ]
      } ?? [])
  }

  private func session() -> CallSession {
    CallSession(
      Joined(
        call: CallState(
          id: CallID("c")!, state: .ringing, media: .video, initiator: UserID("alice")!,
          startedAt: Timestamp(milliseconds: 0), epoch: 1, policy: Policy(),
          members: [member("alice", .joined, participant: 1), member("bob", .ringing)], metadata: nil),
        participant: 1, ice: ICE()))
  }

  @Test func aMemberWhoAcceptsMakesTheCallActive() {
    var session = session()
    #expect(
      session.handle(
        .member(MemberChange(member: member("bob", .joined, participant: 2), cause: .accepted)),
        at: Timestamp(milliseconds: 4_000)) == .members)
    #expect(session.state.state == .active && session.state.answeredAt?.milliseconds == 4_000)
    #expect(session.state.members[1].participants.map(\.participant) == [2])
    #expect(session.handle(.member(MemberChange(member: member("carol", .ringing), cause: .invited))) == .members)
    #expect(session.state.members.map(\.user.text) == ["alice", "bob", "carol"])
  }

  /// The server sends changes of a large call together, and this participant's own may be among them.
  @Test func changesThatComeTogetherAreJudgedAfterTheLast() {
    func changes(_ all: (MemberState, MemberCause)...) -> EventBody {
      .members(MemberChanges(members: all.map { MemberChange(member: $0, cause: $1) }))
    }
    var session = session()
    #expect(
      session.handle(
        changes(
          (member("alice", .disconnected), .disconnected), (member("bob", .joined, participant: 2), .accepted),
          (member("alice", .joined, participant: 1), .rejoined))) == .members)
    #expect(session.state.members.map(\.participants.count) == [1, 1])
    #expect(
      session.handle(changes((member("alice", .left), .transferred), (member("bob", .left), .left)))
        == .gone(.transferred))
    #expect(session.handle(changes()) == .none)
  }

  /// Only guests can be removed (protocol section 4, "Guests").
  @Test func aMemberThatTheServerReportsAsRemovedComesBackAndAGuestDoesNot() {
    for (user, change) in [("alice", CallSession.Change.lost), ("guest~ana", .gone(.removed))] {
      let own = member(user, .joined, participant: 1)
      let call = CallState(
        id: CallID("c")!, state: .active, media: .audio, initiator: UserID("bob")!,
        startedAt: Timestamp(milliseconds: 0), epoch: 1, policy: Policy(), members: [own], metadata: nil)
      var session = CallSession(Joined(call: call, participant: 1, ice: ICE()))
      #expect(session.handle(.member(MemberChange(member: member(user, .left), cause: .removed))) == change)
    }
  }

  @Test func aServerThatNamesEverMoreMembersFillsNoMemory() {
    var session = session()
    for number in 0..<5_000 {
      _ = session.handle(.member(MemberChange(member: member("user-\(number)", .ringing), cause: .invited)))
    }
    #expect(session.state.members.count == CallSession.maximumMembers)
    _ = session.handle(.member(MemberChange(member: member("bob", .joined, participant: 2), cause: .accepted)))
    #expect(session.state.members[1].participants.count == 1)
  }

  @Test func tracksComeChangeAndGo() {
    var session = session()
    let track = TrackID(participant: 1, index: 1)
    _ = session.handle(.trackAdded(TrackChange(TrackState(track: track, source: .camera, muted: false))))
    _ = session.handle(.trackUpdated(TrackChange(TrackState(track: track, source: .camera, muted: true))))
    #expect(
      session.state.members[0].participants[0].tracks == [TrackState(track: track, source: .camera, muted: true)])
    _ = session.handle(.trackRemoved(TrackChange(TrackState(track: track, source: .camera, muted: true))))
    #expect(session.state.members[0].participants[0].tracks.isEmpty)
  }

  @Test func aLowerRevisionOfTheSlotsIsIgnored() {
    var session = session()
    let slot = Slot(SlotAssignment(mid: "3", track: TrackID(participant: 2, index: 1), source: .camera))
    #expect(session.handle(.slots(Slots(rev: 5, receive: [slot], unsupported: []))) == .slots)
    #expect(session.handle(.slots(Slots(rev: 4, receive: [], unsupported: []))) == .none)
    #expect(session.slots["3"] == slot)
  }

  @Test(arguments: [(nil, .whole), (.lower, .lower), (.paused, .paused)] as [(LimitedPicture?, ReceivedPicture)])
  func anAppIsToldThatAPictureIsLimited(told: LimitedPicture?, shown: ReceivedPicture) {
    let track = TrackID(participant: 2, index: 1)
    let slot = Slot(SlotAssignment(mid: "3", track: track, source: .camera, picture: told))
    #expect(ReceivedTrack(slot).picture == shown)
  }

  @Test(arguments: [(64, 66), (65, 2)]) func moreChangesThanTheProtocolAllowsAreRefused(count: Int, known: Int) {
    var session = session()
    let changes = (1...count).map { MemberChange(member: member("user\($0)", .ringing), cause: .invited) }
    _ = session.handle(.members(MemberChanges(members: changes)))
    #expect(session.state.members.count == known)
  }

  @Test func onlyLayersOfAnOwnTrackAreWanted() {
    let session = session()
    func layers(_ participant: ParticipantNumber, _ rids: String...) -> [String]? {
      let wanted = Wanted(
        track: TrackID(participant: participant, index: 1),
        layers: rids.map { MediaModel.WantedLayer(rid: $0, active: $0 == "q") })
      return session.layers(of: wanted)?.map { "\($0.rid) \($0.isActive)" }
    }
    #expect(layers(1, "q", "h", "f") == ["q true", "h false", "f false"])
    #expect(layers(2, "q", "h") == nil, "somebody else's track")
    #expect(layers(1) == nil)
    #expect(layers(1, "q", "q") == nil, "a layer twice")
    #expect(layers(1, "q", "h", "f", "x") == nil, "more layers than a sender has")
  }

  @Test func aStateWithoutThisParticipantMeansRejoin() {
    var session = session()
    var state = session.state
    state.members[0].participants = []
    #expect(session.handle(.state(state)) == .lost)
  }

  @Test func anOldStateChangesNothing() {
    var session = session()
    var old = session.state
    (old.rev, old.members[0].participants) = (6, [])
    #expect(session.handle(.member(MemberChange(member: member("bob", .left), cause: .left)), rev: 7) == .members)
    let known = session.state
    #expect(session.handle(.state(old)) == .outdated && session.state == known)
    old.rev = nil
    #expect(session.handle(.state(old)) == .lost && session.state.rev == 7, "a state without a revision counts")
  }

  @Test func theEndIsTold() {
    var session = session()
    #expect(session.handle(.ended(Ended(reason: .allLeft, by: nil, seconds: 3))) == .ended)
    #expect(session.state.state == .ended)
  }
}
