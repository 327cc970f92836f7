import CallMessages
import Contract
import MediaModel

/// The revokes by each user's devices. They outlive the devices: removing a stolen device must not make it trusted.
struct Revokes {
  static let capacityOfUser = 64

  private var revokes: [UserID: [Revoke]] = [:]

  subscript(user: UserID) -> [Revoke] {
    get { revokes[user] ?? [] }
    set { revokes[user] = newValue.isEmpty ? nil : newValue }
  }

  var users: [UserID] { revokes.keys.sorted() }

  /// Replaces the same device's revoke of the same device. Above the bound, the oldest revoke of the signer with the most is dropped, so that
  /// a thief's revokes do not displace others.
  mutating func add(_ revoke: Revoke) {
    var list = self[revoke.user]
    list.removeAll {
      $0.device == revoke.device && $0.fingerprint == revoke.fingerprint && $0.by == revoke.by
        && $0.byFingerprint == revoke.byFingerprint
    }
    list.append(revoke)
    if list.count > Self.capacityOfUser {
      var counts: [Base64Bytes: Int] = [:]
      for revoke in list { counts[revoke.byFingerprint, default: 0] += 1 }
      let most = counts.values.max() ?? 0
      if let place = list.firstIndex(where: { counts[$0.byFingerprint] == most }) { list.remove(at: place) }
    }
    self[revoke.user] = list
  }
}
