/// Bytes that are hashed or signed, assembled as in protocol section 5: numbers are big-endian, `lp(x)` is x after its length in 2 bytes.
package struct Transcript: Sendable {
  package private(set) var bytes: [UInt8]

  /// - Parameter label: comes first, without its length; empty for a part of another transcript.
  package init(_ label: String = "") { bytes = Array(label.utf8) }

  package mutating func reserveCapacity(_ count: Int) { bytes.reserveCapacity(count) }

  package mutating func append(_ raw: some Sequence<UInt8>) { bytes.append(contentsOf: raw) }

  /// A number in 4 bytes.
  package mutating func append(_ number: UInt32) { appendNumber(number) }

  /// A number in 8 bytes.
  package mutating func append(_ number: UInt64) { appendNumber(number) }

  /// `lp(x)`. Ids and keys are far shorter than 64 KiB; a longer value keeps only its length's low bits and so fits no signature that an
  /// honest device made.
  package mutating func appendPrefixed(_ value: some Collection<UInt8>) {
    appendNumber(UInt16(truncatingIfNeeded: value.count))
    bytes.append(contentsOf: value)
  }

  package mutating func appendPrefixed(_ text: String) { appendPrefixed(text.utf8) }

  private mutating func appendNumber<Number: FixedWidthInteger>(_ number: Number) {
    for shift in stride(from: Number.bitWidth - 8, through: 0, by: -8) {
      bytes.append(UInt8(truncatingIfNeeded: number >> Number(shift)))
    }
  }
}

/// The layouts that the server and the clients both hash.
extension Transcript {
  /// Its hash is a device's fingerprint: label ‖ lp(user) ‖ lp(device) ‖ lp(alg) ‖ lp(SPKI) of its wrap key, then of its sign key.
  package static func device(
    user: String, device: String, wrap: (alg: String, publicKey: [UInt8]), sign: (alg: String, publicKey: [UInt8])
  ) -> Transcript {
    var transcript = Transcript("conclave-device-v1")
    transcript.appendPrefixed(user)
    transcript.appendPrefixed(device)
    for key in [wrap, sign] {
      transcript.appendPrefixed(key.alg)
      transcript.appendPrefixed(key.publicKey)
    }
    return transcript
  }

  /// The beginning of a roster of `count` entries, which `appendEntry` adds: label ‖ u32(count).
  package static func roster(count: Int) -> Transcript {
    var transcript = Transcript("conclave-roster-v2")
    transcript.append(UInt32(truncatingIfNeeded: count))
    return transcript
  }

  /// An entry of a roster: lp(user) ‖ lp(device) ‖ u32(participant) ‖ fingerprint ‖ joinId ‖ SHA-256(SPKI of the join key), with zeros for what
  /// an entry of a ring lacks.
  /// - Parameters:
  ///   - fingerprint: 32 bytes.
  ///   - joinId: 16 bytes.
  ///   - joinKeyHash: 32 bytes.
  package mutating func appendEntry(
    user: String, device: String, participant: UInt32, fingerprint: [UInt8], joinId: [UInt8]?, joinKeyHash: [UInt8]?
  ) {
    appendPrefixed(user)
    appendPrefixed(device)
    append(participant)
    append(fingerprint)
    append(joinId ?? [UInt8](repeating: 0, count: 16))
    append(joinKeyHash ?? [UInt8](repeating: 0, count: 32))
  }

  /// Its hash chains an epoch's list to the previous one: label ‖ lp(call) ‖ u32(epoch) ‖ previous list's hash ‖ hash of the roster.
  package static func list(call: String, epoch: UInt32, previous: [UInt8], rosterHash: [UInt8]) -> Transcript {
    var transcript = Transcript("conclave-list-v2")
    transcript.appendPrefixed(call)
    transcript.append(epoch)
    transcript.append(previous)
    transcript.append(rosterHash)
    return transcript
  }

  /// A member's device lets a user in: label ‖ lp(call) ‖ fingerprint ‖ lp(user).
  /// - Parameter fingerprint: the signing device's, 32 bytes.
  package static func admission(call: String, fingerprint: [UInt8], user: String) -> Transcript {
    var transcript = Transcript("conclave-admission-v1")
    transcript.appendPrefixed(call)
    transcript.append(fingerprint)
    transcript.appendPrefixed(user)
    return transcript
  }

  /// A member's device makes a link: label ‖ lp(call) ‖ fingerprint ‖ the link's public key.
  package static func callLink(call: String, fingerprint: [UInt8], link: [UInt8]) -> Transcript {
    var transcript = Transcript("conclave-call-link-v1")
    transcript.appendPrefixed(call)
    transcript.append(fingerprint)
    transcript.append(link)
    return transcript
  }

  /// A member's device makes a link whose guests wait: label ‖ lp(call) ‖ fingerprint ‖ the link's public key.
  package static func waitingLink(call: String, fingerprint: [UInt8], link: [UInt8]) -> Transcript {
    var transcript = Transcript("conclave-waiting-link-v1")
    transcript.appendPrefixed(call)
    transcript.append(fingerprint)
    transcript.append(link)
    return transcript
  }

  /// A member's device admits a guest's device that came by a link: label ‖ lp(call) ‖ fingerprint ‖ the link's public key ‖ the guest's fingerprint ‖
  /// lp(user).
  /// - Parameters:
  ///   - fingerprint: the signing device's, 32 bytes.
  ///   - guest: the fingerprint of the guest's device, 32 bytes.
  package static func guestAdmission(
    call: String, fingerprint: [UInt8], link: [UInt8], guest: [UInt8], user: String
  ) -> Transcript {
    var transcript = Transcript("conclave-guest-admission-v1")
    transcript.appendPrefixed(call)
    transcript.append(fingerprint)
    transcript.append(link)
    transcript.append(guest)
    transcript.appendPrefixed(user)
    return transcript
  }

  /// A user joins by a link, whose private key signs: label ‖ lp(call) ‖ the link's public key ‖ fingerprint ‖ lp(user).
  /// - Parameter fingerprint: the joining device's, 32 bytes.
  package static func linkJoin(call: String, link: [UInt8], fingerprint: [UInt8], user: String) -> Transcript {
    var transcript = Transcript("conclave-link-join-v1")
    transcript.appendPrefixed(call)
    transcript.append(link)
    transcript.append(fingerprint)
    transcript.appendPrefixed(user)
    return transcript
  }
}
