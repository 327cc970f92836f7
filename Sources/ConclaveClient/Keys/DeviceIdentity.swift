package import Contract
import Crypto
import Foundation
package import MediaModel

/// A device's long-lived key pairs: one to which others encrypt, and one with which it signs.
///
/// Keep the private keys in the system's key store: anyone who has them can pose as the device.
public struct DeviceIdentity: Sendable {
  package let address: Device
  let wrapKey: P256.KeyAgreement.PrivateKey
  let signKey: P256.Signing.PrivateKey
  let publicKeys: DeviceKeys

  /// Makes new keys for `device` of `user`; nil if one of the two is not an id of the protocol (1 to 128 bytes of `A-Z a-z 0-9 . _ ~ @ + -`).
  public init?(user: String, device: String) {
    self.init(
      user: user, device: device, wrapKey: P256.KeyAgreement.PrivateKey(), signKey: P256.Signing.PrivateKey())
  }

  /// Restores keys that were stored as `wrapKeyBytes` and `signKeyBytes`; nil if an id or a key is invalid.
  public init?(user: String, device: String, wrapKeyBytes: [UInt8], signKeyBytes: [UInt8]) {
    guard let wrapKey = try? P256.KeyAgreement.PrivateKey(rawRepresentation: wrapKeyBytes),
      let signKey = try? P256.Signing.PrivateKey(rawRepresentation: signKeyBytes)
    else { return nil }
    self.init(user: user, device: device, wrapKey: wrapKey, signKey: signKey)
  }

  private init?(user: String, device: String, wrapKey: P256.KeyAgreement.PrivateKey, signKey: P256.Signing.PrivateKey) {
    guard let user = UserID(user), let device = DeviceID(device) else { return nil }
    address = Device(user: user, device: device)
    self.wrapKey = wrapKey
    self.signKey = signKey
    let keys = [
      DeviceKey(
        use: .wrap, alg: WrapAlgorithm.hpke.rawValue,
        publicKey: Base64Bytes(Array(wrapKey.publicKey.derRepresentation))),
      DeviceKey(
        use: .sign, alg: SignAlgorithm.es256.rawValue,
        publicKey: Base64Bytes(Array(signKey.publicKey.derRepresentation))),
    ]
    guard let publicKeys = DeviceKeys(address, keys: keys) else { return nil }
    self.publicKeys = publicKeys
  }

  /// The private key to which others encrypt, 32 bytes. Secret.
  public var wrapKeyBytes: [UInt8] { Array(wrapKey.rawRepresentation) }

  /// The private key with which the device signs, 32 bytes. Secret.
  public var signKeyBytes: [UInt8] { Array(signKey.rawRepresentation) }

  /// The user whose device it is.
  public var user: String { address.user.text }

  /// The device's id.
  public var device: String { address.device.text }

  /// The hash over user, device and public keys by which other devices know this one, 32 bytes.
  public var fingerprint: [UInt8] { publicKeys.fingerprint }

  /// The public keys, as expected by `devices/register`.
  package var registration: [DeviceKey] { [publicKeys.wrap, publicKeys.sign] }

  /// An ES256 signature, r ‖ s.
  func sign(_ message: [UInt8]) -> [UInt8] {
    // Signing fails only if BoringSSL is out of memory.
    Array(try! signKey.signature(for: SHA256.hash(data: message)).rawRepresentation)
  }
}

extension DeviceIdentity: CustomStringConvertible {
  /// Contains nothing of the keys.
  public var description: String { "device identity" }
}
