import Contract
import MediaModel

/// Looking up the devices of a list whose public keys are not known: asynchronously, so that a server that withholds an answer delays nothing else
/// (protocol section 5.4).
struct LookUps: Sendable {
  /// The largest list whose unknown devices are looked up immediately.
  static let immediateCount = 64
  /// How often devices are looked up in vain before the person is told that their keys are unknown, and the pause in
  /// between.
  static let attempts = 3
  static let pause: Duration = .seconds(2)

  /// Fingerprints that were requested from `devices/list` since the last announcement. Missing ones are requested again at the next one.
  private var asked: Set<[UInt8]> = []
  /// Entries of the newest list whose public keys were not known when it was announced.
  private(set) var unproven: [ListEntry] = []
  /// Number of awaited replies.
  private(set) var awaited = 0
  /// When unknown devices are looked up: the newcomers of a large call, and after a failed look-up.
  private var due: Instant?
  /// Consecutive look-ups without an answer.
  private var failed = 0
  /// The revision of the pins by which the newest list's devices were judged.
  private var judgedPins = 0

  /// Whether an answer may still bring a device's keys.
  var isUnderWay: Bool { awaited > 0 || due != nil }
  var nextTimeout: Instant? { due }

  /// A list is announced. Returns its entries that must be judged: those whose standing may differ from the previous list.
  mutating func announced(
    _ list: EpochList, added: [ListEntry], isFirst: Bool, known: KnownDevices, spread: inout Spread, now: Instant,
    into effects: inout [KeyEffect]
  ) -> [ListEntry] {
    asked = []
    let unknown = unproven.filter { list.holds($0) }
    let changed = unknown.isEmpty ? added : unknown + added
    unproven = changed.filter { !known.directory.contains($0.fingerprint) }
    begin(list, isFirst: isFirst, known: known, spread: &spread, now: now, into: &effects)
    defer { judgedPins = known.pins.revision }
    return known.pins.revision == judgedPins ? changed : list.entries
  }

  /// Requests immediately, or, in a large call whose people join one after another, for many newcomers at a time. The signer of an envelope is looked up
  /// immediately in any case.
  private mutating func begin(
    _ list: EpochList, isFirst: Bool, known: KnownDevices, spread: inout Spread, now: Instant,
    into effects: inout [KeyEffect]
  ) {
    guard !unproven.isEmpty else { return }
    guard !isFirst, list.entries.count > Self.immediateCount else { return askAll(known, into: &effects) }
    due = due ?? now.advanced(by: spread.part(of: .milliseconds(2 * list.entries.count)))
  }

  mutating func handleTimeout(known: KnownDevices, now: Instant, into effects: inout [KeyEffect]) {
    if let due, due <= now { askAll(known, into: &effects) }
  }

  /// An envelope waits for its signer's keys: requests now what would be requested later.
  mutating func hurry(_ known: KnownDevices, into effects: inout [KeyEffect]) {
    if due != nil { askAll(known, into: &effects) }
  }

  private mutating func askAll(_ known: KnownDevices, into effects: inout [KeyEffect]) {
    due = nil
    ask(unproven.filter { !known.directory.contains($0.fingerprint) }, into: &effects)
  }

  /// Requests public keys that the list proves and that are not known here.
  private mutating func ask(_ entries: [ListEntry], into effects: inout [KeyEffect]) {
    let unknown = entries.filter { !asked.contains($0.fingerprint.bytes) }
    guard !unknown.isEmpty else { return }
    asked.formUnion(unknown.map(\.fingerprint.bytes))
    awaited += 1
    effects.append(.request(.people(.listDevices(ListDevices(users: Array(Set(unknown.map(\.user))).sorted())))))
  }

  /// A reply arrived; nil if it failed. A busy server is no news about a device.
  mutating func answered(_ devices: Devices?, spread: inout Spread, now: Instant) {
    awaited = max(0, awaited - 1)
    failed = devices == nil ? failed + 1 : 0
    guard devices == nil, failed < Self.attempts else { return }
    asked = []
    due = due ?? now.advanced(by: Self.pause + spread.part(of: Self.pause))
  }
}
