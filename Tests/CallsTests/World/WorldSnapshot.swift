import Contract
import MediaModel

@testable import Calls

/// The state of a call that is examined before and after a step.
struct CallView {
  struct Ring: Equatable {
    var by: UserID
    var expiresAt: Timestamp

    mutating func bound(by end: Timestamp) { expiresAt = min(expiresAt, end) }
  }

  var initiator: UserID
  var members: [UserID: MemberState]
  var rings: [UserID: Ring]
  var current: UInt32
  var newest: UInt32
  var list: [ListEntry]
  var listHash: Base64Bytes
  /// Devices that were asked to lead, while no answer has come.
  var isAsking = false
  var isSpreading = false

  init(_ call: Call) {
    initiator = call.initiator
    members = Dictionary(uniqueKeysWithValues: call.members.map { ($0.user, $0.state) })
    rings = [:]
    for member in call.members {
      if case .ringing(let ring) = member.phase { rings[member.user] = Ring(by: ring.by, expiresAt: ring.expiresAt) }
    }
    current = call.epochs.current
    newest = call.epochs.newest.number
    list = call.epochs.newest.list
    listHash = call.epochs.newest.listHash
    switch call.epochs.phase {
    case .settled: break
    case .asking: isAsking = true
    case .spreading: isSpreading = true
    }
  }

  /// Their devices hear of members.
  var listeners: Set<UserID> {
    Set(members.values.filter { [.ringing, .joined, .disconnected].contains($0.state) }.map(\.user))
  }

  var joined: Set<UserID> { Set(members.values.filter { $0.state == .joined }.map(\.user)) }

  /// The devices that are in the call, with their numbers.
  var participants: [Device: ParticipantState] {
    var participants: [Device: ParticipantState] = [:]
    for member in members.values where member.state == .joined {
      for participant in member.participants {
        participants[Device(user: member.user, device: participant.device)] = participant
      }
    }
    return participants
  }
}

/// One command, and what it did.
struct WorldStep {
  /// The command; for an answer of the app's back end, or its absence, the request that waited for it.
  let command: NodeCommand
  /// The device whose connection it came by; nil: no device's.
  let asker: Device?
  let isService: Bool
  /// The users that the back end allows the request to reach; nil: it was not asked.
  let allowed: Set<UserID>?
  let isTimeout: Bool
  /// As the operator wanted.
  let isDraining: Bool
  let effects: [Calls.Effect]
  let before: [CallID: CallView]
  let after: [CallID: CallView]
  /// The calls that it can have touched and that go on.
  let changed: [CallID]
  let node: Node
  let now: Timestamp
  /// The devices at the other end of the connections, as the server has them.
  let devices: [SessionID: Device]
  /// nil: the command was handled by the whole server, with all that follows from it.
  var part: Part?

  /// A step of one of the two state machines, while messages between them are under way.
  enum Part {
    case people
    /// With the message that it took, if it was a request.
    case calls(BriefedRequest?)
  }

  /// The people's side knows of all that the calls did, and the other way round.
  var isWhole: Bool { part == nil }

  private var callRequest: BriefedRequest? { if case .calls(let request) = part { request } else { nil } }

  /// The roles of the device that asks, as the server knew them when it took the request.
  var roles: [String] {
    callRequest?.caller.identity.roles ?? asker.flatMap { node.people.directory[$0]?.connection?.identity.roles } ?? []
  }

  /// The device that asks had registered keys then.
  var hasKeys: Bool {
    if let callRequest { return callRequest.caller.keys != nil }
    return asker.flatMap { node.people.directory[$0]?.entry } != nil
  }

  /// The device has a connection, as far as the call knows.
  func isConnected(_ device: Device, in call: CallID) -> Bool {
    guard !isWhole else { return devices.values.contains(device) }
    return node.control.calls[call]?.member(device.user)?.participant(on: device)?.isSignaling == true
  }

  /// The user hears of the call's members, as far as the people's side knows.
  func isListening(_ user: UserID, _ call: CallID) -> Bool {
    isWhole
      ? node.control.calls[call]?.member(user)?.isListening == true
      : node.people.part(of: user, in: call)?.isListening == true
  }

  /// The calls that ended.
  var gone: [CallID] { before.keys.filter { after[$0] == nil } }

  var isOK: Bool {
    effects.contains { if case .client(.reply(_, _, .ok)) = $0 { true } else { false } }
  }

  var isForgetting: Bool { if case .forget = command { true } else { false } }

  var request: Request? { if case .request(_, _, let request) = command { request } else { nil } }

  /// That the request brings; without one the device is on no list.
  var joinKey: JoinKey? {
    switch request {
    case .calls(.start(let body)): body.joinKey
    case .calls(.call(_, .accept(let body))), .calls(.call(_, .join(let body))), .calls(.call(_, .rejoin(let body))),
      .calls(.call(_, .transfer(let body))):
      body.joinKey
    default: nil
    }
  }

  /// The call that the request wants to come into, nil for another request.
  var entry: (kind: JoinMemory.Kind, call: CallID?)? {
    switch request {
    case .calls(.start): (.start, nil)
    case .calls(.call(let id, .accept)): (.accept, id)
    case .calls(.call(let id, .join)): (.join, id)
    case .calls(.call(let id, .rejoin)): (.rejoin, id)
    case .calls(.call(let id, .transfer)): (.transfer, id)
    default: nil
    }
  }
}
