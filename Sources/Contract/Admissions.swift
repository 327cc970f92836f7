package import MediaModel

// The words by which people join a call (protocol section 5.13).

/// A word: a device lets a user in, makes a link, or joins by one.
package struct Admission: Codable, Sendable, Hashable {
  /// The user who is let in; nil for the word that makes a link.
  package var user: UserID?
  /// The link's public key, 32 bytes; nil if a member lets a user in.
  package var link: Base64Bytes?
  /// The signing device's fingerprint. A user who joins by a link names its own, and signs with the link's key.
  package var fingerprint: Base64Bytes
  /// nil for a user who joins by a link: that is always Ed25519.
  package var sigAlg: String?
  package var signature: Base64Bytes
  /// Only in the word that makes a link: true if a member's device has to admit each guest who comes by it.
  package var waits: Bool?
  /// Only in the word of a guest who comes by a link whose guests wait.
  package var admittedBy: Countersignature?

  package init(
    user: UserID? = nil, link: Base64Bytes? = nil, fingerprint: Base64Bytes, sigAlg: String? = nil,
    signature: Base64Bytes, waits: Bool? = nil, admittedBy: Countersignature? = nil
  ) {
    self.user = user
    self.link = link
    self.fingerprint = fingerprint
    self.sigAlg = sigAlg
    self.signature = signature
    self.waits = waits
    self.admittedBy = admittedBy
  }

  /// The device that signed it with its own key; nil if only a link's key signed it.
  package var signer: Base64Bytes? { sigAlg == nil ? admittedBy?.fingerprint : fingerprint }
}

/// The signature by which a member's device admits a guest.
package struct Countersignature: Codable, Sendable, Hashable {
  /// The signing device's.
  package var fingerprint: Base64Bytes
  package var sigAlg: String
  package var signature: Base64Bytes

  package init(fingerprint: Base64Bytes, sigAlg: String, signature: Base64Bytes) {
    self.fingerprint = fingerprint
    self.sigAlg = sigAlg
    self.signature = signature
  }
}

/// A device that signed words and is not on the accompanying list.
package struct Signer: Codable, Sendable, Hashable {
  package var user: UserID
  package var device: DeviceID
  package var fingerprint: Base64Bytes
  package var keys: [DeviceKey]

  package init(user: UserID, device: DeviceID, fingerprint: Base64Bytes, keys: [DeviceKey]) {
    self.user = user
    self.device = device
    self.fingerprint = fingerprint
    self.keys = keys
  }

  package init(_ entry: DeviceEntry) {
    self.init(user: entry.user, device: entry.device, fingerprint: entry.fingerprint, keys: entry.keys)
  }
}
