import Contract
import Foundation
import MediaModel
import Recording

/// Recordings at the server: what this device makes, and what this user may open (protocol section 13).
extension CallClient {
  /// This user's recordings, newest first: those that started before `milliseconds` since 1970, at most `limit` (1 to 200). `openRecording`
  /// says who has signed one.
  public func recordings(
    before milliseconds: Int64? = nil, limit: Int? = nil
  ) async throws(SignalingError) -> [RecordingEntryInfo] {
    let body = ListRecordings(before: milliseconds.map { Timestamp(milliseconds: $0) }, limit: limit)
    return try await connection.request(.recordings(.list(body)), reply: RecordingList.self).recordings.map(
      RecordingEntryInfo.init)
  }

  /// Opens a recording that this device may read. Its segments come over `files`; the server is believed nothing.
  ///
  /// - Parameter seen: `RecordingReader.seen` of an earlier time.
  /// - Throws: `UnreadableRecording` for one that is not from whom the server says, or that this device has no key of; else `SignalingError`.
  public func openRecording(
    _ id: String, over files: any SegmentTransport, seen: [SeenReel] = []
  ) async throws -> RecordingReader {
    try await RecordingReader(
      id, from: source(files), signers: KnownSigners(identity: identity, pins: pins), seen: seen, now: Self.clock
    ) { [self] users in await keys(of: users) }
  }

  /// This server as the source of recordings, for example to copy one with its seals.
  public nonisolated func source(_ files: any SegmentTransport) -> some RecordingSource {
    ServerRecordings(connection: connection, files: files)
  }

  /// Public keys of users' devices, as the server lists them; they count as far as the pins say.
  private func keys(of users: [UserID]) async -> KnownKeys {
    var found = KnownKeys()
    if let reply = try? await requestAgain(.people(.listDevices(ListDevices(users: users))), reply: Devices.self) {
      learn(reply)
      found.learn(reply.devices)
    }
    return found
  }

  // MARK: making

  /// Registers a recording that this device makes: what a `SegmentUploader` asks for. `isAlert`: its readers are alerted of it, once.
  public func registration(of draft: RecordingDraft, isAlert: Bool = false) async -> SegmentUploader.Registration {
    var body = draft.registration
    if isAlert {
      body.alert = true
      // The devices of the readers get their keys with the alert.
      body.grants = await grants(of: draft, to: draft.statement.readers)
    }
    do {
      let started = try await requestAgain(.recordings(.start(body)), reply: StartedRecording.self)
      return started.recording == draft.statement.id ? .ticket(started.ticket) : .refused
    } catch .refused("recording.full", _) {
      return .full
    } catch .refused("recording.ended", _), .refused("recording.not-found", _) {
      return .ended
    } catch .refused(let code, _) where Self.finalRefusals.contains(code) {
      return .refused
    } catch {
      return .failed
    }
  }

  private static let finalRefusals: Set = [
    "recording.not-allowed", "recording.unavailable", "request.invalid", "auth.forbidden", "keys.not-allowed",
  ]

  /// Ends a recording whose segments are all at the server, and gives its key to the devices of its readers, and to this user's other devices that are verified or
  /// vouched for. Returns how many devices of each user can open it. May be repeated.
  ///
  /// - Throws: `SignalingError.notUnderstood` before `RecordingWriter.end`; `refused` with `recording.incomplete` while segments are missing.
  public func finishRecording(_ draft: RecordingDraft) async throws(SignalingError) -> [String: Int] {
    guard let body = draft.finish(by: identity) else { throw .notUnderstood }
    do {
      _ = try await requestAgain(.recordings(.finish(body)), reply: NoBody.self)
    } catch .refused("recording.ended", _) {
      // The answer to an earlier attempt was lost.
    }
    guard let grants = await grants(of: draft, to: draft.statement.readers) else { throw .notUnderstood }
    return try await share(draft.statement.id, grants)
  }

  private func grants(of draft: RecordingDraft, to users: [UserID]) async -> [RecordingGrant]? {
    let devices = await holders(users)
    return draft.grants(to: devices, at: Self.clock, by: identity)
  }

  /// Gives the key of a recording that this device can open to the devices of `users`. Returns how many devices of each can open it. Nothing can take it back from
  /// a device that has opened it.
  public func shareRecording(_ reader: RecordingReader, with users: [String]) async throws(SignalingError) -> [String:
    Int]
  {
    let ids = try Self.identifiers(users)
    let devices = await holders(ids).filter { ids.contains($0.address.user) }
    let (key, statement) = (await reader.key, await reader.statement)
    let grants = devices.compactMap { key.grant(to: $0, of: statement, at: Self.clock, by: identity) }
    return try await share(statement.id, grants)
  }

