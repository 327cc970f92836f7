import CallMessages
import Persistence
import PostgreSQL

extension Configuration {
  /// A PostgreSQL database for calls, keys and history. Without it they are in a file of the state folder.
  package struct Store: Sendable {
    /// `postgresql://role@host,host/database`, without a password.
    package var url = ""
    /// The file with the role's password.
    package var passwordFile: String?

    /// - Throws: `ConfigurationError` if the URL or the file of the password cannot be used, or libpq is missing.
    func target() throws(ConfigurationError) -> PostgresTarget {
      let file = try passwordFile.map { (file) throws(ConfigurationError) in
        String(decoding: try Secret.file(file).bytes("store.passwordFile", minimum: 1), as: UTF8.self)
      }
      do throws(StoreError) {
        return try PostgresStore.target(url: url, password: file.map { PostgresPassword($0) })
      } catch {
        throw Store.error(error)
      }
    }

    /// The same, as an error of this member.
    static func error(_ error: StoreError) -> ConfigurationError {
      ConfigurationError(error.description.hasPrefix("store") ? error.description : "store: \(error)")
    }
  }

  /// The store of calls, keys and history: opened, with its tables.
  /// - Parameters:
  ///   - file: SQLite's, in the state folder.
  ///   - patience: how many seconds to wait for another process's transaction there.
  /// - Throws: `ConfigurationError`, in words for the operator.
  func openStore(file: String, patience: Double = 0.25) throws(ConfigurationError) -> any Storage {
    guard let store else {
      do throws(StoreError) {
        return try SQLiteStore(path: file, patience: patience)
      } catch {
        throw ConfigurationError(error.description)
      }
    }
    let target = try store.target()
    do throws(StoreError) {
      return try PostgresStore(target)
    } catch {
      throw Store.error(error)
    }
  }

  /// The whole of the URL is only read with libpq, when a server starts or checks it.
  func checkStore(_ faults: inout Faults) {
    guard let url = store?.url, !url.hasPrefix("postgresql://"), !url.hasPrefix("postgres://") else { return }
    faults.add("store.url: take a URL such as postgresql://conclave@db.example/conclave")
  }
}
