import RTP
import Seeded
import Testing

struct DependencyDescriptorTests {
  /// Every frame of the browsers' streams, compared with another parser's results for the same bytes
  /// (Vectors/expected).
  @Test(arguments: ExpectedFrames.names)
  func readsTheFramesOf(_ name: String) throws {
    let expected = try ExpectedFrames(named: name)
    let capture = try Capture(named: String(expected.capture.dropLast(5)))
    let id = try #require(
      capture.extensionID("https://aomediacodec.github.io/av1-rtp-spec/#dependency-descriptor-rtp-header-extension"))
    var structure = DependencyStructure()
    var frames: [UInt16: DependencyDescriptor] = [:]
    for packet in capture.rtp {
      guard let header = parsed(packet), header.ssrc == expected.ssrc, header.payloadLength > 0 else { continue }
      let element = try #require(extensionElement(id, header, packet))
      let read = try DependencyDescriptor(parsing: element, by: &structure)
      let first = frames[read.frameNumber]
      #expect(first == nil || first?.frame.present == read.frame.present)
      frames[read.frameNumber] = first ?? read
    }
    #expect(frames.count == expected.frames.count)
    for frame in expected.frames {
      let read = try #require(frames[frame.number])
      #expect(read.startsFrame)
      #expect(read.isKeyFrame == frame.isKeyFrame)
      #expect(
        Int(read.frame.spatialLayer) == frame.spatialLayer && Int(read.frame.temporalLayer) == frame.temporalLayer)
      let marks = frame.indications.map { $0 == "-" || $0 == "S" ? $0 : "x" }
      #expect(indications(read.frame, structure.targetCount) == marks)
      #expect((0..<read.frame.referenceCount).map { Int(read.frame.reference($0)) } == frame.references)
    }
    let targets = (0..<structure.targetCount).map { [structure.spatialLayer(of: $0), structure.temporalLayer(of: $0)] }
    #expect(targets == expected.decodeTargets)
  }

  @Test func readsTheHeightsOfLayers() throws {
    var structure = DependencyStructure()
    let key = try Capture.firstDescriptor(of: "chrome-av1-l3t3key-e2ee")
    let descriptor = try DependencyDescriptor(parsing: key, by: &structure)
    #expect(descriptor.isKeyFrame && descriptor.activeTargets == 0x1ff)
    #expect((0..<3).map { structure.height(of: $0) } == [180, 360, 720])
    #expect(structure.isNested(0, in: 2) && !structure.isNested(2, in: 0))
    // Simulcast in one stream: the lower layer's frames are not in the higher layer.
    #expect(!structure.isNested(0, in: 8))
  }

  /// Two targets, two templates: T0 with reference 2, T1 with reference 1.
  static let small = "000101 00001" + "01 11" + "10 11 00 01" + "1 0001 0 1 0000 0" + "00" + "0"

  @Test func customFieldsReplaceTheTemplates() throws {
    var structure = DependencyStructure()
    let key = bits("1 1 000101 0000000000000001", "1 0 0 1 0" + Self.small + "00")
    let first = try DependencyDescriptor(parsing: key, by: &structure)
    #expect(first.isKeyFrame)
    #expect(structure.firstTemplateID == 5 && structure.templateCount == 2 && structure.targetCount == 2)
    let plain = try DependencyDescriptor(parsing: bits("1 0 000110 0000000000000010"), by: &structure)
    #expect(plain.startsFrame && !plain.endsFrame && plain.frameNumber == 2)
    #expect(plain.frame.temporalLayer == 1 && plain.frame.present == 0b10 && plain.frame.reference(0) == 1)
    let custom = bits(
      "0 1 000110 1111111111111111", "0 1 1 1 0" + "10" + "11 10" + "01 0011" + "11 111111111111" + "00")
    let read = try DependencyDescriptor(parsing: custom, by: &structure)
    #expect(read.activeTargets == 0b10)
    #expect(read.frame.present == 0b11 && read.frame.switching == 0b10)
    #expect((0..<read.frame.referenceCount).map { read.frame.reference($0) } == [4, 4096])
  }

  @Test func refusesWhatItCannotUse() throws {
    var structure = DependencyStructure()
    func fault(_ element: [UInt8]) -> DependencyDescriptor.Fault? {
      do throws(DependencyDescriptor.Fault) {
        _ = try DependencyDescriptor(parsing: element, by: &structure)
        return nil
      } catch { return error }
    }
    #expect(fault(bits("1 1 000101 0000000000000001")) == .unknownTemplate)
    #expect(fault(bits("0 1 000101 0000000000000001", "1 0 0 1 0" + Self.small + "00")) == .malformed)
    #expect(fault(bits("1 1 000111 0000000000000001", "1 0 0 1 0" + Self.small + "00")) == .malformed)
    #expect(structure.templateCount == 0)
    #expect(fault(bits("1 1 000101 0000000000000001", "1 0 0 1 0" + Self.small + "00")) == nil)
    #expect(fault(bits("1 1 000111 0000000000000010")) == .unknownTemplate)
    #expect(fault([0x80, 0]) == .malformed)
    let nine = String(repeating: "01 0000", count: 9) + "00"
    #expect(fault(bits("1 1 000101 0000000000000011", "0 0 0 1 0" + nine)) == .malformed)
    #expect(structure.templateCount == 2)
  }

  /// It is refused however much of it is missing, and the previous structure stays.
  @Test func refusesACutStructure() throws {
    var structure = DependencyStructure()
    _ = try DependencyDescriptor(
      parsing: bits("1 1 000101 0000000000000001", "1 0 0 1 0" + Self.small + "00"), by: &structure)
    let key = try Capture.firstDescriptor(of: "chrome-av1-l3t3key-e2ee")
    for length in 4..<key.count {
      #expect(throws: DependencyDescriptor.Fault.malformed) {
        try DependencyDescriptor(parsing: Array(key[..<length]), by: &structure)
      }
    }
    #expect(structure.targetCount == 2)
  }

  @Test func rewritesNumbersInPlace() throws {
    var key = try Capture.firstDescriptor(of: "chrome-vp9-l3t3key-e2ee")
    let before = key
    var structure = DependencyStructure()
    _ = try DependencyDescriptor(parsing: key, by: &structure)
    let first = structure.firstTemplateID
    key.withUnsafeMutableBytes { DependencyDescriptor.shift(frameNumber: 0xfedc, templates: 61, in: $0) }
    let read = try DependencyDescriptor(parsing: key, by: &structure)
    #expect(read.frameNumber == 0xfedd && read.isKeyFrame)
    #expect(structure.firstTemplateID == (first &+ 61) & 63)
    #expect(structure.template((first &+ 61) & 63)?.present == 0x1ff)
    key.withUnsafeMutableBytes { DependencyDescriptor.shift(frameNumber: 0x0124, templates: 3, in: $0) }
    #expect(key == before)
  }

  @Test(arguments: [31, 32, 33] as [UInt64])
  func mutatedDescriptorsAreReadWithinTheirBounds(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    let keys = try ["chrome-av1-l3t3key-e2ee", "chrome-vp8-simulcast-e2ee"].map(Capture.firstDescriptor(of:))
    let custom = "0 1 1 1 1" + "111111111" + String(repeating: "01", count: 40)
    let corpus = keys + [bits("1 1 000101 0000000000000001", custom)]
    var structure = DependencyStructure()
    var read = 0
    for _ in 0..<20_000 {
      let element = generator.mutated(corpus.randomElement(using: &generator)!)
      guard let descriptor = try? DependencyDescriptor(parsing: element, by: &structure) else { continue }
      #expect(descriptor.frame.referenceCount <= FrameDependencies.maximumReferences)
      #expect(structure.targetCount == 32 || UInt64(descriptor.frame.present) >> UInt64(structure.targetCount) == 0)
      read += 1
    }
    #expect(read > 500)
  }

  private func indications(_ frame: FrameDependencies, _ targets: Int) -> [Character] {
    (0..<targets).map { target in
      frame.switching >> UInt32(target) & 1 != 0 ? "S" : frame.present >> UInt32(target) & 1 != 0 ? "x" : "-"
    }
  }
}

