import ConclaveClient
import Foundation
import Testing

@testable import recordingtool

/// The files that are exported: against the web client's writer byte for byte, and element by element.
struct WebMWriterTests {
  private static let start: Int64 = 1_800_000_000_000_000
  private static let key: [UInt8] = [0x10, 0, 0, 0x9D, 0x01, 0x2A, 0x40, 0x01, 0xB4, 0x00, 1, 2, 3]
  private static let delta: [UInt8] = [0x11, 4, 5, 6]
  private static let tracks = [
    WebMWriter.Track(number: 1, format: .opus(channels: 2), clockRate: 48_000),
    WebMWriter.Track(number: 2, format: .video(codec: "V_VP8", width: 320, height: 180), clockRate: 90_000),
  ]

  /// The frames of `golden.mjs`, which makes the same file with the web client's modules.
  private static func write(_ writer: inout WebMWriter) -> [UInt8] {
    var body: [UInt8] = []
    for step in 0..<60 {
      let time = start + Int64(step) * 200_000
      body += writer.add(1, isKey: true, time: time + 1_499, [0xFC, UInt8(step)])
      if step % 2 == 0 { body += writer.add(2, isKey: step % 20 == 0, time: time - 700, step % 20 == 0 ? key : delta) }
    }
    return body
  }

  @Test func theFileIsThatOfTheWebClient() throws {
    var writer = WebMWriter(Self.tracks, start: Self.start)
    let body = Self.write(&writer)
    let (tail, head) = writer.finish(end: Self.start + 12_345_678)
    let url = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Golden/export.webm")
    #expect(head + body + tail == [UInt8](try Data(contentsOf: url)))
  }

  /// An element, as any reader sees it.
  private struct Element {
    var id: UInt32
    /// Where its body is in the file.
    var range: Range<Int>
  }

  private static func elements(_ bytes: [UInt8], in range: Range<Int>) throws -> [Element] {
    var elements: [Element] = []
    var place = range.lowerBound
    while place < range.upperBound {
      let idLength = bytes[place].leadingZeroBitCount + 1
      let id = bytes[place..<place + idLength].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
      let size = place + idLength
      let sizeLength = bytes[size].leadingZeroBitCount + 1
      try #require(sizeLength <= 8)
      var length = Int(bytes[size]) & (0xFF >> sizeLength)
      for byte in bytes[size + 1..<size + sizeLength] { length = length << 8 | Int(byte) }
      let body = size + sizeLength
      try #require(body + length <= range.upperBound, "element \(String(id, radix: 16)) ends with its parent")
      elements.append(Element(id: id, range: body..<body + length))
      place = body + length
    }
    return elements
  }

  private static func number(_ bytes: [UInt8], _ element: Element?) throws -> Int {
    let element = try #require(element)
    return bytes[element.range].reduce(0) { $0 << 8 | Int($1) }
  }

  /// A file whose tracks became known on the way: sizes, positions, times, cues.
  @Test func eachElementIsInItsPlace() throws {
    var writer = WebMWriter(start: Self.start, room: 4_096)
    let first = writer.head
    #expect(first.count == 4_096)
    for track in Self.tracks {
      let isAdded = writer.add(track)
      #expect(isAdded)
    }
    let body = Self.write(&writer)
    let (tail, head) = writer.finish(end: Self.start + 12_345_678)
    #expect(head.count == first.count, "it replaces the first bytes")
    let file = head + body + tail

    let top = try Self.elements(file, in: 0..<file.count)
    #expect(top.map(\.id) == [0x1A45_DFA3, 0x1853_8067] && top[1].range.upperBound == file.count)
    let header = try Self.elements(file, in: top[0].range)
    let docType = try #require(header.first { $0.id == 0x4282 })
    #expect(Array(file[docType.range]) == Array("webm".utf8))
    let segment = try Self.elements(file, in: top[1].range)
    let base = top[1].range.lowerBound
    #expect(
      segment.map(\.id) == [
        0x114D_9B74, 0x1549_A966, 0x1654_AE6B, 0xEC, 0x1F43_B675, 0x1F43_B675, 0x1F43_B675, 0x1C53_BB6B,
      ])

    // Each seek entry points at the element that it names.
    for seek in try Self.elements(file, in: segment[0].range) {
      let parts = try Self.elements(file, in: seek.range)
      let id = try Self.number(file, parts.first { $0.id == 0x53AB })
      let place = base + (try Self.number(file, parts.first { $0.id == 0x53AC }))
      #expect(file[place..<place + 4].reduce(0) { $0 << 8 | Int($1) } == id)
    }
    let info = try Self.elements(file, in: segment[1].range)
    #expect(try Self.number(file, info.first { $0.id == 0x2AD7B1 }) == 1_000_000)
    let duration = try Self.number(file, info.first { $0.id == 0x4489 })
    #expect(Double(bitPattern: UInt64(duration)) == 12_346)

