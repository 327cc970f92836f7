import CallMessages
import Contract
import MediaModel
import Testing

@testable import Calls
@testable import CallMachine
@testable import ConclaveClient

/// Alice, Bob and Carol in a call, under an epoch of all three, with a server that is about to lie.
final class Scene {
  let world: World
  let call: CallID
  let alice: SimDevice
  let bob: SimDevice
  let carol: SimDevice
  var ghost: Ghost?
  var forger: Forger?

  init(
    seed: UInt64 = 1, isSilent: Bool = false, weakness: Weakness? = nil, prepare: ([SimDevice]) -> Void = { _ in }
  ) throws {
    world = World(seed: seed, weakness: weakness)
    world.isSilent = isSilent
    for user in ["alice", "bob", "carol"] { world.add(user) }
    world.run(1_000)
    (alice, bob, carol) = (world.devices[0], world.devices[1], world.devices[2])
    prepare(world.devices)
    alice.start(["bob", "carol"])
    world.run(1_000)
    call = try #require(world.calls.control.calls.keys.first)
    bob.accept(call)
    carol.accept(call)
    world.run(5_000)
    try #require(world.hasConverged(call))
    try #require(world.joined(call).count == 3)
  }

  var all: [SimDevice] { [alice, bob, carol] }

  /// An honest server's announcement of the next epoch, or of the given list.
  func announcement(
    _ list: [ListEntry]? = nil, mode: RotationMode = .fresh, epoch: UInt32? = nil, previous: [UInt8]? = nil,
    leader: ParticipantNumber = 1, for device: SimDevice
  ) throws -> Rotate {
    let keys = try #require(device.stay?.keys)
    let known = try #require(keys.epochs[keys.newest])
    let list = list ?? known.list.entries
    let epoch = epoch ?? keys.newest + 1
    let previous = previous ?? known.listHash
    let hash = EpochList.hash(epoch, of: call, previous: previous, rosterHash: EpochList.rosterHash(list))
    return Rotate(
      epoch: epoch, mode: mode, leader: leader, previous: Base64Bytes(previous), listHash: Base64Bytes(hash), list: list
    )
  }

  /// The entries of the current list, as known to a device.
  func entries(of device: SimDevice) throws -> [ListEntry] { try #require(device.stay).keys.listed }

  func tell(_ device: SimDevice, _ input: KeyInput) throws { device.feed(input, to: try #require(device.stay)) }

  /// The person at the device has looked at the cause of the stop, and sends anyway.
  func sendAnyway(_ device: SimDevice) throws {
    let shown = try #require(device.stay).silence.flatMap { cause -> [ListedDevice] in
      switch cause {
      case .strangers(let devices), .uninvited(let devices), .departed(let devices), .revoked(let devices),
        .changedKeys(let devices):
        devices
      default: []
      }
    }
    try tell(device, .sendAnyway(shown))
  }

  /// Announces to one device, and returns its refusal.
  @discardableResult
  func announce(_ rotation: Rotate, to device: SimDevice) throws -> [KeyRefusal] {
    let before = device.refusals.count
    try tell(device, .rotate(rotation))
    return Array(device.refusals.dropFirst(before))
  }

  /// Asserts that the device refuses the announcement with this error, and that its state has not changed.
  func expectRefusal(
    _ rotation: Rotate, by device: SimDevice, _ refusal: KeyRefusal, sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let before = try #require(device.stay).keys
    let refused = try announce(rotation, to: device)
    let after = try #require(device.stay).keys
    #expect(refused == [refusal], sourceLocation: sourceLocation)
    #expect(after.newest == before.newest && after.current == before.current, sourceLocation: sourceLocation)
    #expect(after.epochs.numbers == before.epochs.numbers, sourceLocation: sourceLocation)
    #expect(after.switching.sending == before.switching.sending, sourceLocation: sourceLocation)
  }

  /// Asserts that the history is broken for the device: it no longer sends, and rejoins once.
  func expectBrokenHistory(_ device: SimDevice, sourceLocation: SourceLocation = #_sourceLocation) {
    #expect(device.refusals.contains(.brokenHistory), sourceLocation: sourceLocation)
    #expect(
      device.stays.contains { $0.silences.contains(.brokenHistory) },
      sourceLocation: sourceLocation)
  }

  /// Puts a ghost on the lists shown to the devices for which `shown` is true, from the next epoch on. Carol leaves, so
  /// that a fresh epoch follows.
  func haunt(
    with other: Ghost? = nil, _ shown: @escaping (Device) -> Bool = { _ in true }, mode: RotationMode? = .fresh
  ) {
    let ghost = other ?? Ghost(world, call: call)
    let forger = Forger(world, call) { list, device in shown(device) ? ghost.haunt(list) : list }
    forger.mode = mode
    forger.deliver = [ghost.delivered]
    forger.listener = { rotation, device in
      guard shown(device) else { return }
      var whole = rotation
      whole.deliver = nil
      ghost.feed(.rotate(whole))
    }
    ghost.intercept()
    (self.ghost, self.forger) = (ghost, forger)
    carol.leave()
  }

  /// Whether the person at the device was told that something is wrong.
  func isWarned(_ device: SimDevice) -> Bool {
    let stays = device.stays
    let isConfirmed = !stays.contains { if case .notConfirmed = $0.confirmation { true } else { false } }
    return !device.refusals.isEmpty || device.letInByService || !device.warnings.isEmpty || !device.aborted.isEmpty
      || !isConfirmed
      || stays.contains { !$0.silences.subtracting([.noKey, .alone]).isEmpty }
  }
}
