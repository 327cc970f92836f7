import Foundation
import RTP

@testable import Forwarding

/// One stream that a browser sent with dependency descriptors (RTPTests/Vectors), and another program's analysis of
/// each frame (its folder `expected`).
struct RecordedStream {
  struct Expected: Decodable {
    struct Frame: Decodable {
      var fn: UInt16
      /// For each decode target, "1" where its receivers get the frame.
      var forward: String
      /// The switches, from one target to another, that a receiver can make at this frame.
      var `switch`: [[Int]]
      /// For each decode target, "1" where this frame is the last that its receivers get of the picture.
      var mark: String
    }

    var capture: String
    var ssrc: UInt32
    var decodeTargets: [[Int]]
    var frames: [Frame]
  }

  private struct Capture: Decodable {
    struct Packet: Decodable { var hex: String }
    var answer: String
    var packets: [Packet]
  }

  static let names = [
    "chrome-av1-l3t3key-e2ee-2747691869", "chrome-vp8-simulcast-e2ee-1212267467",
    "chrome-vp8-simulcast-e2ee-1281989739", "chrome-vp8-simulcast-e2ee-3221885770",
    "chrome-vp9-l3t3key-e2ee-52697621", "firefox-vp8-simulcast-e2ee-1960173696",
    "firefox-vp8-simulcast-e2ee-3845268381",
  ]

  let expected: Expected
  /// In the order of their numbers, each with the structure by which it was parsed.
  private(set) var frames: [(frame: EncodedFrame, structure: DependencyStructure)] = []

  init(named name: String) throws {
    let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../RTPTests/Vectors")
    func read<Value: Decodable>(_ file: String) throws -> Value {
      try JSONDecoder().decode(Value.self, from: Data(contentsOf: folder.appending(path: file)))
    }
    expected = try read("expected/expected-\(name).json")
    let capture: Capture = try read(expected.capture)
    let line = capture.answer.split(whereSeparator: \.isNewline).first { $0.contains("dependency-descriptor") } ?? ""
    let id = UInt8(line.dropFirst("a=extmap:".count).prefix { $0.isNumber }) ?? 0
    var reader = FrameReader()
    for packet in capture.packets {
      let bytes = Self.bytes(packet.hex)
      bytes.withUnsafeBytes { bytes in
        guard let header = RTPHeader(parsing: bytes.bytes), header.ssrc == expected.ssrc, header.payloadLength > 0,
          let element = HeaderExtensions(header)?.element(id, in: bytes.bytes)
        else { return }
        // It ends with the descriptor, so that AddressSanitizer detects a read beyond it.
        let part = Array(bytes[..<element.range.upperBound])
        let frame = part.withUnsafeBytes {
          reader.read(
            element, in: $0.bytes, index: 65_536 + UInt64(header.sequenceNumber), timestamp: header.timestamp)
        }
        guard let frame else { return }
        if frames.last?.frame.number != frame.number { frames.append((frame, reader.structure)) }
      }
    }
  }

  private static func bytes(_ hex: String) -> [UInt8] {
    let digits = hex.utf8.map { $0 <= UInt8(ascii: "9") ? $0 - UInt8(ascii: "0") : $0 - UInt8(ascii: "a") + 10 }
    return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
  }
}
