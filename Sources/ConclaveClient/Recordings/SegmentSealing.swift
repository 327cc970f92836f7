import Crypto
import MediaModel
import Octets
import Recording

/// The file of a segment that a device makes: the header, then AES-256-GCM over the records with the header as additional data (protocol section 13.2).
enum SegmentSealing {
  /// The file of the segment that `header` describes; nil if it would be longer than 8 MiB.
  static func seal(_ records: [UInt8], under chain: ReelChain, _ header: SegmentHeader) -> [UInt8]? {
    let head = header.bytes
    guard
      SegmentHeader.byteCount + records.count + SegmentHeader.tagBytes <= SegmentHeader.maximumSegmentBytes,
      let nonce = try? AES.GCM.Nonce(data: header.nonce),
      let box = try? AES.GCM.seal(records, using: chain.segmentKey, nonce: nonce, authenticating: head)
    else { return nil }
    return head + box.ciphertext + box.tag
  }

  /// The records of `file`, whose header was parsed; nil if it was not sealed under this key, or was changed.
  static func open(_ file: [UInt8], under chain: ReelChain, _ header: SegmentHeader) -> [UInt8]? {
    guard header.isSealed, file.count >= SegmentHeader.byteCount + SegmentHeader.tagBytes,
      let nonce = try? AES.GCM.Nonce(data: header.nonce),
      let box = try? AES.GCM.SealedBox(
        nonce: nonce, ciphertext: file[SegmentHeader.byteCount...].dropLast(SegmentHeader.tagBytes),
        tag: file.suffix(SegmentHeader.tagBytes)),
      let records = try? AES.GCM.open(
        box, using: chain.segmentKey, authenticating: file[..<SegmentHeader.byteCount])
    else { return nil }
    return Array(records)
  }
}

extension SegmentHash {
  /// The hash of a whole file.
  init(of file: [UInt8]) {
    // SHA-256 has 32 bytes.
    self = SegmentHash(Array(SHA256.hash(data: file)))!
  }
}
