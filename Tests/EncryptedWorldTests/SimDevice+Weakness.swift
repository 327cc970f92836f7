import Contract

@testable import ConclaveClient

extension SimDevice {
  /// Shares keys in ways in which no honest client does.
  func share(_ keys: EpochKeys, with stay: Stay) {
    let stays = world.devices.flatMap(\.stays).filter { $0.call == stay.call }
    switch world.weakness {
    case .sharesWithThoseWhoLeft: for former in stays where former.isOver { former.install(keys, world) }
    case .sharesThePast:
      guard stay.installed.isEmpty else { return }
      for old in stays.flatMap(\.installed) where old.epoch < keys.epoch { stay.cipher.install(old) }
    default: break
    }
  }
}
