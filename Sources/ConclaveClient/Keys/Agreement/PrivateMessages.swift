import Contract
import Crypto
import Foundation
import MediaModel
import Octets

/// Private messages: sealed to each recipient's join key in HPKE's auth mode, so that the recipient, and nobody else, knows who wrote (protocol section 5.10).
struct PrivateMessages: Sendable {
  static let maximumRecipients = 64
  /// How many private messages may open in an epoch, which is how many encapsulated keys are remembered.
  static let maximumOpened = 10_000
  private static let wrapByteCount = 113

  /// The encapsulated keys of the private messages that have opened, by epoch: none opens twice.
  var opened: [UInt32: Set<[UInt8]>] = [:]

  /// The epoch no longer has keys.
  mutating func forget(_ epoch: UInt32) { opened[epoch] = nil }

  /// The content of a private message's SFrame, ready for sealing; nil if a recipient is not on the list of the epoch in use or its key is of no
  /// use.
  static func content(
    _ text: [UInt8], to recipients: [ParticipantNumber], in epoch: Epoch, own: OwnStay, known: inout KnownDevices
  ) -> [UInt8]? {
    guard (1...maximumRecipients).contains(recipients.count), Set(recipients).count == recipients.count
    else { return nil }
    let contentKey = SymmetricKey(size: .bits256)
    guard let nonce = try? AES.GCM.Nonce(data: [UInt8](repeating: 0, count: 12)),
      let box = try? AES.GCM.seal(MessagePadding.padded(text), using: contentKey, nonce: nonce)
    else { return nil }
    let ciphertext = Array(box.ciphertext + box.tag)
    let additionalData = additionalData(recipients, ciphertext)
    var content: [UInt8] = [UInt8(recipients.count)]
    for recipient in recipients {
      guard recipient != own.participant, let key = key(of: recipient, in: epoch, call: own.call, known: &known),
        var sender = try? HPKE.Sender(
          recipientKey: key, ciphersuite: SingleShotHPKE.suite,
          info: info(own.call, epoch, from: own.participant, to: recipient), authenticatedBy: own.join.privateKey),
        let wrapped = try? sender.seal(contentKey.withUnsafeBytes { Array($0) }, authenticating: additionalData)
      else { return nil }
      var number = Transcript()
      number.append(recipient)
      content += number.bytes + sender.encapsulatedKey + wrapped
    }
    return content + ciphertext
  }

  /// The text of a private message of `sender` whose SFrame was of this epoch; nil if it does not name this device, is not the sender's for exactly
  /// these recipients, or has opened before. HPKE has no freshness, and any member can put the wrap into an SFrame of its own.
  mutating func open(
    _ content: [UInt8], from sender: ParticipantNumber, in epoch: Epoch, own: OwnStay, known: inout KnownDevices
  ) -> [UInt8]? {
    guard let count = content.first.map(Int.init), (1...Self.maximumRecipients) ~= count,
      content.count >= 1 + count * (4 + Self.wrapByteCount) + 16
    else { return nil }
    var recipients: [ParticipantNumber] = []
    var wrap: ArraySlice<UInt8>?
    for index in 0..<count {
      let start = 1 + index * (4 + Self.wrapByteCount)
      let number = ParticipantNumber(networkOrder: content[start..<start + 4])
      recipients.append(number)
      if number == own.participant { wrap = content[start + 4..<start + 4 + Self.wrapByteCount] }
    }
    let ciphertext = Array(content[(1 + count * (4 + Self.wrapByteCount))...])
    guard let wrap, Set(recipients).count == count,
      let key = Self.key(of: sender, in: epoch, call: own.call, known: &known), isFresh(wrap, in: epoch.number),
      var recipient = try? HPKE.Recipient(
        privateKey: own.join.privateKey, ciphersuite: SingleShotHPKE.suite,
        info: Self.info(own.call, epoch, from: sender, to: own.participant),
        encapsulatedKey: Data(wrap.prefix(SingleShotHPKE.encapsulatedByteCount)), authenticatedBy: key),
      let contentKey = try? recipient.open(
        wrap.dropFirst(SingleShotHPKE.encapsulatedByteCount),
        authenticating: Self.additionalData(recipients, ciphertext)),
      let nonce = try? AES.GCM.Nonce(data: [UInt8](repeating: 0, count: 12)),
      let box = try? AES.GCM.SealedBox(
        nonce: nonce, ciphertext: ciphertext.dropLast(16), tag: ciphertext.suffix(16)),
      let padded = try? AES.GCM.open(box, using: SymmetricKey(data: contentKey)),
      let text = MessagePadding.text(of: Array(padded))
    else { return nil }
    opened[epoch.number, default: []].insert(Self.encapsulated(wrap))
    return text
  }

  private static func encapsulated(_ wrap: ArraySlice<UInt8>) -> [UInt8] {
    Array(wrap.prefix(SingleShotHPKE.encapsulatedByteCount))
  }

  private func isFresh(_ wrap: ArraySlice<UInt8>, in epoch: UInt32) -> Bool {
    let opened = opened[epoch] ?? []
    return opened.count < Self.maximumOpened && !opened.contains(Self.encapsulated(wrap))
  }

  /// The generation-0 join key of a listed device that signed it.
  private static func key(
    of participant: ParticipantNumber, in epoch: Epoch, call: CallID, known: inout KnownDevices
  ) -> P256.KeyAgreement.PublicKey? {
    guard let entry = epoch.list[participant], let key = entry.joinKey, key.alg == WrapAlgorithm.hpke.rawValue,
      known.isHeard(entry), known.isSigned(key, of: entry, call: call)
    else { return nil }
    return try? P256.KeyAgreement.PublicKey(derRepresentation: key.publicKey.bytes)
  }

  private static func info(
    _ call: CallID, _ epoch: Epoch, from: ParticipantNumber, to: ParticipantNumber
  ) -> Data {
    var info = Transcript("conclave-message-v2")
    info.appendPrefixed(call.text)
    info.append(epoch.listHash)
    info.append(from)
    info.append(to)
    return Data(info.bytes)
  }

  private static func additionalData(_ recipients: [ParticipantNumber], _ ciphertext: [UInt8]) -> [UInt8] {
    var numbers = Transcript()
    for recipient in recipients { numbers.append(recipient) }
    return numbers.sha256 + SHA256.hash(data: ciphertext)
  }
}
