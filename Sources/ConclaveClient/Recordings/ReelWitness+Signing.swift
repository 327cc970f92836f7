import Contract
import MediaModel
import Octets
import Recording

extension ReelWitness {
  /// Says that `segments` segments of a reel end in `head`. `at` is when the last of them ends.
  static func signing(
    reel: UInt32, segments: UInt32, head: SegmentHash, at: Timestamp, isEnd: Bool, of statement: SignedStatement,
    by identity: DeviceIdentity
  ) -> ReelWitness {
    var witness = ReelWitness(
      reel: reel, segments: segments, head: Base64Bytes(head.bytes), at: at, isEnd: isEnd, by: identity.address,
      sigAlg: SignAlgorithm.es256.rawValue, signature: Base64Bytes([]))
    witness.signature = Base64Bytes(
      identity.sign(Transcript.witness(witness, statement: statement.hash).bytes))
    return witness
  }

  /// The head that it names; nil if `signer` has not signed it.
  func head(of statement: SignedStatement, from signer: RecordingSigner) -> ReelHead? {
    guard by == signer.address, segments <= UInt32(ReelIndex.capacity), let hash = SegmentHash(head.bytes),
      signer.signed(Transcript.witness(self, statement: statement.hash).bytes, sigAlg, signature)
    else { return nil }
    return ReelHead(segments: segments, hash: hash, isEnd: isEnd)
  }
}
