import CallMessages
import MediaModel
import Persistence

/// The part of `conclave check-config` about the store.
extension Server {
  /// - Returns: remarks for the operator.
  /// - Throws: `ConfigurationError` for everything that a start would refuse.
  static func checkStore(_ configuration: Configuration) throws(ConfigurationError) -> [String] {
    guard let store = configuration.store else {
      do throws(StoreError) {
        try SQLiteStore.check(path: StateFolder.database(in: configuration.state), now: WallClock().now())
        return []
      } catch {
        throw ConfigurationError(error.description)
      }
    }
    let target = try store.target()
    do throws(StoreError) {
      return remarks(on: try PostgresStore.check(target) { WallClock().machineTime() })
    } catch {
      throw Configuration.Store.error(error)
    }
  }

  /// The facts that an operator should know, and what to do about those that are not good.
  static func remarks(on facts: PostgresFacts) -> [String] {
    let tables = facts.migration == 0 ? ", empty: the first start makes the tables" : ""
    var times = "an answer takes \(milliseconds(facts.condition.roundTrip)) ms"
    if let time = facts.commitTime { times += ", a commit \(milliseconds(time)) ms" }
    var remarks = [
      "The store is PostgreSQL \(facts.version) at \(facts.place), \(facts.usesTLS ? "with" : "without") TLS\(tables); "
        + "\(times)."
    ]
    if !facts.provesServer {
      remarks.append(
        "The database's server does not prove who it is: say sslmode=verify-full in store.url, or leave sslmode out.")
    }
    if !facts.isDurable {
      remarks.append("fsync is off: the death of the database's machine destroys the database; turn it on.")
    }
    if case .standbys(let names) = facts.condition.confirmation, !facts.condition.isStuck {
      remarks.append("A commit is on \(names), of \(facts.condition.standbys) connected standbys.")
    }
    if facts.commitTime == nil, !facts.condition.isStuck {
      remarks.append("No commit was confirmed within 10 s: look whether the synchronous standbys follow.")
    }
    remarks += facts.condition.warnings
    if facts.hasPooler {
      remarks.append(
        "A pooler stands between: it must stay in session mode, and keep a connection for each of the three.")
    }
    if facts.servers > 0 {
      remarks.append(
        "A server uses the database now: another one that starts with it takes its place, and the first writes nothing more."
      )
    }
    return remarks
  }

  private static func milliseconds(_ time: Duration) -> Double { Double(time.nanoseconds / 10_000) / 100 }
}

extension StoreCondition {
  /// Each thing that is not good about it, with its remedy.
  var warnings: [String] {
    var warnings: [String] = []
    switch confirmation {
    case .off(let setting):
      warnings.append(
        "synchronous_commit is \(setting): what clients were told may be lost with the database's machine; set it to on."
      )
    case .disk:
      warnings.append(
        "No standby is synchronous: what clients were told may be lost when the database fails over; set "
          + "synchronous_standby_names, such as ANY 1 (a, b).")
    case .standbys(let names) where isStuck:
      warnings.append(
        "synchronous_standby_names is \(names), and no standby is connected: each commit waits for one. Start one, or take it out."
      )
    case .standbys: break
    }
    if isClockOff {
      let offset = clockOffset.nanoseconds / 1_000_000
      warnings.append(
        "The database's clock is \(abs(offset)) ms \(offset > 0 ? "ahead of" : "behind") this machine's: let both follow NTP."
      )
    }
    return warnings
  }
}
