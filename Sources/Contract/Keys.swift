package import MediaModel

package enum KeyUse: String, Codable, Sendable { case wrap, sign }

/// A device's public key, SPKI.
package struct DeviceKey: Codable, Sendable, Hashable {
  package var use: KeyUse
  package var alg: String
  package var publicKey: Base64Bytes

  package init(use: KeyUse, alg: String, publicKey: Base64Bytes) {
    self.use = use
    self.alg = alg
    self.publicKey = publicKey
  }
}

/// A wrap key made for one join, signed by the device's sign key (protocol section 5, "Join").
package struct JoinKey: Codable, Sendable, Hashable {
  package var alg: String
  package var publicKey: Base64Bytes
  package var signature: Base64Bytes

  package init(alg: String, publicKey: Base64Bytes, signature: Base64Bytes) {
    self.alg = alg
    self.publicKey = publicKey
    self.signature = signature
  }
}

/// A registered device, as `devices/list` shows it.
package struct DeviceEntry: Codable, Sendable, Hashable {
  package var user: UserID
  package var device: DeviceID
  package var name: String?
  package var keys: [DeviceKey]
  package var fingerprint: Base64Bytes
  package var registeredAt: Timestamp

  package init(
    user: UserID, device: DeviceID, name: String?, keys: [DeviceKey], fingerprint: Base64Bytes, registeredAt: Timestamp
  ) {
    self.user = user
    self.device = device
    self.name = name
    self.keys = keys
    self.fingerprint = fingerprint
    self.registeredAt = registeredAt
  }
}

/// An entry of an epoch's list; `keys` only in `deliver` and `keys.request`.
package struct ListEntry: Codable, Sendable, Hashable {
  package var user: UserID
  package var device: DeviceID
  /// 0 for a device that has a ring envelope but has not joined.
  package var participant: ParticipantNumber
  package var joinId: Base64Bytes?
  package var joinKey: JoinKey?
  package var fingerprint: Base64Bytes
  package var keys: [DeviceKey]?

  package init(
    user: UserID, device: DeviceID, participant: ParticipantNumber, joinId: Base64Bytes?, joinKey: JoinKey?,
    fingerprint: Base64Bytes, keys: [DeviceKey]? = nil
  ) {
    self.user = user
    self.device = device
    self.participant = participant
    self.joinId = joinId
    self.joinKey = joinKey
    self.fingerprint = fingerprint
    self.keys = keys
  }

  package var address: Device { Device(user: user, device: device) }
}

package enum RotationMode: String, Codable, Sendable { case ratchet, fresh }

/// A media key, encrypted for one device; opaque to the server. `encryptedAESKey` is a second name of `ciphertext`, taken and sent.
package struct Envelope: Codable, Sendable, Hashable {
  package var epoch: UInt32
  package var to: Device
  /// Set by the server; a client's is ignored.
  package var from: Device?
  package var alg: String
  package var ciphertext: Base64Bytes
  package var sigAlg: String?
  package var signature: Base64Bytes?

  package init(
    epoch: UInt32, to: Device, from: Device?, alg: String, ciphertext: Base64Bytes, sigAlg: String?,
    signature: Base64Bytes?
  ) {
    self.epoch = epoch
    self.to = to
    self.from = from
    self.alg = alg
    self.ciphertext = ciphertext
    self.sigAlg = sigAlg
    self.signature = signature
  }

  private enum CodingKeys: String, CodingKey {
    case epoch, to, from, alg, ciphertext, encryptedAESKey, sigAlg, signature
  }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    epoch = try container.decode(UInt32.self, forKey: .epoch)
    to = try container.decode(Device.self, forKey: .to)
    from = try container.decodeIfPresent(Device.self, forKey: .from)
    alg = try container.decode(String.self, forKey: .alg)
    ciphertext =
      try container.decodeIfPresent(Base64Bytes.self, forKey: .ciphertext)
      ?? container.decodeIfPresent(Base64Bytes.self, forKey: .encryptedAESKey)
      ?? container.decode(Base64Bytes.self, forKey: .ciphertext)
    sigAlg = try container.decodeIfPresent(String.self, forKey: .sigAlg)
    signature = try container.decodeIfPresent(Base64Bytes.self, forKey: .signature)
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(epoch, forKey: .epoch)
    try container.encode(to, forKey: .to)
    try container.encodeIfPresent(from, forKey: .from)
    try container.encode(alg, forKey: .alg)
    try container.encode(ciphertext, forKey: .ciphertext)
    try container.encode(ciphertext, forKey: .encryptedAESKey)
    try container.encodeIfPresent(sigAlg, forKey: .sigAlg)
    try container.encodeIfPresent(signature, forKey: .signature)
  }
}
