import CallMessages
import Logging
import MediaModel
import ReelStore
import Listening
import Transport

/// The parts of a server that need no thread and no port: its state folder and database, its secrets, and its limits.
struct ServerState: Sendable {
  let files: OpenFiles
  let incarnation: Incarnation
  let clock: WallClock
  let folder: StateFolder
  /// Keeps other servers out of the state folder as long as it lives. Nothing that outlives the server may hold it.
  let lock: StateFolder.Lock
  let store: any Storage
  let health = StoreHealth()
  let archive: Archive
  let log: LimitedLog
  let authenticator: BearerAuthenticator
  let turn: LiveValue<TURNCredentials?>
  let announced: AnnouncedAddresses
  let certificate = DTLSCertificate()
  /// nil if the server stores no recordings.
  let recordings: RecordingStore?

  /// - Returns: also what the database has from before.
  /// - Throws: `ConfigurationError`, in words for the operator.
  static func open(_ configuration: Configuration, _ logger: Logger) async throws -> (ServerState, Stored) {
    let files = OpenFiles.raised()
    let clock = WallClock()
    let folder = try StateFolder(configuration.state)
    let lock = try folder.lock()
    let store = try configuration.openStore(file: folder.database)
    let stored = try load(store, isDatabase: configuration.store != nil, clock: clock)
    let log = LimitedLog(logger)
    let state = ServerState(
      files: files, incarnation: stored.incarnation, clock: clock, folder: folder, lock: lock, store: store,
      archive: Archive(store: store, clock: clock, log: log), log: log,
      authenticator: try await BearerAuthenticator(configuration, folder, clock: clock, log: log),
      turn: LiveValue(try configuration.turn.map(TURNCredentials.init)),
      announced: try AnnouncedAddresses(configuration.media.announce),
      recordings: try await recordings(configuration, store, stored.token))
    return (state, stored)
  }

  private static func recordings(
    _ configuration: Configuration, _ storage: any Storage, _ token: FencingToken
  ) async throws(ConfigurationError) -> RecordingStore? {
    guard let recordings = configuration.recordings else { return nil }
    let store = RecordingStore(recordings.store(in: configuration.state), storage: storage, token: token)
    do {
      try await store.recover()
    } catch {
      throw ConfigurationError("\(error)")
    }
    return store
  }

  static func load(
    _ store: any Storage, isDatabase: Bool, clock: WallClock
  ) throws(ConfigurationError) -> Stored {
    do throws(StoreError) {
      return try store.load(now: clock.now())
    } catch {
      throw isDatabase ? Configuration.Store.error(error) : ConfigurationError(error.description)
    }
  }
}
