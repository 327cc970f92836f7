import Contract
import Crypto
import Foundation
import MediaModel

@testable import ConclaveClient

/// `Tests/Vectors/keys.json`, made by an independent implementation.
struct KeyVectors: Decodable {
  struct KeyPair: Decodable {
    var privateScalar: Base64Bytes
    var publicKey: Base64Bytes

    var agreement: P256.KeyAgreement.PrivateKey {
      get throws { try P256.KeyAgreement.PrivateKey(rawRepresentation: privateScalar.bytes) }
    }
  }
  struct Named: Decodable {
    var alg: String
    var privateScalar: Base64Bytes?
    var publicKey: Base64Bytes
  }
  struct DeviceVector: Decodable {
    struct Flipped: Decodable {
      var wrapPublicKey: Base64Bytes
      var fingerprint: Base64Bytes
    }
    var user: UserID
    var device: DeviceID
    var wrap: Named
    var sign: Named
    var fingerprint: Base64Bytes
    var flipped: Flipped?

    func keys(wrap key: Base64Bytes? = nil) -> DeviceKeys? {
      DeviceKeys(
        Device(user: user, device: device),
        keys: [
          DeviceKey(use: .wrap, alg: wrap.alg, publicKey: key ?? wrap.publicKey),
          DeviceKey(use: .sign, alg: sign.alg, publicKey: sign.publicKey),
        ])
    }
  }
  struct JoinVector: Decodable {
    struct Flipped: Decodable {
      var signature: Base64Bytes
      var bytes: Base64Bytes
      var at: Timestamp
      var joinId: Base64Bytes
      var call: CallID
    }
    var call: CallID
    var user: UserID
    var device: DeviceID
    var fingerprint: Base64Bytes
    var joinId: Base64Bytes
    var joinKey: JoinKey
    var bytes: Base64Bytes
    var keyHash: Base64Bytes
    var flipped: Flipped?
  }
  struct Roster: Decodable {
    struct Flipped: Decodable {
      var entries: [ListEntry]
      var rosterHash: Base64Bytes
    }
    var entries: [ListEntry]
    var rosterHash: Base64Bytes
    var flipped: Flipped
  }
  struct EpochVector: Decodable {
    var epoch: UInt32
    var list: [ListEntry]
    var previous: Base64Bytes
    var rosterHash: Base64Bytes
    var listHash: Base64Bytes
  }
  struct Chain: Decodable {
    struct Flipped: Decodable {
      var links: [EpochLink]
      var listHash: Base64Bytes
    }
    struct Skipped: Decodable {
      var previous: Base64Bytes
      var listHash: Base64Bytes
    }
    var call: CallID
    var epochs: [EpochVector]
    var since: UInt32
    var links: [EpochLink]
    var listHash: Base64Bytes
    var flipped: Flipped
    var flippedSkipped: Skipped
  }
  struct RingList: Decodable {
    struct Flipped: Decodable {
      var call: CallID
      var listHash: Base64Bytes
    }
    var call: CallID
    var list: [ListEntry]
    var listHash: Base64Bytes
    var flipped: Flipped
  }
  struct Ratchet: Decodable {
    struct Flipped: Decodable {
      var listHash: Base64Bytes
      var next: Base64Bytes
    }
    var call: CallID
    var epoch: UInt32
    var listHash: Base64Bytes
    var secret: Base64Bytes
    var next: Base64Bytes
    var flipped: Flipped
  }
  struct Sender: Decodable {
    struct Frame: Decodable {
      var n: UInt8
      var kid: UInt64
      var ctr: UInt64
      var text: Base64Bytes
      var frame: Base64Bytes
    }
    struct Flipped: Decodable {
      var participant: UInt32
      var baseKey: Base64Bytes
      var frame: Base64Bytes
    }
    var call: CallID
    var secret: Base64Bytes
    var epoch: UInt32
    var listHash: Base64Bytes
    var participant: UInt32
    var fingerprint: Base64Bytes
    var joinId: Base64Bytes
    var baseKey: Base64Bytes
    var frame: Frame
    var flipped: Flipped
  }
  struct EnvelopeVector: Decodable {
    struct Flipped: Decodable {
      var ciphertext: Base64Bytes
      var signature: Base64Bytes
      var key: Base64Bytes
    }
    var call: CallID
    var epoch: UInt32
    var secret: Base64Bytes
    var listHash: Base64Bytes
    var sealedTo: KeyPair
    var transcript: Base64Bytes
    var envelope: Envelope
    var flipped: Flipped?
  }
  struct ConfirmationVector: Decodable {
    struct Some: Decodable {
      var participants: [UInt32]
      var buckets: [ConfirmationBucket]
    }
    struct Poisoned: Decodable {
      var participant: UInt32
      var bucket: ConfirmationBucket
      var tags: [ConfirmationTags.Tag]
    }
    struct Flipped: Decodable {
      var buckets: [ConfirmationBucket]
      var beyondTheList: ConfirmationBucket
      var beyondTheBuckets: ConfirmationBucket
    }
    var call: CallID
    var epoch: UInt32
    var secret: Base64Bytes
    var list: [ListEntry]
    var listHash: Base64Bytes
    var key: Base64Bytes
    var tags: [ConfirmationTags.Tag]
    var buckets: [ConfirmationBucket]
    var some: Some
    var poisoned: Poisoned
    var flipped: Flipped
  }
  struct Code: Decodable {
    struct Flipped: Decodable {
      var rosterHash: Base64Bytes
      var code: String
    }
    var call: CallID
    var rosterHash: Base64Bytes
    var code: String
    var flipped: Flipped
  }
  struct Message: Decodable {
    struct Wrap: Decodable {
      var participant: UInt32
      var key: KeyPair
    }
    struct Flipped: Decodable {
      struct Resealed: Decodable { var body: Base64Bytes }
      var body: Base64Bytes
      var otherKind: Base64Bytes?
      var resealed: Resealed?
    }
    struct Mispadded: Decodable {
      var what: String
      var data: Base64Bytes
      var body: Base64Bytes
    }
    var call: CallID
    var epoch: UInt32
    var secret: Base64Bytes
    var listHash: Base64Bytes
    var from: UInt32
    var fingerprint: Base64Bytes
    var joinId: Base64Bytes
    var text: Base64Bytes
    var padded: Base64Bytes
    var body: Base64Bytes
    var mispadded: [Mispadded]?
    var wraps: [Wrap]?
    var flipped: Flipped
  }
  struct Statement: Decodable {
    struct Flipped: Decodable {
      var signature: Base64Bytes
      var fingerprint: Base64Bytes
    }
    var user: UserID
    var by: DeviceID
    var device: DeviceID
    var signKey: Base64Bytes
    var byFingerprint: Base64Bytes
    var fingerprint: Base64Bytes
    var at: Timestamp
    var bytes: Base64Bytes
    var sigAlg: String
    var signature: Base64Bytes
    var flipped: Flipped

