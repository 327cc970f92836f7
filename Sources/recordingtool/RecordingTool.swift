import ArgumentParser
import ConclaveClient
import Foundation

@main
struct RecordingTool: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "conclave-recording",
    abstract: "List, check and export recordings that a device may open.",
    discussion: """
      Recordings are sealed: a key file opens those that were shared with its device. Make one, sign in with it once by 'list', and share recordings with it as \
      with any device of the user.
      """,
    subcommands: [MakeKey.self, ListCommand.self, CheckCommand.self, ExportCommand.self, SaveCommand.self])

  static func main() async {
    do {
      var command = try parseAsRoot()
      if var command = command as? any AsyncParsableCommand {
        try await command.run()
      } else {
        try command.run()
      }
    } catch let error as UnreadableRecording {
      exit(withError: KeyFile.Failure(description: Self.words(error)))
    } catch let error as SignalingError {
      exit(withError: KeyFile.Failure(description: Self.words(error)))
    } catch {
      exit(withError: error)
    }
  }

  static func words(_ error: UnreadableRecording) -> String {
    switch error {
    case .malformed: "this is no recording of this protocol"
    case .anotherRecording: "the server sent another recording"
    case .notSigned: "refused: not signed by the device that it names, or that device has other keys than before"
    case .noKey: "this device has no key of the recording: share it with the user, on a device that can open it"
    }
  }

  static func words(_ error: SignalingError) -> String {
    switch error {
    case .disconnected: "no connection to the server, or it did not take the token"
    case .timedOut: "the server did not answer in time"
    case .refused(let code, let message): "the server refused: \(code): \(message)"
    case .invalidIdentifier: "this is no id of a recording: a UUID in lower case"
    case .crossed, .notUnderstood, .noKey, .notInCall: "the server's answer was not understood"
    }
  }
}

struct MakeKey: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Make a device's keys, and write them into a new file of mode 600.")

  @Option(help: "The user whose device it is.")
  var user: String

  @Option(help: "The device's id, as the user's tokens name it.")
  var device: String

  @Argument(help: "The file.", completion: .file())
  var file: String

  func run() throws {
    guard let identity = DeviceIdentity(user: user, device: device) else {
      throw ValidationError("user and device are 1 to 128 of A-Z a-z 0-9 . _ ~ @ + -")
    }
    try KeyFile(identity).write(to: file, isNew: true)
    print("fingerprint \(identity.fingerprint.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined())")
  }
}

struct ListCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "List the user's recordings at the server, the newest first.")

  @OptionGroup var source: SourceOptions

  @Option(help: "How many, at most 200.")
  var limit = 50

  func validate() throws {
    guard (1...200).contains(limit) else { throw ValidationError("--limit is 1 to 200") }
    guard source.server != nil else { throw ValidationError("name the server with --server") }
  }

  func run() async throws {
    let entries = try await source.withServer { client, _, _ in try await client.recordings(limit: limit) }
    for entry in entries { print(Self.line(entry)) }
  }

  static func line(_ entry: RecordingEntryInfo) -> String {
    [
      entry.id, entry.kind.rawValue, CheckReport.date(entry.startedAt), entry.isOwn ? "own" : entry.user,
      // The server's numbers may be anything.
      CheckReport.clock(Int64(max(0, min(entry.seconds, 1 << 30))) * 1_000_000), "\(entry.bytes / 1_024) KiB",
      entry.state,
    ].joined(separator: "  ")
  }
}

struct CheckCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "check",
    abstract: "Verify every signature, hash and seal of a recording, and say what is missing.",
    discussion: "The exit status is 1 if something is missing, changed or closed.")

  @OptionGroup var recording: RecordingOptions

  func run() async throws {
    let report = try await recording.withReader { try await CheckReport(reading: $0) }
    for line in report.lines { print(line) }
    if !report.isGood { throw ExitCode.failure }
  }
}

