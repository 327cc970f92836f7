import CallMessages
import Contract
import MediaModel
import Octets

/// One epoch as announced: number, mode, list and its place in the chain never change (protocol section 5, "List").
struct AnnouncedEpoch {
  let number: UInt32
  let mode: RotationMode
  /// Sorted by user, then device, as bytes; without `keys`.
  let list: [ListEntry]
  /// The hash of the list only.
  let roster: Base64Bytes
  /// The `listHash` of the epoch announced before.
  let previous: Base64Bytes
  /// Binds the list to the call, the number and all earlier lists.
  let listHash: Base64Bytes
  /// Ringing devices have a place on it: only in epoch 1.
  let isOfRing: Bool
  /// The devices in order of their participant numbers.
  let byNumber: [Device]
  /// The words that the list needs (protocol section 5.13).
  let words: [Admissions.Subject: Admission]
  /// The devices whose keys a receiver of the list looks up.
  let fingerprints: Set<Base64Bytes>
  private let places: [Device: Int]
  private let keys: [Device: [DeviceKey]]

  /// The hash that stands for the epoch before the first one.
  static let noHash = Base64Bytes([UInt8](repeating: 0, count: 32))

  /// - Parameters:
  ///   - previous: the `listHash` of the epoch announced before, switched to or not.
  ///   - entries: with the devices' `keys`, in any order.
  ///   - admissions: the words by which people have joined so far.
  init(
    number: UInt32, mode: RotationMode, call: CallID, previous: Base64Bytes, entries: [ListEntry],
    admissions: Admissions = Admissions(), digest: ([UInt8]) -> [UInt8]
  ) {
    self.number = number
    self.mode = mode
    self.previous = previous
    let sorted = entries.sorted { $0.address < $1.address }
    keys = Dictionary(sorted.map { ($0.address, $0.keys ?? []) }) { first, _ in first }
    list = sorted.map { entry in
      var entry = entry
      entry.keys = nil
      return entry
    }
    byNumber = list.sorted { $0.participant < $1.participant }.map(\.address)
    isOfRing = list.contains { $0.participant == 0 }
    words = admissions.needed(by: list.lazy.filter { $0.participant > 0 }.map(\.user))
    fingerprints = Set(list.map(\.fingerprint))
    places = Dictionary(list.indices.map { (sorted[$0].address, $0) }) { first, _ in first }
    roster = Base64Bytes(digest(Self.roster(of: list, digest: digest)))
    listHash =
      number == 0
      ? Self.noHash
      : Base64Bytes(
        digest(
          Transcript.list(
            call: call.text, epoch: number, previous: previous.bytes, rosterHash: roster.bytes
          ).bytes))
  }

  var link: EpochLink { EpochLink(epoch: number, roster: roster) }

  /// The participants on the list. Its other entries are of devices that ring.
  var numbered: [ParticipantNumber: ListEntry] {
    Dictionary(list.lazy.filter { $0.participant > 0 }.map { ($0.participant, $0) }) { first, _ in first }
  }

  /// The device's index on the list.
  func place(of device: Device) -> Int? { places[device] }

  func entry(of device: Device) -> ListEntry? { places[device].map { list[$0] } }

  /// As in `deliver` and `keys.request`, except for `refresh`.
  func entryWithKeys(of device: Device) -> ListEntry? {
    guard var entry = entry(of: device) else { return nil }
    entry.keys = keys[device]
    return entry
  }

  /// Whether the device is on the list for this stay in the call. A device that accepted a ring was on epoch 1's list before it had a joinId.
  func holds(_ keyedDevice: KeyedDevice) -> Bool {
    guard let entry = entry(of: keyedDevice.device) else { return false }
    return entry.joinId == nil || entry.joinId == keyedDevice.joinId
  }

  /// Whether the device was on the list with the same joinId.
  func holdsJoin(_ device: Device, _ joinId: Base64Bytes?) -> Bool {
    guard let entry = entry(of: device), let joinId else { return false }
    return entry.joinId == joinId
  }

  // MARK: hashes

  private static func roster(of list: [ListEntry], digest: ([UInt8]) -> [UInt8]) -> [UInt8] {
    var roster = Transcript.roster(count: list.count)
    roster.reserveCapacity(32 + list.count * 128)
    for entry in list {
      roster.appendEntry(
        user: entry.user.text, device: entry.device.text, participant: entry.participant,
        fingerprint: entry.fingerprint.bytes, joinId: entry.joinId?.bytes,
        joinKeyHash: entry.joinKey.map { digest($0.publicKey.bytes) })
    }
    return roster.bytes
  }
}
