import Foundation

/// The frames of one stream of a capture, as read by another parser (Vectors/expected).
struct ExpectedFrames: Decodable {
  struct Frame: Decodable {
    enum CodingKeys: String, CodingKey {
      case number = "fn"
      case spatialLayer = "S"
      case temporalLayer = "T"
      case isKeyFrame = "key"
      case indications = "dti"
      case references = "fd"
    }

    var number: UInt16
    var spatialLayer: Int
    var temporalLayer: Int
    var isKeyFrame: Bool
    var indications: String
    var references: [Int]
  }

  var capture: String
  var ssrc: UInt32
  var decodeTargets: [[Int]]
  var frames: [Frame]

  static let names = [
    "chrome-av1-l3t3key-e2ee-2747691869", "chrome-vp8-simulcast-e2ee-1212267467",
    "chrome-vp8-simulcast-e2ee-1281989739", "chrome-vp8-simulcast-e2ee-3221885770",
    "chrome-vp9-l3t3key-e2ee-52697621", "firefox-vp8-simulcast-e2ee-1960173696",
    "firefox-vp8-simulcast-e2ee-3845268381",
  ]

  init(named name: String) throws {
    let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Vectors/expected")
    let data = try Data(contentsOf: folder.appending(path: "expected-\(name).json"))
    self = try JSONDecoder().decode(ExpectedFrames.self, from: data)
  }
}
