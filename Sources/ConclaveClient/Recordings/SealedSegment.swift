import Contract
import Crypto
import MediaModel
import Octets
import Recording

/// A sealed segment, ready to be sent. Store it until the server has shown that it has it, and send the same bytes again if need be: a number is sealed once.
public struct SealedSegment: Sendable, Hashable {
  /// Its place in its reel, from 0 on.
  public let number: UInt32
  /// The file: header and sealed records.
  public let file: [UInt8]
  /// The value of the header `Conclave-Witness`: the device's signature over all segments up to this one.
  public let witness: String
  let header: SegmentHeader
  let hash: SegmentHash

  init(_ file: [UInt8], _ header: SegmentHeader, hash: SegmentHash, witness: ReelWitness) {
    number = header.number
    self.file = file
    self.header = header
    self.hash = hash
    self.witness = "\(witness.at.milliseconds):\(witness.sigAlg):\(witness.signature.base64)"
  }

  /// A segment that was stored; nil if `file` is no sealed segment.
  public init?(file: [UInt8], witness: String) {
    guard file.count <= SegmentHeader.maximumSegmentBytes,
      let header = try? SegmentHeader(parsing: file.span.bytes), header.isSealed
    else { return nil }
    number = header.number
    self.file = file
    self.witness = witness
    self.header = header
    hash = SegmentHash(of: file)
  }
}
