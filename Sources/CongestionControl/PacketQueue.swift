/// A FIFO of waiting packets with a fixed capacity. The packets of one slot can be removed without visiting the others.
///
/// The packets form a list in the order of their arrival, and one for each slot in the same order. It allocates only in `init`.
struct PacketQueue: Sendable {
  private struct Cell {
    var packet = PacedPacket(index: 0, size: 0, frame: 0, slot: 0, kind: .padding)
    var previous = none
    var next = none
    /// The next one of the same slot; of a free cell, the next free one.
    var nextOfSlot = none
  }

  private struct Ends {
    var first = none
    var last = none
  }

  private static let none = -1

  private var cells: [Cell]
  private var all = Ends()
  private var ofSlot = [Ends](repeating: Ends(), count: Pacer.slots)
  private var free: Int
  private(set) var bytes = 0

  init(capacity: Int) {
    cells = [Cell](repeating: Cell(), count: max(1, capacity))
    for i in cells.indices.dropLast() { cells[i].nextOfSlot = i + 1 }
    free = 0
  }

  var isEmpty: Bool { all.first == Self.none }

  /// Returns false if it is full.
  mutating func append(_ packet: PacedPacket) -> Bool {
    guard free != Self.none else { return false }
    let place = free
    let slot = Int(packet.slot) % Pacer.slots
    free = cells[place].nextOfSlot
    cells[place] = Cell(packet: packet, previous: all.last)
    if all.last == Self.none { all.first = place } else { cells[all.last].next = place }
    all.last = place
    append(place, to: slot)
    bytes += Int(packet.size)
    return true
  }

  mutating func removeFirst() -> PacedPacket? {
    guard !isEmpty else { return nil }
    let place = all.first
    let packet = cells[place].packet
    let slot = Int(packet.slot) % Pacer.slots
    // The first of all is the first of its slot.
    ofSlot[slot].first = cells[place].nextOfSlot
    if ofSlot[slot].first == Self.none { ofSlot[slot].last = Self.none }
    remove(place)
    return packet
  }

  /// - Parameter slot: below `Pacer.slots`.
  func contains(slot: Int) -> Bool { ofSlot[slot].first != Self.none }

  /// Removes the packets of `slot`, except those of `frame`.
  /// - Parameter slot: below `Pacer.slots`.
  mutating func remove(slot: Int, except frame: UInt16?) {
    var place = ofSlot[slot].first
    ofSlot[slot] = Ends()
    while place != Self.none {
      let next = cells[place].nextOfSlot
      if cells[place].packet.frame == frame {
        append(place, to: slot)
      } else {
        remove(place)
      }
      place = next
    }
  }

  private mutating func append(_ place: Int, to slot: Int) {
    cells[place].nextOfSlot = Self.none
    if ofSlot[slot].last == Self.none {
      ofSlot[slot].first = place
    } else {
      cells[ofSlot[slot].last].nextOfSlot = place
    }
    ofSlot[slot].last = place
  }

  /// Removes the cell from the list of all; it is no longer in its slot's list.
  private mutating func remove(_ place: Int) {
    let cell = cells[place]
    if cell.previous == Self.none { all.first = cell.next } else { cells[cell.previous].next = cell.next }
    if cell.next == Self.none { all.last = cell.previous } else { cells[cell.next].previous = cell.previous }
    bytes -= Int(cell.packet.size)
    cells[place].nextOfSlot = free
    free = place
  }
}
