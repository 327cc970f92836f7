@testable import PeopleMachine
@testable import CallMachine
import Contract
import MediaModel

import CallMessages
@testable import Calls

/// The state of a call that is compared before and after a step.
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
  /// Devices that were asked to lead, as long as none has answered.
  var isAsking = false
  var isSpreading = false
  var recording: RecordingID?

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
    recording = call.recording?.id
    switch call.epochs.phase {
    case .settled: break
    case .asking: isAsking = true
    case .spreading: isSpreading = true
    }
  }

  /// The users whose devices are told about members.
  var listeners: Set<UserID> {
    Set(members.values.filter { [.ringing, .joined, .disconnected].contains($0.state) }.map(\.user))
  }

  var joined: Set<UserID> { Set(members.values.filter { $0.state == .joined }.map(\.user)) }

  /// The devices in the call, with their numbers.
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

/// One command and its effects.
struct WorldStep {
  /// The command; for an answer of the app's back end, or its absence, the request that waited for it.
  let command: NodeCommand
  /// The device on whose connection it came; nil: none.
  let asker: Device?
  let isService: Bool
  /// The users that the back end allows the request to reach; nil: it was not asked.
  let allowed: Set<UserID>?
  let isTimeout: Bool
  /// The operator's request.
  let isDraining: Bool
  let effects: [CallMessages.Effect]
  let before: [CallID: CallView]
  let after: [CallID: CallView]
  /// The calls that it may have changed and that continue.
  let changed: [CallID]
  let node: Node
  let now: Timestamp
  /// The devices at the ends of the connections, from the server's view.
  let devices: [SessionID: Device]
  /// nil: the whole server handled the command, with all consequences.
  var part: Part?

  /// A step of one of the two state machines, while messages between them are in flight.
  enum Part {
    case people
    /// The message that it handled, if it was a request.
    case calls(BriefedRequest?)
  }

  /// Whether the people's side knows everything that the calls did, and vice versa.
  var isWhole: Bool { part == nil }

  private var callRequest: BriefedRequest? { if case .calls(let request) = part { request } else { nil } }

  /// The roles of the requesting device, as known when the server took the request.
  var roles: [String] {
    callRequest?.caller.identity.roles ?? asker.flatMap { node.people.directory[$0]?.connection?.identity.roles } ?? []
  }

  /// Whether the requesting device had registered keys then.
  var hasKeys: Bool {
    if let callRequest { return callRequest.caller.keys != nil }
    return asker.flatMap { node.people.directory[$0]?.entry } != nil
  }

  /// Whether the device has a connection, as far as the call knows.
  func isConnected(_ device: Device, in call: CallID) -> Bool {
    guard !isWhole else { return devices.values.contains(device) }
    return node.control.calls[call]?.member(device.user)?.participant(on: device)?.isSignaling == true
  }

  /// Whether the user is told about the call's members, as far as the people's side knows.
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

  /// The join key in the request; without one the device is on no list.
  var joinKey: JoinKey? {
    switch request {
    case .calls(.start(let body)): body.joinKey
    case .calls(.call(_, .accept(let body))), .calls(.call(_, .join(let body))), .calls(.call(_, .rejoin(let body))),
      .calls(.call(_, .transfer(let body))):
      body.joinKey
    default: nil
    }
  }

  /// The call that the request wants to join; nil for other requests.
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
