import Contract
import Crypto
import Foundation
import MediaModel
import Testing

@testable import ConclaveClient

/// Ring envelopes: against a vector made by none of our own code, and what a device makes of forged ones.
struct RingKeyTests {
  private struct Vector: Decodable {
    struct Owner: Decodable {
      var user: UserID
      var device: DeviceID
      var wrapPrivateKey: Base64Bytes
      var signPrivateKey: Base64Bytes
      var keys: [DeviceKey]
      var fingerprint: Base64Bytes

      var entry: DeviceEntry {
        DeviceEntry(
          user: user, device: device, name: nil, keys: keys, fingerprint: fingerprint,
          registeredAt: Timestamp(milliseconds: 0))
      }
      var identity: DeviceIdentity? {
        DeviceIdentity(
          user: user.text, device: device.text, wrapKeyBytes: wrapPrivateKey.bytes, signKeyBytes: signPrivateKey.bytes)
      }
    }
    struct Stay: Decodable {
      var privateKey: Base64Bytes
      var joinId: Base64Bytes
      var joinKey: JoinKey
    }
    struct SenderKey: Decodable {
      var participant: ParticipantNumber
      var baseKey: Base64Bytes
    }
    var initiator: Owner
    var callees: [Owner]
    var secret: Base64Bytes
    var call: CallID
    var join: Stay
    var list: [ListEntry]
    var listBytes: Base64Bytes
    var listHash: Base64Bytes
    var callCode: String
    var ring: Ring
    var accept: Stay
    var senderKeys: [SenderKey]
  }

  private let vector: Vector
  private var generator = SystemRandomNumberGenerator()
  private let now = Instant(nanoseconds: 1_000_000_000)

  init() throws {
    let url = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Vectors/ring-envelope.json")
    vector = try JSONDecoder().decode(Vector.self, from: Data(contentsOf: url))
  }

  private func credentials(_ stay: Vector.Stay) throws -> JoinCredentials {
    JoinCredentials(
      joinId: stay.joinId, joinKey: stay.joinKey,
      privateKey: try P256.KeyAgreement.PrivateKey(rawRepresentation: stay.privateKey.bytes))
  }

  /// Bob's laptop, which knows the devices of all.
  private func bob(pins: Pins = Pins(), trust: KeyTrust = .firstUse) throws -> KeyAgreement {
    var directory = KnownKeys()
    directory.learn([vector.initiator.entry] + vector.callees.map(\.entry))
    return KeyAgreement(
      identity: try #require(vector.callees[0].identity), call: vector.call, join: try credentials(vector.accept),
      pins: pins, trust: trust, directory: directory)
  }

  private func keys(_ effects: [KeyEffect]) -> [ParticipantNumber: [UInt8]] {
    var all: [ParticipantNumber: [UInt8]] = [:]
    for case .install(let keys) in effects {
      for (participant, key) in keys.baseKeys { all[participant] = key.withUnsafeBytes { Array($0) } }
    }
    return all
  }

  @Test func theListIsThatOfTheVector() throws {
    let list = try EpochList(vector.list)
    #expect(list.bytes == vector.listBytes.bytes)
    #expect(list.hash == vector.listHash.bytes)
    #expect(CallCode.digits(call: vector.call, list: list) == vector.callCode)
    #expect(vector.initiator.identity?.fingerprint == vector.initiator.fingerprint.bytes)
  }

