package import Contract
package import MediaModel

/// A lasting link as the server keeps it (protocol section 4, "Lasting links"). Neither its secret nor its name is in it.
package struct StoredLastingLink: Hashable, Sendable, Codable {
  /// The call that runs, and the token of its link.
  package struct Opening: Hashable, Sendable, Codable {
    package var call: CallID
    package var token: String

    package init(call: CallID, token: String) {
      self.call = call
      self.token = token
    }
  }

  package var id: LinkID
  /// The device that made it.
  package var device: Device
  /// The device's fingerprint.
  package var fingerprint: Base64Bytes
  package var madeAt: Timestamp
  package var expiresAt: Timestamp
  package var opening: Opening?

  package init(
    id: LinkID, device: Device, fingerprint: Base64Bytes, madeAt: Timestamp, expiresAt: Timestamp,
    opening: Opening? = nil
  ) {
    self.id = id
    self.device = device
    self.fingerprint = fingerprint
    self.madeAt = madeAt
    self.expiresAt = expiresAt
    self.opening = opening
  }
}

extension LinkID {
  /// Short, so that an operator can tell a user's links apart.
  package var shortName: String { String(text.prefix(8)) }
}

extension StoredLastingLink: CustomStringConvertible { package var description: String { "link" } }
