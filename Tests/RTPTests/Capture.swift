import Foundation

/// RTP and RTCP from a browser, without SRTP (Vectors/*.json).
struct Capture: Decodable {
  struct Packet: Decodable { var hex: String }

  var answer: String
  var packets: [Packet]

  static let names = [
    "chrome-av1-l1t1-e2ee", "chrome-av1-l3t3key-e2ee", "chrome-h264-e2ee", "chrome-vp8-plain",
    "chrome-vp8-simulcast-e2ee", "chrome-vp9-l3t3key-e2ee", "firefox-av1-e2ee", "firefox-vp8-plain",
    "firefox-vp8-simulcast-e2ee", "firefox-vp9-e2ee",
  ]

  init(named name: String) throws {
    let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Vectors")
    let data = try Data(contentsOf: folder.appending(path: "\(name).json"))
    self = try JSONDecoder().decode(Capture.self, from: data)
  }

  var datagrams: [[UInt8]] { packets.map { bytes($0.hex) } }

  /// RFC 5761 section 4: RTCP's packet type is where RTP has marker and payload type.
  var rtp: [[UInt8]] { datagrams.filter { !(192...223).contains($0[1]) } }
  var rtcp: [[UInt8]] { datagrams.filter { (192...223).contains($0[1]) } }

  /// The id of the extension with this URI in the answer.
  func extensionID(_ uri: String) -> UInt8? {
    for line in answer.split(whereSeparator: \.isNewline) where line.hasPrefix("a=extmap:") && line.hasSuffix(uri) {
      return UInt8(line.dropFirst("a=extmap:".count).prefix { $0.isNumber })
    }
    return nil
  }
}
