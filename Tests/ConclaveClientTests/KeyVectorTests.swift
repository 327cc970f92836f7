import struct ConclaveClient.Confirmation
import Contract
import Crypto
import MediaModel
import Octets

@testable import ConclaveClient
import SFrame
import Testing

/// Every layout and derivation of the key agreement, compared with vectors of another implementation, and each with one
/// bit flipped.
struct KeyVectorTests {
  private let vectors: KeyVectors

  init() throws { vectors = try KeyVectors.read() }

  private func bytes(_ key: SymmetricKey?) -> [UInt8]? { key?.withUnsafeBytes { Array($0) } }

  @Test func fingerprints() throws {
    for device in vectors.devices {
      #expect(device.keys()?.fingerprint == device.fingerprint.bytes)
      if let flipped = device.flipped {
        #expect(device.keys(wrap: flipped.wrapPublicKey)?.fingerprint == flipped.fingerprint.bytes)
      }
    }
  }

  @Test func joins() throws {
    for join in vectors.joins {
      let device = try #require(vectors.devices.first { $0.user == join.user && $0.device == join.device })
      let keys = try #require(device.keys())
      #expect(
        JoinCredentials.transcript(
          join.joinKey, call: join.call, fingerprint: join.fingerprint.bytes, joinId: join.joinId.bytes)
          == join.bytes.bytes)
      #expect(JoinCredentials.hash(join.joinKey) == join.keyHash.bytes)
      #expect(keys.signed(join.joinKey, call: join.call, joinId: join.joinId.bytes))
      guard let flipped = join.flipped else { continue }
      var key = join.joinKey
      key.signature = flipped.signature
      #expect(!keys.signed(key, call: join.call, joinId: join.joinId.bytes))
      key = join.joinKey
      key.at = flipped.at
      #expect(!keys.signed(key, call: join.call, joinId: join.joinId.bytes))
      #expect(!keys.signed(join.joinKey, call: join.call, joinId: flipped.joinId.bytes))
      #expect(!keys.signed(join.joinKey, call: flipped.call, joinId: join.joinId.bytes))
    }
  }

  @Test func rosters() throws {
    #expect(try EpochList(vectors.roster.entries, epoch: 2).rosterHash == vectors.roster.rosterHash.bytes)
    #expect(EpochList.rosterHash(vectors.roster.flipped.entries) == vectors.roster.flipped.rosterHash.bytes)
    let ring = vectors.ringList
    let list = try EpochList(ring.list, epoch: 1)
    #expect(list.hash(1, of: ring.call, previous: EpochList.noPrevious) == ring.listHash.bytes)
    #expect(list.hash(1, of: ring.flipped.call, previous: EpochList.noPrevious) == ring.flipped.listHash.bytes)
    #expect(throws: KeyRefusal.malformedList) { try EpochList(ring.list, epoch: 2) }
  }

  @Test func chains() throws {
    let chain = vectors.chain
    for epoch in chain.epochs {
      let list = try EpochList(epoch.list, epoch: epoch.epoch)
      #expect(list.rosterHash == epoch.rosterHash.bytes)
      #expect(list.hash(epoch.epoch, of: chain.call, previous: epoch.previous.bytes) == epoch.listHash.bytes)
    }
    func end(_ links: [EpochLink]) throws -> [UInt8] {
      let start = try #require(chain.epochs.first { $0.epoch == chain.since })
      return links.reduce(start.listHash.bytes) {
        EpochList.hash($1.epoch, of: chain.call, previous: $0, rosterHash: $1.roster.bytes)
      }
    }
    #expect(try end(chain.links) == chain.listHash.bytes)
    #expect(try end(chain.flipped.links) == chain.flipped.listHash.bytes)
    let last = try #require(chain.epochs.last)
    #expect(
      try EpochList(last.list, epoch: last.epoch).hash(
        last.epoch, of: chain.call, previous: chain.flippedSkipped.previous.bytes)
        == chain.flippedSkipped.listHash.bytes)
  }

  private func epoch(_ number: UInt32, _ list: [ListEntry], _ hash: [UInt8], _ secret: [UInt8]) throws -> Epoch {
    Epoch(
      number: number, mode: .fresh, list: try EpochList(list, epoch: number), listHash: hash,
      secret: SymmetricKey(data: secret))
  }

  @Test func ratchets() throws {
    let vector = vectors.ratchet
    let old = try epoch(vector.epoch - 1, [], [], vector.secret.bytes)
    #expect(
      bytes(old.ratcheted(to: vector.epoch, listHash: vector.listHash.bytes, of: vector.call)) == vector.next.bytes)
    #expect(
      bytes(old.ratcheted(to: vector.epoch, listHash: vector.flipped.listHash.bytes, of: vector.call))
        == vector.flipped.next.bytes)
  }

  @Test func senderKeys() throws {
    let vector = vectors.sender
    let derivation = SenderDerivation(
      call: vector.call, epoch: vector.epoch, listHash: vector.listHash.bytes,
      secret: SymmetricKey(data: vector.secret.bytes))
    let identity = SenderIdentity(fingerprint: vector.fingerprint.bytes, joinId: vector.joinId.bytes)
    #expect(bytes(derivation.baseKey(of: vector.participant, identity)) == vector.baseKey.bytes)
    #expect(bytes(derivation.baseKey(of: vector.flipped.participant, identity)) == vector.flipped.baseKey.bytes)
    let cipher = FrameCipher()
    cipher.install(EpochKeys(epoch: vector.epoch, derivation: derivation, senders: [vector.participant: identity]))
    #expect(throws: FrameCipherError.notAuthentic) { try cipher.openWhereItBelongs(vector.flipped.frame.bytes) }
    let (text, opened) = try cipher.openWhereItBelongs(vector.frame.frame.bytes)
    #expect(text == vector.frame.text.bytes && opened.counter == vector.frame.ctr && opened.track == vector.frame.n)
    for kid in vectors.kids.valid {
      #expect(FrameKeyID(participant: kid.participant, track: kid.n, epoch: kid.epoch).rawValue == kid.kid)
    }
  }

  @Test func envelopes() throws {
    for vector in vectors.envelopes {
      let from = try #require(vector.envelope.from)
      let device = try #require(vectors.devices.first { $0.user == from.user && $0.device == from.device })
      let keys = try #require(device.keys())
      let context = EnvelopeContext(call: vector.call, epoch: vector.epoch, listHash: vector.listHash.bytes)
      #expect(vector.envelope.transcript(from: from, in: context) == vector.transcript.bytes)
      #expect(vector.envelope.isAuthentic(for: vector.envelope.to, from: keys, in: context))
      #expect(vector.envelope.key.bytes == Array(SHA256.hash(data: vector.sealedTo.publicKey.bytes)))
      if vector.envelope.alg == WrapAlgorithm.hpke.rawValue {
        #expect(try bytes(vector.envelope.opened(with: vector.sealedTo.agreement)) == vector.secret.bytes)
      }
      guard let flipped = vector.flipped else { continue }
      for change in [
        { $0.ciphertext = flipped.ciphertext }, { $0.signature = flipped.signature }, { $0.key = flipped.key },
      ] as [(inout Envelope) -> Void] {
        var envelope = vector.envelope
        change(&envelope)
        #expect(!envelope.isAuthentic(for: envelope.to, from: keys, in: context))
      }
    }
  }

  /// Whether the bucket is found to be valid.
  private func expect(
    _ finding: Confirmation.Finding, _ isFound: Bool, _ bucket: ConfirmationBucket, _ confirmation: inout Confirmation
  ) {
    let found = confirmation.check(bucket)
    #expect((found == finding) == isFound)
  }

  @Test func confirmations() throws {
    let vector = vectors.confirmation
    let epoch = try epoch(vector.epoch, vector.list, vector.listHash.bytes, vector.secret.bytes)
    let key = try #require(epoch.confirmationKey(vector.call))
    #expect(bytes(key) == vector.key.bytes)
    for (entry, tag) in zip(vector.list, vector.tags) {
      let identity = SenderIdentity(fingerprint: entry.fingerprint.bytes, joinId: entry.joinId?.bytes ?? [])
      #expect(Confirmation.tag(key, entry.participant, identity) == tag.tag.bytes)
    }
    var all = Confirmation(key: key, list: epoch.list, own: 0)
    for bucket in vector.buckets { expect(.right, true, bucket, &all) }
    #expect(all.isComplete && all.missing.isEmpty)
    // Buckets with withdrawn bits.
    for bucket in vector.some.buckets where bucket.who != vector.buckets[bucket.index].who {
      expect(.right, false, bucket, &all)
    }
    var some = Confirmation(key: key, list: epoch.list, own: 0)
    for bucket in vector.some.buckets { expect(.right, true, bucket, &some) }
    #expect(
      Set(some.missing.map(\.participant)) == Set(vector.list.map(\.participant)).subtracting(vector.some.participants))
    var flipped = Confirmation(key: key, list: epoch.list, own: 0)
    expect(.examine(bucket: 1), true, vector.flipped.beyondTheList, &flipped)
    expect(.refused, true, vector.flipped.beyondTheBuckets, &flipped)
    expect(.examine(bucket: 0), true, vector.flipped.buckets[0], &flipped)
    expect(.refused, true, vector.flipped.buckets[0], &flipped)
    var poisoned = Confirmation(key: key, list: epoch.list, own: 0)
    expect(.examine(bucket: 0), true, vector.poisoned.bucket, &poisoned)
    poisoned.check(vector.poisoned.tags, of: 0)
    #expect(poisoned.refuted == [vector.poisoned.participant] && !poisoned.isContradicted)
  }

  @Test func codes() {
    let vector = vectors.code
    #expect(CallCode.digits(call: vector.call, rosterHash: vector.rosterHash.bytes) == vector.code)
    #expect(CallCode.digits(call: vector.call, rosterHash: vector.flipped.rosterHash.bytes) == vector.flipped.code)
  }

  @Test func statements() throws {
    for (vector, kind) in [(vectors.vouch, TrustStatement.Kind.vouch), (vectors.revoke, .revoke)] {
      let key = SignKey(algorithm: "ES256", publicKey: vector.signKey.bytes)
      var statement = vector.statement(kind)
      #expect(statement.transcript == vector.bytes.bytes)
      #expect(statement.isSigned(by: key))
      statement.signature = vector.flipped.signature.bytes
      #expect(!statement.isSigned(by: key))
      statement = vector.statement(kind)
      statement.fingerprint = vector.flipped.fingerprint.bytes
      #expect(!statement.isSigned(by: key))
    }
    var other = vectors.vouch.statement(.revoke)
    other.signature = vectors.vouch.signature.bytes
    #expect(!other.isSigned(by: SignKey(algorithm: "ES256", publicKey: vectors.vouch.signKey.bytes)))
  }

  @Test func pairing() {
    let vector = vectors.pairing
    let code = PairingCode(
      user: vector.user, session: vector.session.bytes, newFingerprint: vector.newFingerprint.bytes,
      existingFingerprint: vector.existingFingerprint.bytes, newNonce: vector.newNonce.bytes,
      existingNonce: vector.existingNonce.bytes)
    #expect(code.commitment == vector.commit.bytes)
    #expect(code.digits == vector.code)
    var flipped = code
    flipped.newNonce = vector.flipped.newNonce.bytes
    #expect(flipped.commitment == vector.flipped.commit.bytes && flipped.digits == vector.flipped.code)
    #expect(PairingCode.scanned(vector.newFingerprint.bytes) == vector.scanned)
    #expect(PairingCode.fingerprint(scanned: vector.scanned) == vector.newFingerprint.bytes)
    #expect(PairingCode.fingerprint(scanned: String(vector.scanned.dropLast())) == nil)
  }
}

