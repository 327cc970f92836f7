import MediaModel

extension Peer {
  /// Takes over what the slots show now. Returns whether the map changed.
  /// - Parameter unsupported: the tracks that no slot carries.
  func updateSlotMap(unsupported: [TrackID]) -> Bool {
    let slots = assignments
    guard slots != slotMap.slots || unsupported != slotMap.unsupported || slotMap.revision == 0 else { return false }
    slotMap = SlotMap(revision: slotMap.revision + 1, slots: slots, unsupported: unsupported)
    return true
  }

  /// The tracks that the slots show now.
  var assignments: [SlotAssignment] {
    downTracks.compactMap { down in
      down.source.map { source in
        SlotAssignment(
          mid: down.description.mid, track: source.track, source: source.description.source, picture: down.picture)
      }
    }
  }
}
