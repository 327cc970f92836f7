import MediaModel

/// The members of a call, in the order in which they came, with the numbers of those that ring, have joined, or are present.
struct Roster {
  private(set) var members: [Member] = []
  private(set) var ringing = 0
  private(set) var joined = 0
  private(set) var present = 0
  private var places: [UserID: Int] = [:]

  init() {}

  init(restoring members: [Member]) {
    self.members = members
    for (place, member) in members.enumerated() {
      places[member.user] = place
      count(member, 1)
    }
  }

  subscript(user: UserID) -> Member? { places[user].map { members[$0] } }

  /// The index of the user among all members.
  func place(of user: UserID) -> Int? { places[user] }

  /// Adds a member, or gives it a new phase.
  mutating func setPhase(_ phase: Member.Phase, of user: UserID, name: String?) {
    let place = places[user] ?? members.count
    if place < members.count {
      count(members[place], -1)
      members[place].phase = phase
      if let name { members[place].name = name }
    } else {
      places[user] = place
      members.append(Member(user: user, name: name, phase: phase))
    }
    count(members[place], 1)
    if case .joined = phase { members[place].hasBeenIn = true }
  }

  /// Changes a member in place, without moving it to another phase; nil for a stranger.
  mutating func change<Result>(_ user: UserID, _ change: (inout Member) -> Result) -> Result? {
    guard let place = places[user] else { return nil }
    return change(&members[place])
  }

  /// Returns the users whose places have changed.
  mutating func remove(_ user: UserID) -> [UserID] {
    guard let place = places.removeValue(forKey: user) else { return [] }
    count(members[place], -1)
    members.remove(at: place)
    for (place, member) in members.enumerated().dropFirst(place) { places[member.user] = place }
    return members[place...].map(\.user)
  }

  private mutating func count(_ member: Member, _ n: Int) {
    if member.isRinging { ringing += n }
    if member.isJoined { joined += n }
    if member.isPresent { present += n }
  }
}
