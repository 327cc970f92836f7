package import Contract
import MediaModel

/// Public keys of devices, stored under the hash over them, so that lying about them does not help.
package struct KnownKeys: Sendable {
  private var keys: [[UInt8]: DeviceKeys] = [:]

  package init() {}

  subscript(fingerprint: Base64Bytes) -> DeviceKeys? { keys[fingerprint.bytes] }

  /// All that a device was ever listed with.
  func keys(of device: Device) -> [DeviceKeys] { keys.values.filter { $0.address == device } }

  func contains(_ fingerprint: Base64Bytes) -> Bool { keys.keys.contains(fingerprint.bytes) }

  mutating func learn(_ others: KnownKeys) { keys.merge(others.keys) { known, _ in known } }

  mutating func learn(_ device: DeviceKeys) { keys[device.fingerprint] = device }

  /// Takes over the contents of `devices/list`, and returns the keys of those entries that have one of each use.
  @discardableResult
  package mutating func learn(_ entries: [DeviceEntry]) -> [DeviceKeys] {
    entries.compactMap { entry in
      if let known = self[entry.fingerprint], known.are(entry) { return known }
      guard let keys = DeviceKeys(entry) else { return nil }
      learn(keys)
      return keys
    }
  }

  /// Takes over the keys of a list's entry, if they match it.
  mutating func learn(_ entry: ListEntry) {
    guard !contains(entry.fingerprint) else { return }
    if let keys = entry.keys.flatMap({ DeviceKeys(entry.address, keys: $0) }),
      keys.fingerprint == entry.fingerprint.bytes
    {
      learn(keys)
    }
  }
}
