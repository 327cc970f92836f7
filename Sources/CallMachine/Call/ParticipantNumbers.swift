import CallMessages
import Contract
import MediaModel

/// The device and joinId of each participant number of a call. Only the last `StoredNumber.capacity` are kept.
struct ParticipantNumbers {
  private var holders: [ParticipantNumber: JoinToken] = [:]
  private var joinIds: Set<Base64Bytes> = []

  init() {}

  init(restoring stored: [ParticipantNumber: StoredNumber]) {
    // A joinId that the server made is not stored, and is on no list.
    for (number, join) in stored { add(number, join.device, join.joinId ?? Base64Bytes([])) }
  }

  mutating func add(_ number: ParticipantNumber, _ device: Device, _ joinId: Base64Bytes) {
    holders[number] = JoinToken(device: device, joinId: joinId)
    joinIds.insert(joinId)
    guard number > StoredNumber.capacity,
      let old = holders.removeValue(forKey: number - StoredNumber.capacity)
    else { return }
    joinIds.remove(old.joinId)
  }

  subscript(number: ParticipantNumber) -> Device? { holders[number]?.device }

  func contains(_ joinId: Base64Bytes) -> Bool { joinIds.contains(joinId) }
}
