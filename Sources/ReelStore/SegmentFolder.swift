import Foundation
import LinuxIO
import MediaModel
import Recording

/// Where the files of segments are: `<first 2 digits of the id>/<id>/<reel>/<n>`. All calls wait for the disk.
struct SegmentFolder: Sendable {
  let path: String

  func path(of recording: RecordingID) -> String { "\(path)/\(recording.text.prefix(2))/\(recording.text)" }
  func path(of recording: RecordingID, reel: UInt32) -> String { "\(path(of: recording))/\(reel)" }
  func path(of recording: RecordingID, reel: UInt32, segment number: UInt32) -> String {
    "\(path(of: recording, reel: reel))/\(number)"
  }

  /// A segment that the server is writing.
  func openPath(of recording: RecordingID, reel: UInt32) -> String { "\(path(of: recording, reel: reel))/open" }

  func make() throws(SystemError) { try Files.makeFolder(path) }

  /// Replaces a file of the same name.
  func write(_ bytes: [UInt8], to recording: RecordingID, reel: UInt32, segment number: UInt32) throws(SystemError) {
    try Files.makeFolder(path(of: recording, reel: reel))
    try Files.write(bytes, to: path(of: recording, reel: reel, segment: number))
  }

  /// A new segment's file, in the place of one that was not finished.
  func begin(_ recording: RecordingID, reel: UInt32) throws(SystemError) -> AppendedFile {
    try Files.makeFolder(path(of: recording, reel: reel))
    return try AppendedFile(openPath(of: recording, reel: reel))
  }

  func removeOpen(_ recording: RecordingID, reel: UInt32) { removeItem(openPath(of: recording, reel: reel)) }

  func remove(_ recording: RecordingID) { removeItem(path(of: recording)) }
  func remove(_ recording: RecordingID, reel: UInt32) { removeItem(path(of: recording, reel: reel)) }
  func remove(_ recording: RecordingID, reel: UInt32, segment number: UInt32) {
    removeItem(path(of: recording, reel: reel, segment: number))
  }

  /// The next sweep tries again where something cannot be removed.
  private func removeItem(_ path: String) { try? FileManager.default.removeItem(atPath: path) }

  /// The recordings that have a folder. Other names are not the server's, and stay.
  func recordings() -> [RecordingID] {
    names(path).flatMap { digits in
      names("\(path)/\(digits)").compactMap { RecordingID($0) }.filter { $0.text.hasPrefix(digits) }
    }
  }

  func reels(of recording: RecordingID) -> [UInt32] { names(path(of: recording)).compactMap { UInt32($0) } }

  /// Removes what a process left that died while it wrote.
  func removePartial(of recording: RecordingID, reel: UInt32) {
    let folder = path(of: recording, reel: reel)
    for name in names(folder) where name.hasSuffix(Files.partial) { removeItem("\(folder)/\(name)") }
  }

  func segments(of recording: RecordingID, reel: UInt32) -> [UInt32] {
    names(path(of: recording, reel: reel)).compactMap { UInt32($0) }
  }

  private func names(_ path: String) -> [String] {
    (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
  }
}
