import Foundation
import Octets
import Testing

@testable import ConclaveClient
@testable import recordingtool

/// The words of `check`, and the files that the program keeps.
struct CheckReportTests {
  private static let start: Int64 = 1_800_000_000_000_000

  /// A recording in a folder, as `save` writes it.
  private struct Folder {
    let path = NSTemporaryDirectory() + "conclave-recording-tests-\(UUID().uuidString)"
    let owner = DeviceIdentity(user: "alice", device: "phone")!
    var writer: RecordingWriter
    var generator = SplitMix64(seed: 1)

    init() throws {
      writer = try #require(
        RecordingWriter(
          owner, kind: .own,
          tracks: [RecordingTrack(number: 1, source: .microphone, codec: .opus, clockRate: 48_000)],
          at: CheckReportTests.start / 1_000, using: &generator))
      try FileManager.default.createDirectory(atPath: path + "/1", withIntermediateDirectories: true)
      var segments: [SealedSegment] = []
      for step in 0..<300 {
        let frame = RecordingFrame(
          track: 1, time: CheckReportTests.start + Int64(step) * 20_000, isKeyFrame: true, bytes: [0xFC, 1, 2])
        if let segment = writer.add(frame, using: &generator) { segments.append(segment) }
      }
      segments.append(try #require(writer.end(at: CheckReportTests.start + 6_000_000, using: &generator)))
      for segment in segments { try write(segment.file, "1/\(segment.number)") }
      let page = try #require(writer.draft.manifest(segments, by: owner))
      try write(page.json, "manifest.json")
    }

    func write(_ bytes: [UInt8], _ name: String) throws {
      try Data(bytes).write(to: URL(filePath: "\(path)/\(name)"))
    }

    func report() async throws -> CheckReport {
      let folder = FolderRecording(path: path)
      let reader = try await RecordingReader(
        folder.id(), from: folder, as: owner, now: CheckReportTests.start / 1_000)
      return try await CheckReport(reading: reader)
    }
  }

  @Test func aWholeRecordingIsGood() async throws {
    let folder = try Folder()
    let report = try await folder.report()
    #expect(report.isGood)
    #expect(
      report.lines == [
        "\(folder.writer.draft.id): an own recording, signed by alice on phone (verified) at 2027-01-15T08:00:00Z",
        "for alice", "reel 1, alice on phone (verified): 3 segments, 0:06, complete",
        "good: everything that is listed is there, and as it was made",
      ])
    try? FileManager.default.removeItem(atPath: folder.path)
  }

  @Test func missingAndChangedSegmentsAreNamed() async throws {
    let folder = try Folder()
    try FileManager.default.removeItem(atPath: folder.path + "/1/1")
    let missing = try await folder.report()
    #expect(!missing.isGood && missing.lines.contains("  segments that the server lacks: 1"))
    #expect(missing.lines.contains("  0:02 to 0:04, all tracks: the server has no such segment"))
    var file = [UInt8](try Data(contentsOf: URL(filePath: folder.path + "/1/2")))
    file[120] ^= 1
    try folder.write(file, "1/2")
    let changed = try await folder.report()
    #expect(changed.lines.contains { $0.contains("CHANGED") })
    #expect(changed.lines.contains("  segment 2: is not the one that is listed, or does not follow the one before"))
    #expect(changed.lines.last == "NOT GOOD: see above")
    try? FileManager.default.removeItem(atPath: folder.path)
  }

  @Test func manyGapsAreCounted() {
    let gap = RecordingGap(track: 2, from: Self.start, to: Self.start + 61_000_000, reason: .network)
    let info = ReelInfo(
      number: 3, user: "bob", device: "laptop", name: nil, trust: .known, segments: 2, knownSegments: 5, missing: [],
      refused: [:], state: .cutOff, isEnded: false, start: Self.start, end: Self.start + 3_700_000_000)
    let about = RecordingInfo(
      id: "id", kind: .call, call: "c", user: "alice", device: "phone", trust: .new, readers: ["alice", "bob"], at: 0)
    let report = CheckReport(
      info: about, reels: [.init(info: info, gaps: Array(repeating: gap, count: 25))], missingNotes: [1, 2, 3, 7])
    #expect(!report.isGood)
    #expect(
      report.lines.contains("  and 5 further gaps")
        && report.lines.contains("notes that are missing or changed: 1-3, 7"))
    #expect(report.lines.contains("  it had 5 segments: the last 3 are missing"))
    #expect(report.lines.contains("reel 3, bob on laptop (known, not compared): 2 segments, 1:01:40, CUT OFF"))
    #expect(report.lines.contains("  0:00 to 1:01, track 2: lost on the sender's way to the server"))
  }

  // MARK: the key file

  @Test func aKeyFileIsForItsOwnerAlone() throws {
    let path = NSTemporaryDirectory() + "conclave-key-\(UUID().uuidString)"
    defer { try? FileManager.default.removeItem(atPath: path) }
    let identity = try #require(DeviceIdentity(user: "alice", device: "archive"))
    var file = KeyFile(identity)
    try file.write(to: path, isNew: true)
    let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? NSNumber
    #expect(mode?.intValue == 0o600)
    #expect(throws: KeyFile.Failure.self, "it replaces no other key") { try file.write(to: path, isNew: true) }
    file.note(.pinned(PinnedDevice(user: "bob", device: "d", fingerprint: [1])))
    file.note(.pinned(PinnedDevice(user: "bob", device: "d", fingerprint: [2])))
    file.seen["id"] = [SeenReel(reel: 1, segments: 2, head: [3])]
    try file.write(to: path)
    let read = try KeyFile(reading: path)
    #expect(read == file && read.identity?.fingerprint == identity.fingerprint && read.pins.map(\.fingerprint) == [[2]])
    try FileManager.default.setAttributes([.posixPermissions: 0o640], ofItemAtPath: path)
    #expect(throws: KeyFile.Failure.self) { try KeyFile(reading: path) }
    #expect(throws: KeyFile.Failure.self) { try KeyFile(reading: path + ".none") }
  }

  @Test func aProgramIsFoundInThePath() throws {
    #expect(ExportCommand.program("sh", in: "/nowhere:/bin") == "/bin/sh")
    #expect(ExportCommand.program("no-such-program", in: "/bin") == nil)
  }
}
