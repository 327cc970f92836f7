import Contract
import Crypto
import MediaModel
import Octets
import SFrame

/// The sender to which a base key belongs, in addition to the participant number: another stay of the device, or another device, has
/// a different key.
struct SenderIdentity: Hashable, Sendable {
  var fingerprint: [UInt8]
  var joinId: [UInt8]
}

/// Makes the base keys of an epoch's senders (protocol section 5, "Sender keys"). For that it is equivalent to the
/// epoch's secret.
///
/// A large call has a thousand senders in each epoch: the part of HKDF that is the same for all is computed once.
struct SenderDerivation: Sendable {
  /// HKDF's expansion (RFC 5869 section 2.3), begun with the common start of all senders' `info`. 64 bytes are one block of SHA-512: T(1).
  private let expansion: HMAC<SHA512>

  init(call: CallID, epoch: UInt32, listHash: [UInt8], secret: SymmetricKey) {
    let pseudoRandomKey = HKDF<SHA512>.extract(inputKeyMaterial: secret, salt: Array(call.text.utf8))
    var info = Transcript("conclave-sender-v2")
    info.append(epoch)
    info.append(listHash)
    var expansion = HMAC<SHA512>(key: SymmetricKey(data: pseudoRandomKey))
    expansion.update(data: info.bytes)
    self.expansion = expansion
  }

  func baseKey(of participant: ParticipantNumber, _ identity: SenderIdentity) -> SymmetricKey {
    var info = Transcript()
    info.append(participant)
    info.append(identity.fingerprint)
    info.append(identity.joinId)
    info.append([1] as [UInt8])
    var expansion = expansion
    expansion.update(data: info.bytes)
    return SymmetricKey(data: expansion.finalize())
  }
}

/// The other senders of an epoch whose frames are opened: those of its list except this device and those that are not heard, and devices that rang and have
/// joined since. A list of a thousand is shared, not copied.
struct Senders: Sendable, ExpressibleByDictionaryLiteral {
  private let list: EpochList?
  private var unheard: Set<ParticipantNumber>
  private var joined: [ParticipantNumber: SenderIdentity]

  /// - Parameters:
  ///   - unheard: the numbers of the list that do not count, including this device's own.
  ///   - joined: senders for which the list has no number.
  init(of list: EpochList, without unheard: Set<ParticipantNumber>, joined: [ParticipantNumber: SenderIdentity]) {
    self.list = list
    self.unheard = unheard
    self.joined = joined
  }

  /// Only these.
  init(dictionaryLiteral senders: (ParticipantNumber, SenderIdentity)...) { self.init(senders) }

  /// Only these.
  init(_ senders: [(ParticipantNumber, SenderIdentity)]) {
    list = nil
    unheard = []
    joined = Dictionary(senders) { first, _ in first }
  }

  subscript(participant: ParticipantNumber) -> SenderIdentity? {
    if let sender = joined[participant] { return sender }
    guard !unheard.contains(participant) else { return nil }
    return list?[participant].flatMap(SenderIdentity.init)
  }

  func contains(_ participant: ParticipantNumber) -> Bool {
    joined[participant] != nil || !unheard.contains(participant) && list?.holds(participant: participant) ?? false
  }

  /// Removes a device, and returns the numbers with which it sent.
  mutating func exclude(_ fingerprint: [UInt8]) -> [ParticipantNumber] {
    let numbers =
      (list?.entries ?? []).filter { $0.participant > 0 && $0.fingerprint.bytes == fingerprint }.map(\.participant)
      + joined.filter { $0.value.fingerprint == fingerprint }.map(\.key)
    for number in numbers { joined[number] = nil }
    unheard.formUnion(numbers)
    return numbers
  }

  /// Adds new senders; a known sender stays until it is excluded.
  mutating func update(_ new: Senders) {
    unheard.formIntersection(new.unheard)
    joined.merge(new.joined) { known, _ in known }
  }
}

extension SenderIdentity {
  /// nil for a device that rang.
  init?(_ entry: ListEntry) {
    guard let joinId = entry.joinId?.bytes else { return nil }
    self.init(fingerprint: entry.fingerprint.bytes, joinId: joinId)
  }
}

/// The keys for the other senders' frames of an epoch. This device is never among them: frames that the server reflects do not open.
package struct EpochKeys: Sendable {
  package let epoch: UInt32
  let derivation: SenderDerivation
  let senders: Senders
}

/// The key that seals this device's own frames in one epoch, made only from its own values.
package struct SendingKey: Sendable {
  package let epoch: UInt32
  let participant: ParticipantNumber
  /// The stay: no other stay ever has this key.
  let joinId: [UInt8]
  let baseKey: SymmetricKey
}
