import Contract
import Crypto
import MediaModel

@testable import ConclaveClient

/// One stay of a device in a call: its keys and its media. It is kept with all its keys when it is over, since a device
/// that left keeps listening.
final class Stay {
  let call: CallID
  let device: SimDevice
  let joinId: Base64Bytes
  var keys: KeyAgreement
  private(set) var cipher: FrameCipher
  /// All keys that it ever got.
  private(set) var installed: [EpochKeys] = []
  var session: CallSession
  var recovery = Recovery()
  var isOver = false
  /// Whether it has rejoined and the state that begins this stay has not arrived: events until then belong to the
  /// former one.
  var isBeginning = false
  /// Whether its path died with the server.
  var isCut = false
  /// The earlier stays with the same cipher: a participant that came back still opens frames that were in flight.
  let joins: Set<Base64Bytes>
  /// Whether another stay continues with its cipher.
  private(set) var isContinued = false
  /// The keys with which this participant seals, by epoch, as passed from the agreement to the cipher.
  private var sendingKeys: [UInt32: SendingKey] = [:]
  var silence: [SilenceCause] = []
  var confirmation: ConfirmationState?
  /// All reasons for which it ever stopped sending.
  var silences: Set<SilenceCause> = []
  var hasBegunAnew = false
  private var waiting: [ParticipantNumber: WaitingFrames<Sent>] = [:]
  /// When a frame of each other device was last opened, and the longest time without one since the reset.
  private var lastOpened: [Device: Int64] = [:]
  private(set) var longestGap: [Device: Int64] = [:]
  private(set) var heard: [Device: Int] = [:]

  init(_ joined: Joined, keys: KeyAgreement, device: SimDevice, continuing old: Stay? = nil) {
    call = joined.call.id
    joinId = keys.join.joinId
    joins = (old?.joins ?? []).union([keys.join.joinId])
    cipher = old?.cipher ?? FrameCipher()
    lastOpened = old?.lastOpened ?? [:]
    old?.isContinued = true
    hasBegunAnew = old?.hasBegunAnew ?? false
    session = CallSession(joined)
    self.keys = keys
    self.device = device
  }

  var participant: ParticipantNumber { session.participant }

  func install(_ keys: EpochKeys, _ world: World) {
    let isFirst = installed.isEmpty && joins.count == 1
    cipher.install(keys)
    installed.append(keys)
    let now = UInt64(world.now) * 1_000_000
    for sender in waiting.keys.sorted() {
      for frame in waiting[sender]?.take(now: now) ?? [] where !tryToOpen(frame.frame, world.audit) {
        waiting[sender]?.keepAgain(frame)
      }
    }
    // A newcomer must not open frames that were sent before it joined.
    for frame in isFirst ? world.audit.recent : [] where frame.call == call && frame.sender != device.address {
      _ = tryToOpen(frame, world.audit)
    }
  }

  func send(_ key: SendingKey) {
    sendingKeys[key.epoch] = key
    cipher.send(key)
  }

  /// Starts a new cipher with the former one's keys, which a client must never do.
  func startCounting() {
    let epoch = cipher.sendingEpoch
    cipher = FrameCipher()
    for keys in installed { cipher.install(keys) }
    if let key = epoch.flatMap({ sendingKeys[$0] }) { cipher.send(key) }
  }

  func makeFrame(_ audit: Audit) -> Sent? {
    guard !isOver, !isCut, let epoch = cipher.sendingEpoch, let bytes = try? cipher.seal([1, 2, 3, 4], track: 1) else {
      return nil
    }
    audit.sealed(bytes, baseKey: sendingKeys[epoch]?.baseKey)
    return Sent(
      call: call, sender: device.address, participant: participant, epoch: epoch, bytes: bytes, at: device.world.now)
  }

  func open(_ frame: Sent, _ audit: Audit) {
    guard !isContinued else { return }
    if !tryToOpen(frame, audit), !isOver {
      waiting[frame.participant, default: WaitingFrames()].keep(frame, now: UInt64(device.world.now) * 1_000_000)
    }
  }

  /// False if its key has not arrived.
  private func tryToOpen(_ frame: Sent, _ audit: Audit) -> Bool {
    do throws(FrameCipherError) {
      let (_, opened) = try cipher.openWhereItBelongs(frame.bytes)
      audit.opened(frame, by: device.address, joins: joins, as: opened)
      note(frame)
      return true
    } catch {
      return error != .unknownKey
    }
  }

  private func note(_ frame: Sent) {
    let now = device.world.now
    if let last = lastOpened[frame.sender] {
      longestGap[frame.sender] = max(longestGap[frame.sender] ?? 0, now - last)
    }
    lastOpened[frame.sender] = now
    heard[frame.sender, default: 0] += 1
  }

  func resetGaps() {
    longestGap = [:]
    heard = [:]
    lastOpened = lastOpened.mapValues { _ in device.world.now }
  }

  /// The longest time without a frame of `sender`, including the current one.
  func gap(from sender: SimDevice) -> Int64 {
    max(longestGap[sender.address] ?? 0, device.world.now - (lastOpened[sender.address] ?? 0))
  }
}
