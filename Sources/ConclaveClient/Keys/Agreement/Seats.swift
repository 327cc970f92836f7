import Contract
import MediaModel

/// The participants and joinIds with which the devices of a ring's list have joined: under epoch 1 known only from the server (protocol section
/// 5.5).
struct Seats: Sendable {
  private var devices: [ParticipantNumber: JoinedDevice] = [:]

  /// Notes devices that have joined; the first one with a number keeps it. Returns whether one of them rang on `first`, the list of epoch 1.
  mutating func note(_ joined: [JoinedDevice], first: EpochList?) -> Bool {
    var hasOneRung = false
    for device in joined
    where device.participant > 0 && devices[device.participant] == nil && device.joinId.count == 16 {
      devices[device.participant] = device
      if first?[device.device]?.participant == 0 { hasOneRung = true }
    }
    return hasOneRung
  }

  /// Epoch 1 is over.
  mutating func forget() { devices = [:] }

  /// Devices that rang have no number and joinId on epoch 1's list: they send with those of their join, as reported by `call.member`. Numbers and joins
  /// that are already used are refused.
  func senders(of epoch: Epoch, own: OwnStay, known: KnownDevices) -> [ParticipantNumber: SenderIdentity] {
    guard epoch.number == 1 else { return [:] }
    var senders: [ParticipantNumber: SenderIdentity] = [:]
    var joins = Set(epoch.list.entries.compactMap { $0.joinId?.bytes }).union([own.join.joinId.bytes])
    // In a large call most have joined by a link, and are not on the first list.
    let rung = devices.values.filter { epoch.list[$0.device]?.participant == 0 }
    for joined in rung.sorted(by: { $0.participant < $1.participant }) {
      guard let entry = epoch.list[joined.device], entry.address != own.address,
        joined.participant != own.participant, epoch.list[joined.participant] == nil,
        joins.insert(joined.joinId).inserted, known.isHeard(entry)
      else { continue }
      senders[joined.participant] = SenderIdentity(fingerprint: entry.fingerprint.bytes, joinId: joined.joinId)
    }
    return senders
  }
}

/// A device that has joined.
struct JoinedDevice: Sendable, Hashable {
  var device: Device
  var participant: ParticipantNumber
  var joinId: [UInt8]
}

extension MemberState {
  var joinedDevices: [JoinedDevice] {
    participants.map {
      JoinedDevice(
        device: Device(user: user, device: $0.device), participant: $0.participant, joinId: $0.joinId.bytes)
    }
  }
}