    func statement(_ kind: TrustStatement.Kind) -> TrustStatement {
      TrustStatement(
        kind: kind, user: user.text, device: device.text, fingerprint: fingerprint.bytes, signer: by.text,
        signerFingerprint: byFingerprint.bytes, at: at.milliseconds, algorithm: sigAlg, signature: signature.bytes)
    }
  }
  struct Pairing: Decodable {
    struct Flipped: Decodable {
      var newNonce: Base64Bytes
      var commit: Base64Bytes
      var code: String
    }
    var user: UserID
    var session: Base64Bytes
    var newFingerprint: Base64Bytes
    var existingFingerprint: Base64Bytes
    var newNonce: Base64Bytes
    var existingNonce: Base64Bytes
    var commit: Base64Bytes
    var code: String
    var scanned: String
    var flipped: Flipped
  }
  struct KIDs: Decodable {
    struct Valid: Decodable {
      var participant: UInt32
      var n: UInt8
      var epoch: UInt32
      var kid: UInt64
    }
    var valid: [Valid]
  }
  var devices: [DeviceVector]
  var joins: [JoinVector]
  var roster: Roster
  var chain: Chain
  var ringList: RingList
  var ratchet: Ratchet
  var sender: Sender
  var envelopes: [EnvelopeVector]
  var confirmation: ConfirmationVector
  var code: Code
  var message: Message
  var privateMessage: Message
  var vouch: Statement
  var revoke: Statement
  var pairing: Pairing
  var kids: KIDs

  static func read() throws -> KeyVectors {
    let url = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .appending(path: "Vectors/keys.json")
    return try JSONDecoder().decode(KeyVectors.self, from: Data(contentsOf: url))
  }
}
