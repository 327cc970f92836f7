import ConclaveClient
import Foundation

/// A recording in a folder: `manifest.json`, further pages as `manifest-1000.json`, and the files of the segments as `REEL/NUMBER`, as `save` writes them and as the
/// server's own folder has them.
struct FolderRecording: RecordingSource {
  let path: String

  /// The id of the recording in it.
  func id() throws -> String {
    struct Manifest: Decodable {
      struct Statement: Decodable { var id: String }
      var statement: Statement
    }
    guard let data = FileManager.default.contents(atPath: path + "/manifest.json"),
      let manifest = try? JSONDecoder().decode(Manifest.self, from: data)
    else {
      throw KeyFile.Failure(
        description: "\(path): has no manifest.json; copy a recording with 'conclave-recording save'")
    }
    return manifest.statement.id
  }

  static func name(ofPage segment: Int) -> String { segment == 0 ? "manifest.json" : "manifest-\(segment).json" }

  func manifest(
    of id: String, fromSegment segment: Int, fromNote note: Int
  ) async throws -> RecordingManifestPage {
    let file = "\(path)/\(Self.name(ofPage: segment))"
    guard let data = FileManager.default.contents(atPath: file) else {
      throw KeyFile.Failure(description: "\(file): cannot be read")
    }
    return try RecordingManifestPage(json: Array(data))
  }

  func segment(_ number: Int, ofReel reel: UInt32, in id: String) async throws -> [UInt8]? {
    FileManager.default.contents(atPath: "\(path)/\(reel)/\(number)").map { Array($0) }
  }

  // MARK: writing

  /// Copies a recording as it is, sealed, page by page.
  /// - Parameter told: is called with each segment that the source lacks.
  func copy(
    _ id: String, from source: some RecordingSource, told: (_ reel: UInt32, _ number: Int) -> Void
  ) async throws {
    var start = 0
    var isMore = true
    while isMore {
      let page = try await source.manifest(of: id, fromSegment: start, fromNote: 0)
      try write(page.json, to: Self.name(ofPage: start))
      for (reel, from, count) in page.reels {
        for number in from..<from + count {
          guard let file = try await source.segment(number, ofReel: reel, in: id) else {
            told(reel, number)
            continue
          }
          try write(file, to: "\(reel)/\(number)")
        }
      }
      start += Self.page
      isMore = start < Self.mostSegments && page.reels.contains { $0.count == Self.page }
    }
  }

  /// Segments of a reel in a page of the manifest (protocol section 13.4).
  private static let page = 1_000
  /// A reel has no more (protocol section 13.3).
  private static let mostSegments = 131_072

  private func write(_ bytes: [UInt8], to name: String) throws {
    let file = URL(filePath: "\(path)/\(name)")
    try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
    try Data(bytes).write(to: file, options: .atomic)
  }
}
