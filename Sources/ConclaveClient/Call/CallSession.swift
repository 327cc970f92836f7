package import Contract
package import MediaModel

/// A call as one participant knows it: a value created from the reply to a join and updated by the call's events (protocol sections 4 and 6).
package struct CallSession: Sendable {
  package private(set) var state: CallState
  /// This device's own number.
  package let participant: ParticipantNumber
  /// The dominant speaker, then the loudest first.
  package private(set) var speakers: [ParticipantNumber] = []
  /// The content of each slot, by mid.
  package private(set) var slots: [String: Slot] = [:]
  /// Tracks that no slot can carry, because this device lacks their codec.
  package private(set) var unsupported: [TrackID] = []
  /// Slots that the server would fill. If there are fewer, another offer is needed.
  package private(set) var need: Need?
  package private(set) var ended: Ended?
  private var slotRevision: UInt64 = 0
  /// The index of each user among the state's members.
  private var places: [UserID: Int]
  /// The user of this device.
  private let user: UserID?

  /// The effect of an event on the session.
  package enum Change: Sendable, Hashable {
    /// Nothing, or nothing in this call's state.
    case none
    /// A state that is older than what the session knows: it is ignored.
    case outdated
    case members
    case speakers
    case slots
    case need
    /// The server no longer has this participant: it must rejoin.
    case lost
    /// This participant has gone permanently: moved to another device, or its device was removed.
    case gone(MemberCause)
    case ended
  }

  /// - Parameter user: of this device; nil if the reply's state says so.
  package init(_ joined: Joined, user: UserID? = nil) {
    state = joined.call
    places = Self.places(of: joined.call.members)
    participant = joined.participant
    let participant = joined.participant
    self.user =
      user ?? joined.call.members.first { $0.participants.contains { $0.participant == participant } }?.user
  }

  /// The server's view of this participant.
  package var standing: ParticipantStanding {
    guard let place = user.flatMap({ places[$0] }) else { return .absent }
    let own = state.members[place].participants.first { $0.participant == participant }
    return own.map { $0.connected ? .connected : .silent } ?? .absent
  }

  /// Whether an event of this user's member may be about this participant.
  package func isOwn(_ member: MemberState) -> Bool { member.user == user }

  /// The most changes in one `call.members` (protocol section 3).
  static let maximumChanges = 64
  /// More members than a call can have: a server that keeps naming new ones would fill the memory.
  static let maximumMembers = 4_096
  /// The most layers per track in `media.wanted`, as many as a sender may offer.
  static let maximumLayers = 3

  /// The changes of members in an event, in order; none for other events, and for a list that is longer than the protocol allows.
  static func changes(in event: EventBody) -> [MemberChange] {
    switch event {
    case .member(let change): [change]
    case .members(let changes) where changes.members.count <= maximumChanges: changes.members
    default: []
    }
  }

  /// The layers that receivers want of an own track; nil unless it is this participant's track with one to three different layers. The app knows which layers it
  /// sends.
  package func layers(of wanted: Wanted) -> [SimulcastLayer]? {
    guard wanted.track.participant == participant, (1...Self.maximumLayers).contains(wanted.layers.count),
      Set(wanted.layers.map(\.rid)).count == wanted.layers.count
    else { return nil }
    return wanted.layers.map { SimulcastLayer(rid: $0.rid, isActive: $0.active) }
  }

  /// Updates people and tracks by an event for the former participant. The rest of the event is ignored.
  ///
  /// - Returns: false for a state that is older than what the session knows.
  mutating func follow(_ event: EventBody, rev: UInt64?) -> Bool {
    switch event {
    case .state, .member, .members, .trackAdded, .trackUpdated, .trackRemoved: handle(event, rev: rev) != .outdated
    default: true
    }
  }

  /// - Parameters:
  ///   - rev: of the event, if it changes the call's state.
  ///   - time: of the event, by the server's clock.
  package mutating func handle(_ event: EventBody, rev: UInt64? = nil, at time: Timestamp? = nil) -> Change {
    let known = max(state.rev ?? 0, rev ?? 0)
    state.rev = known
    switch event {
    case .state(let whole):
      guard whole.rev ?? known >= known else { return .outdated }
      let isInPlace = whole.members.elementsEqual(state.members) { $0.user == $1.user }
      if !isInPlace { places = Self.places(of: whole.members) }
      state = whole
      state.rev = whole.rev ?? known
      return standing == .absent ? .lost : .members
    case .member, .members: return take(Self.changes(in: event), at: time)
    case .trackAdded(let change), .trackUpdated(let change):
      return changeTracks(of: change.participant) { tracks in
        tracks.removeAll { $0.track == change.track }
        tracks.append(TrackState(track: change.track, source: change.source, muted: change.muted))
        tracks.sort { $0.track < $1.track }
      }
    case .trackRemoved(let change):
      return changeTracks(of: change.participant) { tracks in tracks.removeAll { $0.track == change.track } }
    case .speakers(let loudest):
      speakers = loudest.participants
      return .speakers
    case .slots(let map): return take(map)
    case .need(let need):
      self.need = need
      return .need
    case .ended(let ended):
      self.ended = ended
      state.state = .ended
      return .ended
    case .switchKeys(let change):
      state.epoch = max(state.epoch, change.epoch)
      return .none
    // Not about who and what is in the call.
    default: return .none
    }
  }

  /// Applies the slot map of a media answer.
  package mutating func take(_ answer: MediaAnswer) -> Change {
    take(Slots(rev: answer.rev, receive: answer.receive, unsupported: answer.unsupported))
  }

  /// A lower revision than one already seen is ignored, because replies and events are not ordered with each other.
  private mutating func take(_ map: Slots) -> Change {
    guard map.rev >= slotRevision else { return .none }
    slotRevision = map.rev
    slots = Dictionary(map.receive.map { ($0.mid, $0) }) { _, last in last }
    unsupported = map.unsupported
    return .slots
  }

  /// Changes of members, in order. The last one of this device's user says whether this participant is still there.
  private mutating func take(_ changes: [MemberChange], at time: Timestamp?) -> Change {
    for change in changes { replace(change.member, at: time) }
    guard let own = changes.last(where: { isOwn($0.member) }), standing == .absent else {
      return changes.isEmpty ? .none : .members
    }
    switch own.cause {
    case .transferred, .left, .failed: return .gone(own.cause)
    // Members are not removed, whatever a server says.
    case .removed: return own.member.user.isGuest ? .gone(own.cause) : .lost
    default: return .lost
    }
  }

  private mutating func replace(_ member: MemberState, at time: Timestamp?) {
    if let place = places[member.user] {
      state.members[place] = member
    } else if state.members.count < Self.maximumMembers {
      places[member.user] = state.members.count
      state.members.append(member)
    }
    if state.state == .ringing, member.state == .joined, member.user != state.initiator {
      state.state = .active
      state.answeredAt = time
    }
  }

  private static func places(of members: [MemberState]) -> [UserID: Int] {
    Dictionary(members.enumerated().map { ($1.user, $0) }) { first, _ in first }
  }

  private mutating func changeTracks(
    of participant: ParticipantNumber, _ change: (inout [TrackState]) -> Void
  ) -> Change {
    for member in state.members.indices {
      for index in state.members[member].participants.indices
      where state.members[member].participants[index].participant == participant {
        change(&state.members[member].participants[index].tracks)
        return .members
      }
    }
    return .none
  }
}
