import CallMessages
import MediaModel

extension People {
  func calls(of user: UserID) -> [CallID] { memberships[user]?.map(\.call) ?? [] }

  func part(of user: UserID, in call: CallID) -> Membership.Part? {
    memberships[user]?.first { $0.call == call }?.part
  }

  func isParticipant(_ device: Device) -> Bool {
    (memberships[device.user] ?? []).contains { $0.part.devices.contains(device.device) }
  }

  /// The member is new, or its part changed: its devices may no longer be allowed to read, or its presence changed.
  ///
  /// The call may have acted on an outdated fact. If the device joined while its connection was ending, the call is told that the connection is gone, so
  /// that its 15 s run. A device that is unknown by now is removed, and so are devices that are leaving all their calls. A device whose first subscription
  /// waits for its calls waits for this one, too.
  mutating func follow(_ user: UserID, _ part: Membership.Part, in call: CallID) {
    var before: [DeviceID] = []
    if let place = memberships[user]?.firstIndex(where: { $0.call == call }) {
      before = memberships[user]?[place].part.devices ?? []
      memberships[user]?[place].part = part
    } else {
      memberships[user, default: []].append(Membership(call: call, part: part))
    }
    presence.touch(user)
    if !part.isListening { stopReading(user, .call(call)) }
    for name in part.devices where !before.contains(name) {
      let device = Device(user: user, device: name)
      if directory[device] == nil {
        dismiss(.device(device))
      } else if !directory.isConnected(device) {
        send(.signaling(device, isUp: false, in: call))
      } else {
        greetLater(device, in: call)
      }
    }
    if !leaving.isEmpty { dismiss(user, part, from: call) }
  }

  /// A removal that is under way concerns this call, too.
  private mutating func dismiss(_ user: UserID, _ part: Membership.Part, from call: CallID) {
    for leaver in [.user(user)] + part.devices.map({ Leaver.device(Device(user: user, device: $0)) })
    where leaving[leaver]?.insert(call).inserted == true {
      send(.remove(leaver, from: call))
    }
  }

  mutating func end(_ call: CallID, for users: [UserID]) {
    topics.remove(.call(call))
    closeLink(of: call)
    for user in users { end(call, for: user) }
    forgetGuests(among: users)
  }

  /// The user is no longer a member.
  mutating func end(_ call: CallID, for user: UserID) {
    presence.touch(user)
    memberships[user]?.removeAll { $0.call == call }
    if memberships[user]?.isEmpty == true { memberships[user] = nil }
  }

  /// The device speaks in this call: its others are held (call waiting). The calls may report this in a different order than they
  /// were asked.
  mutating func holdOthers(of device: Device, speaking told: Speaking) {
    guard let known = directory[device] else { return }
    let last = known.speaking.map { $0.turn > told.turn ? $0 : told } ?? told
    directory[device]?.speaking = last
    for other in memberships[device.user] ?? []
    where other.call != last.call && other.part.devices.contains(device.device) {
      send(.hold(device, since: last.turn, in: other.call))
    }
  }
}

/// The latest of the device's requests to speak in a call that the calls have reported.
struct Speaking {
  var call: CallID
  /// `BriefedRequest.turn`.
  var turn: UInt64
}
