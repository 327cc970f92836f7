import Crypto
package import MediaModel

extension FrameCipher {
  /// A cipher for measurements on servers without key agreement: it costs as much as a call's cipher, and keeps nothing secret.
  ///
  /// - Parameters:
  ///   - participant: whose frames it encrypts.
  ///   - others: whose frames it decrypts.
  package convenience init(withoutSecrecy participant: ParticipantNumber, others: [ParticipantNumber]) {
    self.init()
    let epoch: UInt32 = 1
    let derivation = SenderDerivation(
      call: CallID(unchecked: "measurement"), epoch: epoch, listHash: [],
      secret: SymmetricKey(data: [UInt8](repeating: 0, count: 32)))
    func sender(_ number: ParticipantNumber) -> SenderIdentity {
      SenderIdentity(fingerprint: [], joinId: Array("\(number)".utf8))
    }
    let own = sender(participant)
    send(
      SendingKey(
        epoch: epoch, participant: participant, joinId: own.joinId,
        baseKey: derivation.baseKey(of: participant, own)))
    let senders = Senders(others.map { ($0, sender($0)) })
    install(EpochKeys(epoch: epoch, derivation: derivation, senders: senders))
  }
}
