import CallMessages
import Contract
import Crypto
import MediaModel
import Seeded
import Simulation

@testable import Calls
@testable import CallMachine
@testable import ConclaveClient

/// A server that shows some devices other lists than the true one, and keeps its lies in a separate chain, so that each
/// matches the one before.
final class Forger {
  /// Makes the list that a device should see from the true one.
  typealias Change = ([ListEntry], Device) -> [ListEntry]

  private unowned let world: World
  private let call: CallID
  private let change: Change
  /// The hash of each list as told to a device.
  private var told: [Device: [UInt32: [UInt8]]] = [:]
  /// Changes the mode of what it announces.
  var mode: RotationMode?
  /// Entries to which the leader is told to deliver in addition to the true ones.
  var deliver: [ListEntry] = []
  /// Gets each announcement as it is told.
  var listener: ((Rotate, Device) -> Void)?

  init(_ world: World, _ call: CallID, _ change: @escaping Change) {
    self.world = world
    self.call = call
    self.change = change
    world.lie = { [unowned self] message, device in forge(message, for: device) }
    world.lieInReply = { [unowned self] reply, device in forge(reply, for: device) }
  }

  /// `keys/list` agrees with the announcements.
  private func forge(_ reply: CallMessages.Reply, for device: Device) -> CallMessages.Reply {
    guard case .ok(.keyList(var list)) = reply, let hash = told[device]?[list.epoch] else {
      return reply
    }
    list.previous = Base64Bytes(told[device]?[list.epoch - 1] ?? list.previous.bytes)
    list.listHash = Base64Bytes(hash)
    list.list = change(list.list, device)
    return .ok(.keyList(list))
  }

  private func forge(_ message: EventMessage, for device: Device) -> EventMessage? {
    guard case .rotate(var rotation) = message.body, message.call == call,
      let honest = world.calls.control.calls[call]?.epochs.newest.list
    else { return message }
    let list = change(honest, device)
    guard list != honest || told[device] != nil else { return message }
    rotation.list = list
    rotation.added = nil
    rotation.removed = nil
    rotation.mode = mode ?? rotation.mode
    let previous = told[device]?[rotation.epoch - 1] ?? rotation.previous.bytes
    let hash = EpochList.hash(
      rotation.epoch, of: call, previous: previous, rosterHash: EpochList.rosterHash(list))
    told[device, default: [:]][rotation.epoch] = hash
    rotation.previous = Base64Bytes(previous)
    rotation.listHash = Base64Bytes(hash)
    if rotation.deliver != nil { rotation.deliver? += deliver }
    listener?(rotation, device)
    var message = message
    message.body = .rotate(rotation)
    return message
  }
}

/// A device that the server smuggles into lists: nobody invited it, and it has its own keys.
final class Ghost {
  let identity: DeviceIdentity
  let entry: ListEntry
  let cipher = FrameCipher()
  var keys: KeyAgreement
  var opened: Set<ParticipantNumber> = []
  private var random: SeededGenerator
  private unowned let world: World

  /// `listedAs`: the user id that lists have instead of its own.
  init(
    _ world: World, call: CallID, user: String = "bob", listedAs: String? = nil, participant: ParticipantNumber = 999,
    identity: DeviceIdentity? = nil
  ) {
    self.world = world
    let identity = identity ?? DeviceIdentity(user: user, device: "ghost")!
    self.identity = identity
    // Each number is another stay.
    random = SeededGenerator(seed: UInt64(participant))
    let join = JoinCredentials(identity, call: call, at: world.timestamp, using: &random)
    var entry = ListEntry(
      user: UserID(unchecked: listedAs ?? user), device: identity.address.device, participant: participant,
      joinId: join.joinId,
      joinKey: join.joinKey, fingerprint: Base64Bytes(identity.fingerprint))
    keys = KeyAgreement(identity: identity, join: join, now: world.instant)
    keys.own.participant = participant
    entry.keys = nil
    self.entry = entry
  }

  /// The entry as a leader gets it.
  var delivered: ListEntry {
    var entry = entry
    entry.keys = identity.registration
    return entry
  }

  /// The list with its entry, in order.
  func haunt(_ list: [ListEntry]) -> [ListEntry] { (list + [entry]).sorted { $0.address < $1.address } }

  func feed(_ input: KeyInput) {
    for effect in keys.handle(input, now: world.instant, using: &random) {
      switch effect {
      case .install(let keys): cipher.install(keys)
      case .request(.people(.listDevices)):
        feed(.directory(Devices(devices: world.devices.map { Self.entry(of: $0.identity) })))
      default: break
      }
    }
  }

  static func entry(of identity: DeviceIdentity) -> DeviceEntry {
    DeviceEntry(
      user: identity.address.user, device: identity.address.device, name: nil, keys: identity.registration,
      fingerprint: Base64Bytes(identity.fingerprint), registeredAt: Timestamp(milliseconds: 0))
  }

  /// Tries to open all recent frames.
  func listen() {
    for frame in world.audit.recent where (try? cipher.openWhereItBelongs(frame.bytes)) != nil {
      opened.insert(frame.participant)
    }
  }

  /// It gets the envelopes for it, and the server's own rules do not see them.
  func intercept() {
    world.alter = { [unowned self] request, sender in
      guard case .calls(.inCall(let id, .keys(var handedOut))) = request else { return request }
      for var envelope in handedOut.envelopes where envelope.to == entry.address {
        envelope.from = sender
        feed(.envelope(envelope, delivery: 1))
      }
      handedOut.envelopes.removeAll { $0.to == entry.address }
      return .inCall(id, .keys(handedOut))
    }
  }
}
