import CallMessages
import Persistence
import PostgreSQL

extension Commands {
  /// Where `conclave migrate` moves the state to.
  package enum StoreKind: String, CaseIterable, Sendable { case postgresql, sqlite }

  /// Moves calls, keys and history from the file of the state folder into the database of the configuration, or back.
  /// - Returns: text for standard output.
  /// - Throws: `ConfigurationError`, in words for the operator: no database, a server that runs, or a place that is not empty.
  package static func migrate(
    _ configuration: Configuration, to kind: StoreKind
  ) throws(ConfigurationError) -> String {
    guard let store = configuration.store else {
      throw ConfigurationError("store: name the database in the configuration, for both directions")
    }
    let target = try store.target()
    let folder = try StateFolder(configuration.state)
    // Held meanwhile, so that no server starts with the folder.
    let lock = try folder.lock()
    return try withExtendedLifetime(lock) { () throws(ConfigurationError) in
      do throws(StoreError) {
        switch kind {
        case .postgresql:
          let count = try StoreMove.move(file: folder.database, to: target)
          return
            "Moved \(count) rows into \(target.place). The file is kept as \(folder.database).moved: delete it when "
            + "the server runs."
        case .sqlite:
          let count = try StoreMove.move(target, to: folder.database)
          return
            "Moved \(count) rows into \(folder.database). Take store out of the configuration before the server starts; "
            + "drop the database when it runs."
        }
      } catch {
        throw Configuration.Store.error(error)
      }
    }
  }
}