extension DependencyDescriptor {
  fileprivate init(parsing element: [UInt8], by structure: inout DependencyStructure) throws(Fault) {
    self = try Self(parsing: element.span.bytes, by: &structure)
  }
}

private func extensionElement(_ id: UInt8, _ header: RTPHeader, _ packet: [UInt8]) -> [UInt8]? {
  guard let extensions = HeaderExtensions(header) else { return nil }
  return packet.withUnsafeBytes { extensions.element(id, in: $0.bytes).map { Array(packet[$0.range]) } }
}

/// Bits written as digits; spaces are ignored, and the last byte is filled up with zeros.
private func bits(_ texts: String...) -> [UInt8] {
  let digits = texts.joined().utf8.filter { $0 != UInt8(ascii: " ") }.map { $0 & 1 }
  return stride(from: 0, to: digits.count, by: 8).map { start in
    (0..<8).reduce(0) { $0 << 1 | (start + $1 < digits.count ? digits[start + $1] : 0) }
  }
}

extension Capture {
  /// The first dependency descriptor on a packet with a payload.
  fileprivate static func firstDescriptor(of name: String) throws -> [UInt8] {
    let capture = try Capture(named: name)
    let id = try #require(
      capture.extensionID("https://aomediacodec.github.io/av1-rtp-spec/#dependency-descriptor-rtp-header-extension"))
    let descriptors = capture.rtp.lazy.compactMap { packet -> [UInt8]? in
      guard let header = parsed(packet), header.payloadLength > 0 else { return nil }
      return extensionElement(id, header, packet)
    }
    return try #require(descriptors.first)
  }
}