  @Test func theRingOfTheVectorOpensAndGivesItsSenderKeys() throws {
    var bob = try bob()
    let effects = bob.accept(vector.ring, as: 2, now: now)
    #expect(bob.epochs[1]?.secret?.withUnsafeBytes { Array($0) } == vector.secret.bytes)
    #expect(bob.current == 1)
    for key in vector.senderKeys { #expect(keys(effects)[key.participant] == key.baseKey.bytes) }
    #expect(bob.code == vector.callCode)
  }

  @Test func whatWeMakeOpens() throws {
    var generator = generator
    let alice = try #require(vector.initiator.identity)
    let join = JoinCredentials(alice, using: &generator)
    var agreement = KeyAgreement(identity: alice, call: nil, join: join)
    let (envelopes, _) = agreement.ring(vector.callees.map(\.entry), using: &generator)
    #expect(envelopes.count == 3)
    let start = agreement.start(vector.call, as: 1, now: now, using: &generator)
    var ring = vector.ring
    ring.list = try #require(agreement.epochs[1]).list.entries
    ring.envelope = envelopes.first { $0.to == vector.ring.envelope?.to }
    var bob = try bob()
    let accepted = bob.accept(ring, as: 2, now: now)
    let seated = agreement.handle(
      .seated([
        SeatedDevice(device: bob.identity.address, participant: 2, joinId: vector.accept.joinId)
      ]), now: now, using: &generator)
    #expect(keys(accepted)[2] == keys(seated)[2])
    #expect(keys(accepted)[1] == keys(start)[1])
    #expect(keys(accepted)[2] != nil && keys(accepted)[1] != nil)
  }

  @Test func aForgedRingBringsNoKey() throws {
    func refused(_ change: (inout Ring) -> Void) throws -> [KeyRefusal] {
      var ring = vector.ring
      change(&ring)
      var bob = try bob()
      let effects = bob.accept(ring, as: 2, now: now)
      #expect(bob.current == nil)
      return effects.compactMap { if case .refused(let refusal) = $0 { refusal } else { nil } }
    }
    #expect(try refused { $0.envelope?.signature = nil } == [.envelopeNotAuthentic])
    #expect(try refused { $0.envelope?.ciphertext.bytes[70] ^= 1 } == [.envelopeNotAuthentic])
    #expect(try refused { $0.from = UserID("carol")! } == [.envelopeNotAuthentic])
    #expect(
      try refused { $0.envelope?.from = Device(user: UserID("carol")!, device: DeviceID("phone")!) } == [
        .envelopeNotAuthentic
      ])
    // Another list than the one that was signed, another join of the caller, or one without this device.
    #expect(try refused { $0.list?.removeLast() } == [.envelopeNotAuthentic])
    #expect(try refused { $0.list?[0].joinId?.bytes[0] ^= 1 } == [.envelopeNotAuthentic])
    #expect(try refused { $0.list?.remove(at: 1) } == [.notOnList])
    #expect(try refused { $0.list?[1].joinId = Base64Bytes([UInt8](repeating: 0, count: 16)) } == [.notOnList])
  }

  @Test func aCallerWithAChangedKeyIsNotBelieved() throws {
    var pins = Pins()
    pins.pin(vector.initiator.entry.address, [UInt8](repeating: 1, count: 32))
    var bob = try bob(pins: pins)
    let effects = bob.accept(vector.ring, as: 2, now: now)
    #expect(bob.current == nil)
    #expect(effects.contains { if case .warn(let warning) = $0 { warning.problem == .changedKey } else { false } })
  }

  @Test func ringingTwiceWithOneListGivesOtherSenderKeys() throws {
    var generator = generator
    var first = try bob()
    let identity = first.identity
    var second = KeyAgreement(
      identity: identity, call: vector.call, join: JoinCredentials(identity, using: &generator), pins: Pins(),
      directory: first.directory)
    let one = keys(first.accept(vector.ring, as: 2, now: now))
    let two = keys(second.accept(vector.ring, as: 2, now: now))
    #expect(one[2] != nil && two[2] != nil && one[2] != two[2])
    #expect(one[1] == two[1])
  }

  @Test func nobodyWithoutTrustGetsARingEnvelope() throws {
    var generator = generator
    let alice = try #require(vector.initiator.identity)
    var pins = Pins()
    pins.pin(vector.callees[0].entry.address, [UInt8](repeating: 1, count: 32))
    pins.pin(vector.callees[1].entry.address, vector.callees[1].fingerprint.bytes, isVerified: true)
    func rung(_ trust: KeyTrust) -> [Device] {
      var agreement = KeyAgreement(
        identity: alice, call: nil, join: JoinCredentials(alice, using: &generator), pins: pins, trust: trust)
      return agreement.ring(vector.callees.map(\.entry), using: &generator).envelopes.map(\.to)
    }
    #expect(rung(.firstUse) == vector.callees[1...].map(\.entry.address))
    #expect(rung(.verifiedOnly) == [vector.callees[1].entry.address])
  }
}

extension DeviceEntry { fileprivate var address: Device { Device(user: user, device: device) } }
