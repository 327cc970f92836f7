package import MediaModel

package enum KeyUse: String, Codable, Sendable, CaseIterable { case wrap, sign }

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

/// A wrap key made for one join, signed by the device's sign key (protocol section 5, "Join"). Generation 0 is on the list; later ones refresh it.
package struct JoinKey: Codable, Sendable, Hashable {
  package static let version = 2

  package var alg: String
  package var publicKey: Base64Bytes
  package var generation: UInt32
  /// When the device made it, by the device's clock.
  package var at: Timestamp
  package var signature: Base64Bytes

  package init(
    alg: String, publicKey: Base64Bytes, generation: UInt32 = 0, at: Timestamp, signature: Base64Bytes
  ) {
    self.alg = alg
    self.publicKey = publicKey
    self.generation = generation
    self.at = at
    self.signature = signature
  }

  private enum CodingKeys: String, CodingKey { case v, alg, publicKey, generation, at, signature }

  /// Refuses another version, and invalid numbers, as a fault of the key as a whole.
  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    guard (try? container.decode(Int.self, forKey: .v)) == Self.version,
      let generation = try? container.decode(UInt32.self, forKey: .generation),
      let at = try? container.decode(Timestamp.self, forKey: .at)
    else {
      throw DecodingError.dataCorrupted(
        DecodingError.Context(
          codingPath: decoder.codingPath, debugDescription: "a joinKey has \"v\":2, a generation and a time `at`"))
    }
    alg = try container.decode(String.self, forKey: .alg)
    publicKey = try container.decode(Base64Bytes.self, forKey: .publicKey)
    self.generation = generation
    self.at = at
    signature = try container.decode(Base64Bytes.self, forKey: .signature)
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(Self.version, forKey: .v)
    try container.encode(alg, forKey: .alg)
    try container.encode(publicKey, forKey: .publicKey)
    try container.encode(generation, forKey: .generation)
    try container.encode(at, forKey: .at)
    try container.encode(signature, forKey: .signature)
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
  /// Vouchers by other devices of the same user; at most 8.
  package var vouches: [Vouch]

  package init(
    user: UserID, device: DeviceID, name: String?, keys: [DeviceKey], fingerprint: Base64Bytes, registeredAt: Timestamp,
    vouches: [Vouch] = []
  ) {
    self.user = user
    self.device = device
    self.name = name
    self.keys = keys
    self.fingerprint = fingerprint
    self.registeredAt = registeredAt
    self.vouches = vouches
  }
}

/// An entry of an epoch's list; `keys` and `refresh` only in `deliver` and `keys.request`.
package struct ListEntry: Codable, Sendable, Hashable {
  package var user: UserID
  package var device: DeviceID
  /// 0 for a device that has a ring envelope but has not joined.
  package var participant: ParticipantNumber
  package var joinId: Base64Bytes?
  package var joinKey: JoinKey?
  package var fingerprint: Base64Bytes
  package var keys: [DeviceKey]?
  /// The newest join key of this stay, of generation 1 or later: envelopes are sealed to it.
  package var refresh: JoinKey?

  package init(
    user: UserID, device: DeviceID, participant: ParticipantNumber, joinId: Base64Bytes?, joinKey: JoinKey?,
    fingerprint: Base64Bytes, keys: [DeviceKey]? = nil, refresh: JoinKey? = nil
  ) {
    self.user = user
    self.device = device
    self.participant = participant
    self.joinId = joinId
    self.joinKey = joinKey
    self.fingerprint = fingerprint
    self.keys = keys
    self.refresh = refresh
  }

  package var address: Device { Device(user: user, device: device) }
}

package enum RotationMode: String, Codable, Sendable, CaseIterable { case ratchet, fresh }

/// A media key, encrypted for one device; opaque to the server. `encryptedAESKey` is a second name of `ciphertext`, accepted and
/// sent.
package struct Envelope: Codable, Sendable, Hashable {
  package var epoch: UInt32
  package var to: Device
  /// Set by the server; a client's is ignored.
  package var from: Device?
  /// SHA-256 of the public key (SPKI) to which it is sealed.
  package var key: Base64Bytes
  package var alg: String
  package var ciphertext: Base64Bytes
  package var sigAlg: String?
  package var signature: Base64Bytes?

  package init(
    epoch: UInt32, to: Device, from: Device?, key: Base64Bytes, alg: String, ciphertext: Base64Bytes, sigAlg: String?,
    signature: Base64Bytes?
  ) {
    self.epoch = epoch
    self.to = to
    self.from = from
    self.key = key
    self.alg = alg
    self.ciphertext = ciphertext
    self.sigAlg = sigAlg
    self.signature = signature
  }

  private enum CodingKeys: String, CodingKey {
    case epoch, to, from, key, alg, ciphertext, encryptedAESKey, sigAlg, signature
  }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    epoch = try container.decode(UInt32.self, forKey: .epoch)
    to = try container.decode(Device.self, forKey: .to)
    from = try container.decodeIfPresent(Device.self, forKey: .from)
    key = try container.decode(Base64Bytes.self, forKey: .key)
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
    try container.encode(key, forKey: .key)
    try container.encode(alg, forKey: .alg)
    try container.encode(ciphertext, forKey: .ciphertext)
    try container.encode(ciphertext, forKey: .encryptedAESKey)
    try container.encodeIfPresent(sigAlg, forKey: .sigAlg)
    try container.encodeIfPresent(signature, forKey: .signature)
  }
}
