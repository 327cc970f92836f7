import CallMessages
import Contract
import Crypto
import MediaModel

@testable import ConclaveClient

/// The rules that hold for each honest device, whatever a server says, in whatever order and however late. `Audit`
/// checks nonces and opened frames.
final class Oracles {
  /// The ms of signaling within which a listed device that is not in the call causes a warning, and within which it
  /// stops the sending.
  static let warningTime: Int64 = 9_000
  static let stopTime: Int64 = 26_000

  private unowned let world: World
  /// The number of envelopes whose secret was compared with their signer's.
  private(set) var compared = 0
  /// The number of listed devices that were found absent.
  private(set) var wrongHearings = 0
  /// The ms of signaling for which each device was listed and absent. The time decreases while it is listed and
  /// present.
  private var absences: [Absence: Int64] = [:]
  /// The secret in a stay's signed envelopes, by epoch, and whether the server accepted them.
  private var signed: [Signed: SymmetricKey] = [:]
  private var taken: Set<Signed> = []
  /// The epochs of each stay whose list had a device that nobody invited.
  private(set) var haunted: Set<Signed> = []

  private struct Absence: Hashable {
    var viewer: Device
    var device: Device
  }

  struct Signed: Hashable {
    var joinId: Base64Bytes
    var epoch: UInt32
  }

  init(_ world: World) { self.world = world }

  // MARK: secrets

  /// Every envelope that an honest device signs has the secret that it uses for that epoch.
  func posted(_ body: HandOutKeys, by stay: Stay) {
    let keys = stay.keys
    guard !stay.isOver, keys.newest == body.epoch else {
      return world.audit.fail(.sealsForWhatIsOver, "epoch \(body.epoch), newest \(keys.newest)")
    }
    let proposed = keys.handout.proposal.flatMap { $0.epoch == body.epoch ? $0.secret : nil }
    guard let secret = keys.epochs[body.epoch]?.secret ?? proposed else {
      return world.audit.fail(.sealsForWhatIsOver, "envelopes of epoch \(body.epoch), whose secret it does not have")
    }
    let key = Signed(joinId: stay.joinId, epoch: body.epoch)
    // Its own secret that was not accepted, and then the accepted one; no other.
    if let before = signed[key], before != secret, taken.contains(key) || keys.epochs[body.epoch]?.secret == nil {
      world.audit.fail(.sealsAnotherSecret, "two for an epoch")
    }
    signed[key] = secret
    for envelope in body.envelopes {
      let recipients = world.device(envelope.to)?.stays ?? []
      let opener = recipients.compactMap { $0.keys.join.opener(envelope.key.bytes) }.first
      guard let opener, let opened = try? envelope.opened(with: opener.privateKey) else { continue }
      compared += 1
      if opened != secret { world.audit.fail(.sealsAnotherSecret, "epoch \(body.epoch)") }
    }
  }

  func taken(_ epoch: UInt32, of stay: Stay) { taken.insert(Signed(joinId: stay.joinId, epoch: epoch)) }

  // MARK: hearing

  /// After each input of a stay.
  func look(at stay: Stay) {
    guard !stay.isOver else { return }
    for number in stay.keys.epochs.numbers {
      guard let epoch = stay.keys.epochs[number] else { continue }
      let key = Signed(joinId: stay.joinId, epoch: number)
      if let own = signed[key], taken.contains(key), let used = epoch.secret, used != own {
        world.audit.fail(.sealsAnotherSecret, "it uses another one in epoch \(number) than it handed out")
      }
      if epoch.list.entries.contains(where: { $0.device.text == "ghost" }) { haunted.insert(key) }
    }
    let members = stay.session.state.members
    let shown = Dictionary(
      stay.keys.devices(members).map { (Device(user: UserID($0.user)!, device: DeviceID($0.device)!), $0) }
    ) { first, _ in first }
    for entry in stay.keys.listed {
      guard let tile = shown[entry.address] else {
        world.audit.fail(.ghostIsNotSeen, "a listed device is not shown")
        continue
      }
      if tile.standing == .present, !isThere(entry, members) {
        world.audit.fail(.ghostIsNotSeen, "a device that is not in the call is shown as present")
      }
    }
  }

  /// Whether the server says that a listed device is in the call, exactly as it is listed.
  private func isThere(_ entry: ListEntry, _ members: [MemberState]) -> Bool {
    members.contains { member in
      member.user == entry.user && member.state != .disconnected
        && member.participants.contains {
          $0.participant == entry.participant && $0.device == entry.device && $0.joinId == entry.joinId
        }
    }
  }

  /// Every device that may wrongly hear causes a stop or a warning. `milliseconds` have passed since the last check.
  func elapse(_ milliseconds: Int64) {
    for device in world.devices {
      guard let stay = device.stay, stay.keys.watch.isConnected, !stay.recovery.isRejoining else { continue }
      let members = stay.session.state.members
      for entry in stay.keys.listed where entry.address != device.address && entry.participant > 0 {
        let absence = Absence(viewer: device.address, device: entry.address)
        let isAbsent = !isThere(entry, members)
        let time = (absences[absence] ?? 0) + (isAbsent ? milliseconds : -milliseconds)
        absences[absence] = min(max(0, time), Self.stopTime + milliseconds)
        guard isAbsent else { continue }
        wrongHearings += 1
        check(absence, absences[absence] ?? 0, device, stay)
      }
    }
  }

  private func check(_ absence: Absence, _ time: Int64, _ device: SimDevice, _ stay: Stay) {
    let name = "\(absence.device.user.text)/\(absence.device.device.text)"
    let isSaid = device.warnings.contains {
      [.notInCall, .mayStillHear].contains($0.problem) && $0.user == absence.device.user.text
        && $0.device == absence.device.device.text
    }
    if time > Self.warningTime, !isSaid {
      world.audit.fail(.ghostIsNotSeen, "\(name) may have heard for \(time) ms, and nobody was told")
    }
    if time > Self.stopTime, stay.cipher.sendingEpoch != nil {
      world.audit.fail(.ghostHears, "\(name) has heard for \(time) ms, and nothing stopped")
    }
  }
}
