import RTP
import Testing

/// Recorded packets of real browsers, counted. The expected numbers come from another parser (aiortc 1.16) for the same
/// bytes.
struct CaptureTests {
  struct Counts: Equatable, Sendable {
    var rtp = 0
    var payload = 0
    var padding = 0
    var mids = 0
    var audioLevels = 0
    var vp8KeyFrames = 0
    var vp8PictureIDs = 0
    var senderReports = 0
  }

  static let expected: [(String, Counts)] = [
    ("chrome-av1-l1t1-e2ee", counts(118, 64_722, 1_275, 118, 48, 0, 0, 2)),
    ("chrome-av1-l3t3key-e2ee", counts(218, 126_303, 1_785, 218, 62, 0, 0, 2)),
    ("chrome-h264-e2ee", counts(119, 61_306, 4_335, 119, 40, 0, 0, 1)),
    ("chrome-vp8-plain", counts(118, 63_032, 1_275, 118, 44, 1, 33, 2)),
    ("chrome-vp8-simulcast-e2ee", counts(315, 162_338, 1_020, 315, 51, 3, 0, 5)),
    ("chrome-vp9-l3t3key-e2ee", counts(218, 127_069, 2_550, 218, 50, 0, 0, 2)),
    ("firefox-av1-e2ee", counts(119, 35_712, 510, 119, 67, 0, 0, 1)),
    ("firefox-vp8-plain", counts(119, 51_566, 3_570, 119, 52, 1, 53, 1)),
    ("firefox-vp8-simulcast-e2ee", counts(317, 82_008, 7_650, 317, 93, 2, 0, 3)),
    ("firefox-vp9-e2ee", counts(119, 49_455, 4_845, 119, 51, 0, 0, 1)),
  ]

  @Test(arguments: expected)
  func readsAllOf(_ name: String, _ expected: Counts) throws {
    let capture = try Capture(named: name)
    let mid = try #require(capture.extensionID("urn:ietf:params:rtp-hdrext:sdes:mid"))
    let audioLevel = try #require(capture.extensionID("urn:ietf:params:rtp-hdrext:ssrc-audio-level"))
    var counts = Counts()
    for packet in capture.rtp {
      try packet.withUnsafeBytes { packet in
        let read = RTPHeader(parsing: packet.bytes)
        let header = try #require(read)
        counts.rtp += 1
        counts.payload += header.payloadLength
        counts.padding += header.paddingLength
        let extensions = try #require(HeaderExtensions(header))
        if extensions.element(mid, in: packet.bytes) != nil { counts.mids += 1 }
        if let level = extensions.element(audioLevel, in: packet.bytes) {
          #expect(level.length == 1)
          counts.audioLevels += 1
        }
        guard name.contains("vp8"), [96, 120].contains(header.payloadType), header.payloadLength > 0 else { return }
        let payload = UnsafeRawBufferPointer(rebasing: packet[header.payloadRange])
        let vp8 = VP8Descriptor(parsing: payload.bytes)
        let descriptor = try #require(vp8)
        if descriptor.isKeyFrame(payload.bytes) { counts.vp8KeyFrames += 1 }
        if descriptor.pictureID != nil { counts.vp8PictureIDs += 1 }
      }
    }
    counts.senderReports = try senderReports(in: capture)
    #expect(counts == expected)
  }

  /// A receiver with other ids finds the same audio levels, and nothing else.
  @Test(arguments: Capture.names)
  func rewritingKeepsOneExtensionAndHidesTheRest(of name: String) throws {
    let capture = try Capture(named: name)
    let audioLevel = try #require(capture.extensionID("urn:ietf:params:rtp-hdrext:ssrc-audio-level"))
    var map = HeaderExtensionMap()
    map[audioLevel] = 9
    for packet in capture.rtp {
      let header = try #require(parsed(packet))
      let extensions = try #require(HeaderExtensions(header))
      let before = packet.withUnsafeBytes { extensions.element(audioLevel, in: $0.bytes) }.map { packet[$0.offset] }
      let copy = packet.withExtensions(by: map)
      let new = try #require(parsed(copy))
      let rest = HeaderExtensions(new)
      let after = (UInt8(1)...30).filter { id in copy.withUnsafeBytes { rest?.element(id, in: $0.bytes) } != nil }
      #expect(after == (before == nil ? [] : [9]))
      #expect(copy.withUnsafeBytes { rest?.element(9, in: $0.bytes) }.map { copy[$0.offset] } == before)
      #expect(new.payloadLength == header.payloadLength)
      #expect(new.headerLength == header.headerLength - 4 - header.extensionLength + (before == nil ? 0 : 8))
    }
  }

  /// The recordings begin with their only key frame. The one of H.264 has its parameter sets in a separate packet.
  @Test(arguments: [
    ("chrome-av1-l1t1-e2ee", PayloadCodec.av1, [45], 33, 1), ("chrome-av1-l3t3key-e2ee", .av1, [45], 91, 1),
    ("chrome-h264-e2ee", .h264, [39, 102, 104, 108, 114, 116], 35, 2), ("firefox-av1-e2ee", .av1, [99], 42, 1),
    ("chrome-vp9-l3t3key-e2ee", .vp9, [98, 100], 68, 1), ("firefox-vp9-e2ee", .vp9, [121], 49, 1),
  ])
  func keyFramesAreToldByTheirClearBytes(
    _ name: String, _ codec: PayloadCodec, _ types: [UInt8], _ packets: Int, _ starts: Int
  ) throws {
    let video = try Capture(named: name).rtp.compactMap { packet -> (timestamp: UInt32, isKey: Bool)? in
      guard let header = parsed(packet), types.contains(header.payloadType), header.payloadLength > 0 else {
        return nil
      }
      let payload = Array(packet[header.payloadRange])
      return (header.timestamp, codec.startsKeyFrame(payload.span.bytes, vp8: nil))
    }
    #expect(video.count == packets)
    let keys = video.filter(\.isKey)
    #expect(keys.count == starts)
    #expect(keys.allSatisfy { $0.timestamp == video[0].timestamp })
  }

  private func senderReports(in capture: Capture) throws -> Int {
    let sources = Set(capture.rtp.compactMap { parsed($0)?.ssrc })
    var count = 0
    for datagram in capture.rtcp {
      let (ssrcs, isBroken) = packets(datagram) { packet -> UInt32? in
        if case .senderReport(let report) = packet { report.ssrc } else { nil }
      }
      #expect(!isBroken)
      for ssrc in ssrcs.compactMap(\.self) {
        #expect(sources.contains(ssrc))
        count += 1
      }
    }
    return count
  }

  private static func counts(
    _ rtp: Int, _ payload: Int, _ padding: Int, _ mids: Int, _ levels: Int, _ keyFrames: Int, _ pictureIDs: Int,
    _ reports: Int
  ) -> Counts {
    Counts(
      rtp: rtp, payload: payload, padding: padding, mids: mids, audioLevels: levels, vp8KeyFrames: keyFrames,
      vp8PictureIDs: pictureIDs, senderReports: reports)
  }
}