    let entries = try Self.elements(file, in: segment[2].range)
    #expect(entries.count == 2)
    let sound = try Self.elements(file, in: entries[0].range)
    let picture = try Self.elements(file, in: entries[1].range)
    let head0 = try #require(sound.first { $0.id == 0x63A2 })
    #expect(Array(file[head0.range]) == Array("OpusHead".utf8) + [1, 2, 0, 0, 0x80, 0xBB, 0, 0, 0, 0, 0])
    let size = try Self.elements(file, in: #require(picture.first { $0.id == 0xE0 }).range)
    #expect(try Self.number(file, size.first { $0.id == 0xB0 }) == 320)
    #expect(try Self.number(file, size.first { $0.id == 0xBA }) == 180)

    // All frames, in the order of their times.
    var frames: [(number: UInt8, time: Int, isKey: Bool)] = []
    var clusterStarts: [Int: Int] = [:]
    for cluster in segment where cluster.id == 0x1F43_B675 {
      let parts = try Self.elements(file, in: cluster.range)
      let at = try Self.number(file, parts.first { $0.id == 0xE7 })
      // Its id and size are before its body.
      clusterStarts[cluster.range.lowerBound - 12 - base] = at
      for block in parts where block.id == 0xA3 {
        let bytes = file[block.range]
        let relative = Int(bytes[block.range.lowerBound + 1]) << 8 | Int(bytes[block.range.lowerBound + 2])
        #expect(relative < 32_768)
        frames.append((bytes[block.range.lowerBound] & 0x7F, at + relative, bytes[block.range.lowerBound + 3] == 0x80))
      }
    }
    #expect(frames.count == 90 && zip(frames, frames.dropFirst()).allSatisfy { $0.time <= $1.time })
    #expect(frames.filter { $0.number == 2 && $0.isKey }.map(\.time) == [0, 3_999, 7_999])
    #expect(frames.filter { $0.number == 1 }.map(\.time) == (0..<60).map { $0 * 200 + 1 })

    // Each cue is a cluster with that key frame.
    let cues = try Self.elements(file, in: #require(segment.last).range)
    #expect(cues.count == 2)
    for cue in cues {
      let parts = try Self.elements(file, in: cue.range)
      let time = try Self.number(file, parts.first { $0.id == 0xB3 })
      let positions = try Self.elements(file, in: #require(parts.first { $0.id == 0xB7 }).range)
      #expect(try Self.number(file, positions.first { $0.id == 0xF7 }) == 2)
      let place = try Self.number(file, positions.first { $0.id == 0xF1 })
      let start = try #require(clusterStarts[place])
      #expect((start...start + 5_000).contains(time))
      #expect(frames.contains { $0.number == 2 && $0.isKey && $0.time == time })
    }
  }

  @Test func aHeadHasRoomForManyTracksAndNoMore() {
    var writer = WebMWriter(start: 0, room: 4_096)
    var count: UInt8 = 0
    while count < 200 {
      let isAdded = writer.add(.init(number: count + 1, format: .opus(channels: 1), clockRate: 48_000))
      guard isAdded else { break }
      count += 1
      #expect(writer.head.count == 4_096)
    }
    #expect((15..<126).contains(count))
    #expect(writer.finish(end: 0).head.count == 4_096)
  }

  /// A hostile time does not trap, and does not wrap a block's two bytes.
  @Test func farTimesBeginNewClusters() {
    var writer = WebMWriter(Self.tracks, start: Self.start)
    var body: [UInt8] = []
    for time in [Int64.min, .max, Self.start, Self.start + 1 << 52, 0, Self.start + 3_000_000] {
      body += writer.add(1, isKey: true, time: time, [1])
    }
    let (tail, _) = writer.finish(end: .max)
    #expect(!body.isEmpty && !tail.isEmpty)
  }

  @Test func sizesOfPictures() {
    typealias Format = WebMWriter.Track.Format
    #expect(Format(.vp8, firstFrame: Self.key) == .video(codec: "V_VP8", width: 320, height: 180))
    #expect(Format(.vp8, firstFrame: Self.delta) == nil && Format(.vp8, firstFrame: []) == nil)
    #expect(
      Format(.opus, firstFrame: [0x04]) == .opus(channels: 2) && Format(.opus, firstFrame: [0xF8]) == .opus(channels: 1)
    )
    // A key frame of libvpx, profile 0: marker, sync code, colour space 0, 640 x 360.
    #expect(
      Format(.vp9, firstFrame: [0x82, 0x49, 0x83, 0x42, 0x00, 0x27, 0xF0, 0x16, 0x70])
        == .video(codec: "V_VP9", width: 640, height: 360))
    #expect(Format(.vp9, firstFrame: [0x86, 0x49, 0x83, 0x42]) == nil && Format(.av1, firstFrame: [1]) == nil)
  }
}
