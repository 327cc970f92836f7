import Contract
import MediaModel

/// The epochs of a call that this device remembers: the newest, the one in use and those before it during their overlap (protocol section
/// 5.3).
struct HeldEpochs: Sendable {
  /// How long the keys before a switch stay usable for receiving.
  static let overlap: Duration = .seconds(10)

  private var epochs: [UInt32: Epoch] = [:]
  /// The epoch last switched to; nil before the first.
  private(set) var current: UInt32?
  /// When an epoch that is no longer in use is forgotten.
  private var retirements: [UInt32: Instant] = [:]

  subscript(number: UInt32) -> Epoch? {
    get { epochs[number] }
    _modify { yield &epochs[number] }
  }

  var inUse: Epoch? { current.flatMap { epochs[$0] } }
  /// The number of the epoch in use; 0 before the first.
  var currentNumber: UInt32 { current ?? 0 }
  /// In order.
  var numbers: [UInt32] { epochs.keys.sorted() }
  var nextTimeout: Instant? { retirements.values.min() }

  /// The epoch is in use from now on. The keys for frames in flight stay; earlier secrets are dropped.
  mutating func use(_ number: UInt32, now: Instant) {
    current = number
    for old in numbers where old < number {
      epochs[old]?.secret = nil
      if retirements[old] == nil { retirements[old] = now.advanced(by: Self.overlap) }
    }
  }

  /// Whether the epoch was announced and never switched to, so that the next announcement supersedes it.
  func isSuperseded(_ number: UInt32) -> Bool { number > currentNumber && retirements[number] == nil }

  /// The epochs whose overlap is over. They must be removed.
  mutating func takeRetired(now: Instant) -> [UInt32] {
    let retired = retirements.filter { $0.value <= now }.keys.sorted()
    for number in retired { retirements[number] = nil }
    return retired
  }

  mutating func remove(_ number: UInt32) -> Bool { epochs.removeValue(forKey: number) != nil }

  // MARK: senders

  /// Computes again which of these entries of an epoch are heard.
  mutating func examine(_ entries: [ListEntry], of number: UInt32, known: KnownDevices) {
    for entry in entries where entry.participant > 0 {
      if known.isHeard(entry) {
        epochs[number]?.unheard.remove(entry.participant)
      } else {
        epochs[number]?.unheard.insert(entry.participant)
      }
    }
  }

  /// Gives the cipher an epoch's key and those of its senders that are heard.
  mutating func install(
    _ number: UInt32, seats: Seats, own: OwnStay, known: KnownDevices, into effects: inout [KeyEffect]
  ) {
    guard let epoch = epochs[number], let derivation = epoch.derivation(own.call) else { return }
    // A device may have become known as a leader's recipient.
    examine(epoch.unheard.compactMap { epoch.list[$0] }, of: number, known: known)
    let unheard = epochs[number]?.unheard ?? []
    // Never an own entry, whatever number the list gives it: a member cannot make this device take its own frames for those of
    // another.
    let numbers = [own.participant, epoch.list[own.address]?.participant ?? own.participant]
    let senders = Senders(
      of: epoch.list, without: unheard.union(numbers), joined: seats.senders(of: epoch, own: own, known: known))
    effects.append(.install(EpochKeys(epoch: number, derivation: derivation, senders: senders)))
  }

  /// Gives the cipher the keys of senders whose public keys have become known. Never removes a sender. While many devices join in quick succession, a
  /// call has a new list every tenth of a second; lists without such a sender are skipped.
  mutating func installProven(seats: Seats, own: OwnStay, known: KnownDevices, into effects: inout [KeyEffect]) {
    for number in numbers {
      guard let epoch = epochs[number] else { continue }
      examine(epoch.unheard.compactMap { epoch.list[$0] }, of: number, known: known)
      // Devices that rang have no number on the first list.
      if number == 1 || epochs[number]?.unheard != epoch.unheard {
        install(number, seats: seats, own: own, known: known, into: &effects)
      }
    }
  }

  /// The knowledge about these users has changed; nil means all users. Removes from the cipher the keys of devices that are no longer heard, including those of
  /// epochs whose secret is gone but which still open frames; and gives it the keys of all senders that are heard now.
  mutating func judge(
    _ users: Set<UserID>?, seats: Seats, own: OwnStay, known: KnownDevices, into effects: inout [KeyEffect]
  ) {
    var excluded: Set<[UInt8]> = []
    for number in numbers {
      for entry in epochs[number]?.list.entries(of: users) ?? [] {
        guard known.directory.contains(entry.fingerprint), !known.isHeard(entry),
          excluded.insert(entry.fingerprint.bytes).inserted
        else { continue }
        effects.append(.exclude(fingerprint: entry.fingerprint.bytes))
      }
    }
    for number in numbers {
      guard let entries = epochs[number]?.list.entries(of: users), !entries.isEmpty else { continue }
      examine(entries, of: number, known: known)
      install(number, seats: seats, own: own, known: known, into: &effects)
    }
  }
}