/// Messages of the vectors, opened like a client.
struct MessageVectorTests {
  private let vectors: KeyVectors

  init() throws { vectors = try KeyVectors.read() }

  private func message(_ vector: KeyVectors.Message, _ body: Base64Bytes) -> CallMessage {
    CallMessage(from: vector.from, body: body)
  }

  private func cipher(_ vector: KeyVectors.Message) -> FrameCipher {
    let cipher = FrameCipher()
    cipher.install(
      EpochKeys(
        epoch: vector.epoch,
        derivation: SenderDerivation(
          call: vector.call, epoch: vector.epoch, listHash: vector.listHash.bytes,
          secret: SymmetricKey(data: vector.secret.bytes)),
        senders: [
          vector.from: SenderIdentity(fingerprint: vector.fingerprint.bytes, joinId: vector.joinId.bytes)
        ]))
    return cipher
  }

  /// The agreement of one recipient of the private message.
  private func agreement(_ participant: UInt32, _ wrap: KeyVectors.Message.Wrap) throws -> KeyAgreement {
    let vector = vectors.privateMessage
    let epoch = try #require(vectors.chain.epochs.first { $0.epoch == vector.epoch })
    let entry = try #require(epoch.list.first { $0.participant == participant })
    let device = try #require(vectors.devices.first { $0.user == entry.user && $0.device == entry.device })
    let wrapKey = try #require(device.wrap.privateScalar).bytes
    let signKey = try #require(device.sign.privateScalar).bytes
    let identity = try #require(
      DeviceIdentity(user: entry.user.text, device: entry.device.text, wrapKeyBytes: wrapKey, signKeyBytes: signKey))
    var pins = Pins()
    var directory = KnownKeys()
    for device in vectors.devices {
      pins.pin(Device(user: device.user, device: device.device), device.fingerprint.bytes)
      if let keys = device.keys() { directory.learn(keys) }
    }
    var keys = KeyAgreement(
      identity: identity,
      join: JoinCredentials(
        call: vector.call, joinId: try #require(entry.joinId), joinKey: try #require(entry.joinKey),
        privateKey: try wrap.key.agreement), pins: pins, directory: directory, now: Instant(nanoseconds: 1))
    keys.own.participant = participant
    keys.epochs[vector.epoch] = Epoch(
      number: vector.epoch, mode: .fresh, list: try EpochList(epoch.list, epoch: epoch.epoch),
      listHash: epoch.listHash.bytes)
    return keys
  }

  @Test func aMessageForAll() throws {
    let vector = vectors.message
    let wrap = try #require(vectors.privateMessage.wraps?.first)
    var keys = try agreement(wrap.participant, wrap)
    let cipher = cipher(vector)
    let opened1 = CallClient.open(message(vector, vector.flipped.body), cipher, &keys)
    #expect(opened1 == .dropped)
    if let other = vector.flipped.otherKind {
      let opened2 = CallClient.open(message(vector, other), cipher, &keys)
      #expect(opened2 == .dropped)
    }
    let opened5 = CallClient.open(message(vector, vector.body), cipher, &keys)
    #expect(opened5 == .text(vector.text.bytes, isPrivate: false))
    for text in [vector, vectors.privateMessage] {
      #expect(MessagePadding.padded(text.text.bytes) == text.padded.bytes)
    }
    for wrong in try #require(vector.mispadded) {
      #expect(MessagePadding.text(of: wrong.data.bytes) == nil)
      let opened = CallClient.open(message(vector, wrong.body), cipher, &keys)
      #expect(opened == .dropped, "\(wrong.what)")
    }
  }

  @Test func aPrivateMessage() throws {
    let vector = vectors.privateMessage
    for wrap in try #require(vector.wraps) {
      var keys = try agreement(wrap.participant, wrap)
      let cipher = cipher(vector)
      let opened3 = CallClient.open(message(vector, vector.flipped.body), cipher, &keys)
      #expect(opened3 == .dropped)
      if let resealed = vector.flipped.resealed {
        let opened4 = CallClient.open(message(vector, resealed.body), cipher, &keys)
        #expect(opened4 == .dropped)
      }
      let opened6 = CallClient.open(message(vector, vector.body), cipher, &keys)
      #expect(opened6 == .text(vector.text.bytes, isPrivate: true))
    }
  }
}