  private func share(_ id: RecordingID, _ grants: [RecordingGrant]) async throws(SignalingError) -> [String: Int] {
    if !grants.isEmpty {
      _ = try await requestAgain(.recordings(.share(ShareRecording(id: id, grants: grants))), reply: NoBody.self)
    }
    return Dictionary(grouping: grants, by: \.to.user.text).mapValues(\.count)
  }

  /// The devices of `users`, and of this one, to which a recording may be given. The server lists them and could add one of its own: of this user only verified and
  /// vouched ones count, of others those whose keys are the ones seen first, and of a user who is known no new one.
  func holders(_ users: [UserID]) async -> [DeviceKeys] {
    let wanted = Set(users + [identity.address.user]).sorted()
    guard
      let reply = try? await requestAgain(.people(.listDevices(ListDevices(users: wanted))), reply: Devices.self)
    else { return [] }
    learn(reply)
    let devices = reply.devices.filter { wanted.contains($0.user) }.compactMap(DeviceKeys.init)
    return devices.filter { device in
      guard device.address != identity.address, !pins.isRevoked(device.address.user, device.fingerprint) else {
        return false
      }
      let level = pins.level(of: device.address, device.fingerprint)
      if device.address.user == identity.address.user || trust == .verifiedOnly { return level >= .vouched }
      return level >= .known || pins[device.address] == nil && !pins.knows(device.address.user)
    }
  }

  /// Adds a note to a recording of this device: JSON of 1 to 2,048 bytes with a `kind` (protocol section 13.1). `number` counts from 0; the first note of a number
  /// stays.
  public func addNote(
    _ json: [UInt8], number: UInt32, to draft: RecordingDraft
  ) async throws(SignalingError) {
    guard let statement = draft.signed(by: identity),
      let note = RecordingNote.sealing(json, number: number, of: statement, by: identity)
    else { throw .notUnderstood }
    let body = AddNote(
      id: statement.id, number: note.number, ciphertext: note.ciphertext, sigAlg: note.sigAlg,
      signature: note.signature)
    _ = try await requestAgain(.recordings(.note(body)), reply: NoBody.self)
  }

  // MARK: rights

  /// Lets the owner of a recording know that this user has seen it.
  public func markRecordingSeen(_ id: String) async throws(SignalingError) {
    try await perform(.recordings(.seen(SeenRecording(id: Self.recording(id)))))
  }

  /// Deletes recordings, at most 100: this user's own for everybody, those of others for this user. Others are ignored.
  public func deleteRecordings(_ ids: [String]) async throws(SignalingError) {
    var recordings: [RecordingID] = []
    for id in ids { recordings.append(try Self.recording(id)) }
    try await perform(.recordings(.delete(DeleteRecordings(ids: recordings))))
  }

  /// Erases the reels of a call's recording in which this user is recorded, or one of them by its number; the owner may name any. It cannot be undone.
  public func eraseReels(of id: String, reel: UInt32? = nil) async throws(SignalingError) {
    try await perform(.recordings(.erase(EraseReel(id: Self.recording(id), participant: reel))))
  }

  static func recording(_ id: String) throws(SignalingError) -> RecordingID {
    guard let id = RecordingID(id) else { throw .invalidIdentifier }
    return id
  }
}

/// The server as a source: manifests come by signaling, segments by HTTP.
private struct ServerRecordings: RecordingSource {
  let connection: SignalingConnection
  let files: any SegmentTransport

  func manifest(
    of id: String, fromSegment segment: Int, fromNote note: Int
  ) async throws -> RecordingManifestPage {
    let body = GetRecording(
      id: try CallClient.recording(id), from: segment == 0 ? nil : UInt32(clamping: segment),
      notes: note == 0 ? nil : UInt32(clamping: note))
    return RecordingManifestPage(
      try await connection.request(.recordings(.get(body)), reply: RecordingManifest.self))
  }

  func segment(_ number: Int, ofReel reel: UInt32, in id: String) async throws -> [UInt8]? {
    let path = "/recordings/\(try CallClient.recording(id).text)/\(reel)/\(number)"
    for _ in 1...2 {
      guard let answer = await files.send(SegmentRequest(.get, path, bearer: try await connection.token())) else {
        throw SignalingError.timedOut
      }
      switch answer.status {
      case 200: return answer.body
      case 404, 410: return nil
      // The token may have ended meanwhile.
      case 401: continue
      default: throw SignalingError.refused(code: "http.\(answer.status)", message: "the server sends no segment")
      }
    }
    throw SignalingError.refused(code: "http.401", message: "the server does not take this token")
  }
}
