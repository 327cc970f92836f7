import ArgumentParser
import ConclaveClient
import Foundation

/// The device that reads, and where recordings come from.
struct SourceOptions: ParsableArguments {
  @Option(help: "The device's key file, of mode 600; 'make-key' makes one.", completion: .file())
  var key: String

  @Option(help: "The server: wss://HOST[/stomp], or stomps://HOST with --web.")
  var server: String?

  @Option(help: "The web server for the files, if --server is not wss: https://HOST.")
  var web: String?

  @Option(
    help: "A file with the user's token for the server (default: the variable CONCLAVE_TOKEN).", completion: .file())
  var tokenFile: String?

  func validate() throws {
    if server == nil, web != nil || tokenFile != nil {
      throw ValidationError("--web and --token-file are for a server: name it with --server")
    }
  }

  /// A connection to the server, for as long as `body` needs it. The device's key file keeps what it learns about others.
  func withServer<Result: Sendable>(
    _ body: (CallClient, RecordingHTTP, inout KeyFile) async throws -> Result
  ) async throws -> Result {
    var file = try KeyFile(reading: key)
    guard let server, let address = ServerAddress(server), let identity = file.identity else {
      throw KeyFile.Failure(description: "name the server with --server, for example wss://calls.example.org")
    }
    let files = try files(address)
    let token = try token()
    let client = CallClient(
      server: address, identity: identity, pins: file.pins, statements: file.statements, token: { token })
    let learnt = Task {
      var events: [ClientEvent] = []
      for await event in client.events {
        events.append(event)
        switch event {
        case .ended(let reason) where reason != "closed": Self.say("the connection is over: \(reason)")
        case .disconnected: Self.say("no connection to the server: trying again")
        default: break
        }
      }
      return events
    }
    func close() async {
      await files.close()
      await client.close()
      for event in await learnt.value { file.note(event) }
    }
    do {
      try await client.connect()
      let result = try await body(client, files, &file)
      await close()
      try file.write(to: key)
      return result
    } catch {
      await close()
      throw error
    }
  }

  private static func say(_ line: String) { FileHandle.standardError.write(Data("\(line)\n".utf8)) }

  private func files(_ address: ServerAddress) throws -> RecordingHTTP {
    if let web {
      guard let files = RecordingHTTP(url: web) else {
        throw KeyFile.Failure(description: "--web: \(web) is no address such as https://calls.example.org")
      }
      return files
    }
    guard address.webSocketPath != nil else {
      throw KeyFile.Failure(description: "files come over HTTP: name the web server with --web https://HOST")
    }
    return RecordingHTTP(address)
  }

  private func token() throws -> String {
    let text: String?
    if let tokenFile {
      text = try? String(contentsOfFile: tokenFile, encoding: .utf8)
    } else {
      text = ProcessInfo.processInfo.environment["CONCLAVE_TOKEN"]
    }
    let token = text?.trimmingCharacters(in: .whitespacesAndNewlines) ?? ""
    guard !token.isEmpty else {
      throw KeyFile.Failure(description: "no token: name a file with --token-file, or set CONCLAVE_TOKEN")
    }
    return token
  }
}

/// A recording: at the server, or in a folder.
struct RecordingOptions: ParsableArguments {
  @OptionGroup var source: SourceOptions

  @Argument(
    help: "The recording's id at the server; without --server, a folder that 'save' wrote.", completion: .directory)
  var recording: String

  /// Opens the recording, and remembers afterwards how far it went.
  func withReader<Result: Sendable>(_ body: (RecordingReader) async throws -> Result) async throws -> Result {
    if source.server != nil {
      return try await source.withServer { client, files, key in
        let reader = try await client.openRecording(recording, over: files, seen: key.seen[recording] ?? [])
        let result = try await body(reader)
        await key.remember(reader)
        return result
      }
    }
    var key = try KeyFile(reading: source.key)
    let folder = FolderRecording(path: recording)
    let id = try folder.id()
    guard let identity = key.identity else { throw ExitCode.failure }
    let reader = try await RecordingReader(
      id, from: folder, as: identity, pins: key.pins, statements: key.statements, seen: key.seen[id] ?? [],
      now: Int64(Date().timeIntervalSince1970 * 1_000))
    let result = try await body(reader)
    await key.remember(reader)
    try key.write(to: source.key)
    return result
  }
}

extension KeyFile {
  /// Notes how far a recording went. The length of a reel that was longer before stays.
  mutating func remember(_ reader: RecordingReader) async {
    let newest = await reader.seen
    let others = (seen[reader.info.id] ?? []).filter { old in !newest.contains { $0.reel == old.reel } }
    seen[reader.info.id] = (newest + others).sorted { $0.reel < $1.reel }
  }
}
