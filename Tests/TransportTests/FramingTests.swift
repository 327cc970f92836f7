import MediaModel
import Seeded
import Testing
import Transport

/// RFC 4571: datagrams over a stream of bytes.
struct FramingTests {
  private static let maximum = 1_500

  @Test func howTheStreamIsCutNeverMatters() {
    let datagrams = [1, 20, 255, 256, Self.maximum, 2].enumerated().map { index, length in
      (0..<length).map { UInt8(truncatingIfNeeded: index + $0) }
    }
    let stream = framed(datagrams)
    for cut in 0...stream.count {
      let input = FramedInput(maximum: Self.maximum)
      #expect(read([Array(stream[..<cut]), Array(stream[cut...])], input) == datagrams, "cut at \(cut)")
    }
    #expect(read(stream.map { [$0] }, FramedInput(maximum: Self.maximum)) == datagrams)
  }

  @Test func aNullPacketSaysNothing() {
    #expect(read([[0, 0, 0, 1, 7, 0, 0]], FramedInput(maximum: Self.maximum)) == [[7]])
  }

  @Test func aLengthBeyondTheMaximumEndsTheReading() {
    #expect(read([[0, 1, 7, 0x05, 0xdd]], FramedInput(maximum: Self.maximum)) == nil)
    #expect(read([[0xff], [0xff]], FramedInput(maximum: Self.maximum)) == nil)
    #expect(read([[0x05], [0xdc, 1]], FramedInput(maximum: Self.maximum)) == [])
  }

  /// Regression inputs: an empty piece, only a length, a length cut in two.
  static let corpus: [[UInt8]] = [[], [0], [0, 3], [0, 3, 1, 2], [0, 0, 0, 0], [0, 2, 1, 2, 5], [5, 0xdc]]

  @Test(arguments: [1, 2, 3, 4] as [UInt64])
  func mutatedStreamsAreReadWithinTheirBoundsHoweverTheyAreCut(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    for _ in 0..<2_000 {
      var stream = framed((0..<4).map { _ in random.bytes(Int(random.next() % 90)) })
      stream = random.mutated(stream + Self.corpus[Int(random.next() % UInt64(Self.corpus.count))])
      var pieces: [[UInt8]] = []
      var rest = stream[...]
      while !rest.isEmpty {
        pieces.append(Array(rest.prefix(1 + Int(random.next() % 64))))
        rest = rest.dropFirst(pieces[pieces.count - 1].count)
      }
      let whole = read([stream], FramedInput(maximum: 100))
      #expect(read(pieces, FramedInput(maximum: 100)) == whole, "seed \(seed)")
    }
  }

  /// The stream holds whole datagrams in their order, however many bytes a connection accepts of each run. The others are counted.
  @Test(arguments: [11, 12, 13, 14] as [UInt64])
  func refusedBytesAreLostByWholeDatagrams(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    let output = FramedOutput()
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 16_384, alignment: 1)
    defer { buffer.deallocate() }
    var stream: [UInt8] = []
    var sent: [[UInt8]] = []
    var lost = 0
    for number in 0..<2_000 {
      let count = Int(random.next() % 5) + 1
      let segment = Int(random.next() % 300) + 3
      let lengths = Array(repeating: segment, count: count - 1) + [Int(random.next() % UInt64(segment)) + 1]
      let datagrams = lengths.map { length in (0..<length).map { UInt8(truncatingIfNeeded: number + $0) } }
      sent += datagrams
      var bytes = datagrams.flatMap { $0 }
      bytes.withUnsafeMutableBytes { bytes in
        let run = DatagramRun(
          base: bytes.baseAddress!, length: bytes.count, segment: segment,
          destination: SocketAddress(ipv4: 1, port: 1))
        let framed = output.frame(run, into: buffer)!
        let taken = min(framed.count, Int(random.next() % 1_200))
        stream += framed[..<taken]
        lost += output.took(taken, of: framed)
      }
      let unfinished = output.unfinished
      let more = Int(random.next() % UInt64(unfinished.count + 1))
      stream += unfinished[..<more]
      output.tookUnfinished(more)
    }
    stream += Array(output.unfinished)
    let arrived = read([stream], FramedInput(maximum: Self.maximum))
    #expect(arrived.map { $0.count + lost } == sent.count, "seed \(seed)")
    #expect(lost > 100)
    // Each is found after the previous one.
    var rest = sent[...]
    for datagram in arrived ?? [] {
      guard let place = rest.firstIndex(of: datagram) else {
        Issue.record("a datagram that was not sent, or out of order; seed \(seed)")
        break
      }
      rest = rest[(place + 1)...]
    }
  }

  @Test func aRunThatFitsNowhereIsRefused() {
    let output = FramedOutput()
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 4_096, alignment: 1)
    defer { buffer.deallocate() }
    func frame(_ length: Int, segment: Int) -> Int? {
      let run = DatagramRun(
        base: buffer.baseAddress!, length: length, segment: segment, destination: SocketAddress(ipv4: 1, port: 1))
      let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 3_000, alignment: 1)
      defer { room.deallocate() }
      return output.frame(run, into: room)?.count
    }
    #expect(frame(FramedOutput.maximum, segment: FramedOutput.maximum) == FramedOutput.maximum + 2)
    #expect(frame(FramedOutput.maximum + 1, segment: FramedOutput.maximum + 1) == nil)
    #expect(frame(2_996, segment: 1_498) == 3_000)
    #expect(frame(2_998, segment: 1_499) == nil)
  }

  private func framed(_ datagrams: [[UInt8]]) -> [UInt8] {
    datagrams.flatMap { [UInt8($0.count >> 8), UInt8($0.count & 0xff)] + $0 }
  }

  /// The datagrams that come out; nil when the stream is refused.
  private func read(_ pieces: [[UInt8]], _ input: FramedInput) -> [[UInt8]]? {
    var datagrams: [[UInt8]] = []
    for piece in pieces {
      // It has exactly this size, so that an access beyond it is detected.
      let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: input.headroom + piece.count, alignment: 1)
      defer { buffer.deallocate() }
      UnsafeMutableRawBufferPointer(rebasing: buffer[input.headroom...]).copyBytes(from: piece)
      let isReadable = input.split(buffer) {
        datagrams.append(Array($0))
        // It may be decrypted in place.
        $0.initializeMemory(as: UInt8.self, repeating: 0xff)
      }
      guard isReadable else { return nil }
    }
    return datagrams
  }
}
