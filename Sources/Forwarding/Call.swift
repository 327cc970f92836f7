import MediaModel

/// The peers of one call on this worker.
final class Call {
  /// Distinct formats of one call's tracks; a track of one more is supported by no slot.
  static let maximumFormats = 64

  let id: CallID
  var peers: ContiguousArray<Peer> = []
  var speakers = Speakers()
  var nextSpeakers = Instant(nanoseconds: 0)
  /// When the slots are to be filled anew: after a change, or when those that are held for a moment may change.
  var allocationDue: Instant?
  /// One of each set of formats that carry each other; its place is the set's key.
  private(set) var formats: [PayloadFormat] = []
  /// Counts allocation passes, to mark what each chose.
  var pass: UInt64 = 0

  init(_ id: CallID) { self.id = id }

  /// −1 when the call has too many.
  func formatKey(_ format: PayloadFormat?) -> Int {
    guard let format else { return -1 }
    if let key = formats.firstIndex(where: { $0.carries(format) }) { return key }
    guard formats.count < Self.maximumFormats else { return -1 }
    formats.append(format)
    return formats.count - 1
  }

  /// What a timer must see to: stale speakers, held slots.
  var deadline: Instant? {
    let speaking = speakers.current.isEmpty ? nil : nextSpeakers
    guard let allocationDue, let speaking else { return speaking ?? allocationDue }
    return min(allocationDue, speaking)
  }
}
