import Octets

/// The datagrams of one DTLS flight (RFC 6347 section 4.2.4), kept for retransmission.
struct Flight {
  private var bytes: [UInt8] = []
  private var lengths: [Int] = []

  var isEmpty: Bool { lengths.isEmpty }
  var byteCount: Int { bytes.count }

  mutating func append(_ datagram: UnsafeRawBufferPointer) {
    bytes.append(contentsOf: datagram)
    lengths.append(datagram.count)
  }

  /// - Parameter sequenceNumber: of the next record of epoch 0. Each time that such a record is sent it gets a new one, because
  ///   the peer drops a number that it has seen, even if it could not use the record then. A record of epoch 1 is encrypted under
  ///   its number and stays unchanged; the peer accepts it unless it has already used it.
  mutating func send(numbering sequenceNumber: inout UInt64, _ send: (UnsafeRawBufferPointer) -> Void) {
    bytes.withUnsafeMutableBytes { bytes in
      var start = 0
      for length in lengths {
        let datagram = UnsafeMutableRawBufferPointer(rebasing: bytes[start..<start + length])
        Self.number(datagram, from: &sequenceNumber)
        send(UnsafeRawBufferPointer(datagram))
        start += length
      }
    }
  }

  /// A record is type, version, epoch (2 bytes), sequence number (6), length (2), content (RFC 6347 section 4.1).
  private static func number(_ datagram: UnsafeMutableRawBufferPointer, from sequenceNumber: inout UInt64) {
    var record = 0
    while record + 13 <= datagram.count {
      let epoch = datagram.bytes.uint16(at: record + 3)
      if epoch == 0 {
        // The epoch's two zero bytes are the upper ones of the word.
        datagram.store(sequenceNumber, at: record + 3)
        sequenceNumber += 1  // in range: our own records, counted
      }
      record += 13 + Int(datagram.bytes.uint16(at: record + 11))
    }
  }
}
