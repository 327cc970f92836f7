package import MediaModel

// A user's devices vouch for each other and revoke each other (protocol section 5, "Vouching"). The server stores what they signed and derives nothing from
// it.

/// The signature of one device of a user that another device belongs to the same user.
package struct Vouch: Codable, Sendable, Hashable {
  package var device: DeviceID
  package var fingerprint: Base64Bytes
  /// The signer, and its fingerprint when it signed.
  package var by: DeviceID
  package var byFingerprint: Base64Bytes
  package var at: Timestamp
  package var sigAlg: String
  package var signature: Base64Bytes

  package init(
    device: DeviceID, fingerprint: Base64Bytes, by: DeviceID, byFingerprint: Base64Bytes, at: Timestamp,
    sigAlg: String, signature: Base64Bytes
  ) {
    self.device = device
    self.fingerprint = fingerprint
    self.by = by
    self.byFingerprint = byFingerprint
    self.at = at
    self.sigAlg = sigAlg
    self.signature = signature
  }
}

/// The signature of one device of a user that another device must no longer be trusted. It outlives the device that it names.
package struct Revoke: Codable, Sendable, Hashable {
  package var user: UserID
  package var device: DeviceID
  package var fingerprint: Base64Bytes
  /// The signer, and its fingerprint when it signed.
  package var by: DeviceID
  package var byFingerprint: Base64Bytes
  package var at: Timestamp
  package var sigAlg: String
  package var signature: Base64Bytes

  package init(
    user: UserID, device: DeviceID, fingerprint: Base64Bytes, by: DeviceID, byFingerprint: Base64Bytes, at: Timestamp,
    sigAlg: String, signature: Base64Bytes
  ) {
    self.user = user
    self.device = device
    self.fingerprint = fingerprint
    self.by = by
    self.byFingerprint = byFingerprint
    self.at = at
    self.sigAlg = sigAlg
    self.signature = signature
  }
}

/// The body of `devices/vouch` and `devices/revoke`: the sending device's statement about `device`.
package struct DeviceStatement: Codable, Sendable {
  package var device: DeviceID
  package var fingerprint: Base64Bytes
  package var at: Timestamp
  package var sigAlg: String
  package var signature: Base64Bytes

  package init(
    device: DeviceID, fingerprint: Base64Bytes, at: Timestamp, sigAlg: String, signature: Base64Bytes
  ) {
    self.device = device
    self.fingerprint = fingerprint
    self.at = at
    self.sigAlg = sigAlg
    self.signature = signature
  }
}

/// A pairing step, for one other device of the user.
package struct PairDevice: Codable, Sendable {
  package var to: DeviceID
  package var body: Base64Bytes

  package init(to: DeviceID, body: Base64Bytes) {
    self.to = to
    self.body = body
  }
}

/// The body of `device.pair`: a pairing step from another device of the same user.
package struct PairingMessage: Codable, Sendable, Hashable {
  package var from: DeviceID
  package var body: Base64Bytes

  package init(from: DeviceID, body: Base64Bytes) {
    self.from = from
    self.body = body
  }
}