struct ExportCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "export",
    abstract: "Write each reel of a recording as a WebM file.",
    discussion: "Gaps stay gaps in time, and all files count from the beginning of the recording.")

  @OptionGroup var recording: RecordingOptions

  @Option(name: .customLong("to"), help: "The folder for the files.", completion: .directory)
  var folder: String

  @Flag(help: "Put all reels into one file as well, pictures in a grid and sound mixed, by ffmpeg.")
  var grid = false

  func run() async throws {
    let ffmpeg = grid ? Self.program("ffmpeg", in: ProcessInfo.processInfo.environment["PATH"] ?? "") : nil
    if grid, ffmpeg == nil {
      throw KeyFile.Failure(
        description: "--grid needs ffmpeg, which is not installed: install it, or leave --grid out")
    }
    let folder = self.folder
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    let (id, files) = try await recording.withReader { reader in
      (reader.info.id, try await Self.export(reader, to: folder))
    }
    if files.isEmpty { throw KeyFile.Failure(description: "nothing in this recording can be exported") }
    guard let ffmpeg, let command = GridCommand(files, output: "\(folder)/\(id).webm") else { return }
    let process = Process()
    process.executableURL = URL(filePath: ffmpeg)
    process.arguments = command.arguments
    try process.run()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else {
      throw KeyFile.Failure(description: "ffmpeg failed; the files of the reels are in \(folder)")
    }
    print("\(folder)/\(id).webm")
  }

  private static func export(_ reader: RecordingReader, to folder: String) async throws -> [GridCommand.Input] {
    let start = await reader.span?.lowerBound ?? 0
    var files: [GridCommand.Input] = []
    for reel in await reader.reels where reel.state != .closed && reel.segments > 0 {
      let path = "\(folder)/\(reader.info.id)-\(reel.number).webm"
      guard FileManager.default.createFile(atPath: path, contents: nil),
        let file = FileHandle(forWritingAtPath: path)
      else { throw KeyFile.Failure(description: "\(path): cannot be written") }
      defer { try? file.close() }
      var export = ReelExport(start: start)
      try file.write(contentsOf: export.head)
      for number in 0..<reel.segments {
        guard let segment = try await reader.segment(number, ofReel: reel.number) else { break }
        try file.write(contentsOf: export.add(segment))
      }
      let (tail, head) = export.finish()
      try file.write(contentsOf: tail)
      try file.seek(toOffset: 0)
      try file.write(contentsOf: head)
      if !export.leftOut.isEmpty {
        let tracks = CheckReport.numbers(export.leftOut.map(Int.init))
        FileHandle.standardError.write(Data("\(path): WebM cannot hold track \(tracks), which is left out\n".utf8))
      }
      if export.isEmpty {
        try FileManager.default.removeItem(atPath: path)
      } else {
        print(path)
        files.append(.init(path: path, hasVideo: export.hasVideo, hasSound: export.hasSound))
      }
    }
    return files
  }

  /// The program's path; nil if no folder of `path` has it.
  static func program(_ name: String, in path: String) -> String? {
    path.split(separator: ":").map { "\($0)/\(name)" }.first { FileManager.default.isExecutableFile(atPath: $0) }
  }
}

struct SaveCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "save",
    abstract: "Copy a recording into a folder as it is, sealed, for 'check' and 'export' without the server.")

  @OptionGroup var source: SourceOptions

  @Argument(help: "The recording's id.")
  var recording: String

  @Option(name: .customLong("to"), help: "The folder.", completion: .directory)
  var folder: String

  func validate() throws {
    guard source.server != nil else { throw ValidationError("name the server with --server") }
  }

  func run() async throws {
    let folder = FolderRecording(path: self.folder)
    try await source.withServer { client, files, _ in
      try await folder.copy(recording, from: client.source(files)) { reel, number in
        FileHandle.standardError.write(Data("the server lacks segment \(number) of reel \(reel)\n".utf8))
      }
    }
  }
}
