import CallMessages
import Contract
import MediaModel

/// The participant numbers of a call, with the device and joinId of each. Only the last `StoredNumber.capacity` are kept.
struct ParticipantNumbers {
  /// The last number that was given; 0: none.
  private(set) var last: ParticipantNumber = 0
  private var holders: [ParticipantNumber: JoinToken] = [:]
  private var joinIds: Set<Base64Bytes> = []

  init() {}

  init(restoring stored: [ParticipantNumber: StoredNumber], last: ParticipantNumber) {
    self.last = last
    // A joinId that the server made is not stored, and is on no list.
    for (number, join) in stored { add(number, join.device, join.joinId ?? Base64Bytes([])) }
  }

  mutating func next() -> ParticipantNumber {
    last += 1
    return last
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
