package import MediaModel

// The statements of devices about recordings. Each value is signed by a device, over the bytes that `Recording` lays out. The server stores them and opens nothing.

package enum RecordingKind: String, Codable, Sendable, CaseIterable {
  /// The server records a call.
  case call
  /// A device records for somebody who was not reached.
  case message
  /// A device records for its own person.
  case own
}

package enum RecordedMedium: String, Codable, Sendable, CaseIterable { case audio, video, screen }

/// The starter's device describes a recording: its public key, who may open it, and what is recorded.
package struct RecordingStatement: Codable, Sendable, Hashable {
  package var id: RecordingID
  package var kind: RecordingKind
  /// The call that is recorded, or that was not answered.
  package var call: CallID?
  /// P-256, SPKI. Keys and notes of the recording are sealed to it.
  package var publicKey: Base64Bytes
  package var media: [RecordedMedium]
  package var readers: [UserID]
  /// The time by the device's clock.
  package var at: Timestamp
  /// The signer.
  package var by: Device
  package var sigAlg: String
  package var signature: Base64Bytes

  package init(
    id: RecordingID, kind: RecordingKind, call: CallID? = nil, publicKey: Base64Bytes, media: [RecordedMedium],
    readers: [UserID], at: Timestamp, by: Device, sigAlg: String, signature: Base64Bytes
  ) {
    self.id = id
    self.kind = kind
    self.call = call
    self.publicKey = publicKey
    self.media = media
    self.readers = readers
    self.at = at
    self.by = by
    self.sigAlg = sigAlg
    self.signature = signature
  }
}

/// The private half of a recording's key, sealed for one holder; opaque to the server.
package struct RecordingGrant: Codable, Sendable, Hashable {
  package struct Holder: Codable, Sendable, Hashable {
    package var user: UserID
    /// nil: it is sealed to the user's reading key.
    package var device: DeviceID?

    package init(user: UserID, device: DeviceID? = nil) {
      self.user = user
      self.device = device
    }
  }

  package var recording: RecordingID
  package var to: Holder
  /// The signer.
  package var from: Device
  /// SHA-256 of the public key (SPKI) to which it is sealed.
  package var key: Base64Bytes
  package var alg: String
  package var ciphertext: Base64Bytes
  package var at: Timestamp
  package var sigAlg: String
  package var signature: Base64Bytes

  package init(
    recording: RecordingID, to: Holder, from: Device, key: Base64Bytes, alg: String, ciphertext: Base64Bytes,
    at: Timestamp, sigAlg: String, signature: Base64Bytes
  ) {
    self.recording = recording
    self.to = to
    self.from = from
    self.key = key
    self.alg = alg
    self.ciphertext = ciphertext
    self.at = at
    self.sigAlg = sigAlg
    self.signature = signature
  }
}

/// The first chain key of a reel that a device writes, sealed to the recording's key; opaque to the server.
package struct ReelKey: Codable, Sendable, Hashable {
  package var ciphertext: Base64Bytes
  package var sigAlg: String
  package var signature: Base64Bytes

  package init(ciphertext: Base64Bytes, sigAlg: String, signature: Base64Bytes) {
    self.ciphertext = ciphertext
    self.sigAlg = sigAlg
    self.signature = signature
  }
}

/// A device says what a reel's first segments are.
package struct ReelWitness: Codable, Sendable, Hashable {
  package var reel: UInt32
  /// How many there are.
  package var segments: UInt32
  /// SHA-256 of the last of them; zeros if there is none.
  package var head: Base64Bytes
  package var at: Timestamp
  /// No further segment follows.
  package var isEnd: Bool
  /// The signer.
  package var by: Device
  package var sigAlg: String
  package var signature: Base64Bytes

  package init(
    reel: UInt32, segments: UInt32, head: Base64Bytes, at: Timestamp, isEnd: Bool, by: Device, sigAlg: String,
    signature: Base64Bytes
  ) {
    self.reel = reel
    self.segments = segments
    self.head = head
    self.at = at
    self.isEnd = isEnd
    self.by = by
    self.sigAlg = sigAlg
    self.signature = signature
  }
}

/// A text about a recording, sealed to its key; opaque to the server.
package struct RecordingNote: Codable, Sendable, Hashable {
  package var number: UInt32
  package var ciphertext: Base64Bytes
  package var sigAlg: String
  package var signature: Base64Bytes

  package init(number: UInt32, ciphertext: Base64Bytes, sigAlg: String, signature: Base64Bytes) {
    self.number = number
    self.ciphertext = ciphertext
    self.sigAlg = sigAlg
    self.signature = signature
  }
}

/// A page of the segments of one reel, as the server stores them.
package struct ReelPage: Codable, Sendable, Hashable {
  /// A segment: an array of its length, its hash and its start. Further elements are ignored.
  package struct Segment: Codable, Sendable, Hashable {
    package var byteCount: Int
    /// SHA-256 of the file.
    package var hash: Base64Bytes
    /// Microseconds since 1970, as in its header.
    package var start: Int64

    package init(byteCount: Int, hash: Base64Bytes, start: Int64) {
      self.byteCount = byteCount
      self.hash = hash
      self.start = start
    }

    package init(from decoder: any Decoder) throws {
      var container = try decoder.unkeyedContainer()
      byteCount = try container.decode(Int.self)
      hash = try container.decode(Base64Bytes.self)
      start = try container.decode(Int64.self)
    }

    package func encode(to encoder: any Encoder) throws {
      var container = encoder.unkeyedContainer()
      try container.encode(byteCount)
      try container.encode(hash)
      try container.encode(start)
    }
  }

  package var participant: UInt32
  /// The number of the page's first segment.
  package var from: UInt32
  package var segments: [Segment]

  package init(participant: UInt32, from: UInt32, segments: [Segment]) {
    self.participant = participant
    self.from = from
    self.segments = segments
  }
}

extension RecordingStatement: CustomStringConvertible { package var description: String { "statement" } }
extension RecordingGrant: CustomStringConvertible { package var description: String { "grant" } }
extension ReelWitness: CustomStringConvertible { package var description: String { "witness" } }
