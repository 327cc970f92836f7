import Contract
import Crypto
import MediaModel
import Octets

/// A device's public keys. They belong to the device if `fingerprint` is the one by which it is known, because that is a hash
/// over them.
package struct DeviceKeys: Sendable {
  let address: Device
  let wrap: DeviceKey
  let sign: DeviceKey
  let fingerprint: [UInt8]

  /// nil unless there is exactly one key of each use.
  init?(_ address: Device, keys: [DeviceKey]) {
    let wraps = keys.filter { $0.use == .wrap }
    let signs = keys.filter { $0.use == .sign }
    guard wraps.count == 1, signs.count == 1 else { return nil }
    self.address = address
    wrap = wraps[0]
    sign = signs[0]
    fingerprint =
      Transcript.device(
        user: address.user.text, device: address.device.text, wrap: (wrap.alg, wrap.publicKey.bytes),
        sign: (sign.alg, sign.publicKey.bytes)
      ).sha256
  }

  /// nil unless the entry has exactly one key of each use.
  init?(_ entry: DeviceEntry) { self.init(Device(user: entry.user, device: entry.device), keys: entry.keys) }

  /// Whether the entry lists exactly these keys for this device.
  func are(_ entry: DeviceEntry) -> Bool {
    address.user == entry.user && address.device == entry.device && entry.keys.count == 2 && entry.keys.contains(wrap)
      && entry.keys.contains(sign)
  }

  /// Whether the device signed `message`; false for an algorithm that this client does not know.
  func signed(_ message: [UInt8], _ signature: [UInt8]) -> Bool {
    SignAlgorithm(rawValue: sign.alg)?.verifies(signature, of: message, by: sign.publicKey.bytes) ?? false
  }

  /// Whether `key` is a join key that the device made for its stay `joinId` in the call.
  func signed(_ key: JoinKey, call: CallID, joinId: [UInt8]) -> Bool {
    signed(
      JoinCredentials.transcript(key, call: call, fingerprint: fingerprint, joinId: joinId), key.signature.bytes)
  }
}
