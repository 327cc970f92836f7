import CallMessages
import Contract
import DatabaseServers
import Foundation
import MediaModel
import Persistence
import PostgreSQL

/// The kinds of stores with which the tests of the contract (`Storage`) run.
enum StoreKind: CaseIterable, Sendable {
  case sqlite, postgres
}

/// A store in a temporary folder, or in a separate database, which is deleted with it.
final class TestStore {
  static let now = Timestamp(milliseconds: 1_790_000_000_000)

  let folder: String
  var path: String { folder + "/conclave.sqlite" }
  /// Its name, once it was made.
  private(set) var database: TestDatabase?

  init() throws {
    folder = FileManager.default.temporaryDirectory.path + "/store-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: folder) }

  func open() throws -> SQLiteStore { try SQLiteStore(path: path) }

  func openPostgres() throws -> PostgresStore {
    let made = try database ?? TestDatabase(in: try PostgresServer.shared.get())
    database = made
    return try PostgresStore(try made.target)
  }

  /// Another server that uses the same store.
  func open(_ kind: StoreKind) throws -> any Storage {
    switch kind {
    case .sqlite: try open()
    case .postgres: try openPostgres()
    }
  }
}

/// A database with tables. In them is a start that no other follows, for `FencingToken(number: .max)`.
final class TestDatabase {
  let server: PostgresServer
  let name: String

  /// - Parameter hasTables: otherwise it is empty.
  init(in server: PostgresServer, hasTables: Bool = true) throws {
    self.server = server
    name = "t" + UUID().uuidString.lowercased().replacing("-", with: "")
    try server.sql("CREATE DATABASE \(name)")
    guard hasTables else { return }
    _ = try PostgresStore(try PostgresTarget(url: server.url(name), password: nil))
    try server.sql("INSERT INTO node (id) VALUES (\(UInt32.max))", in: name)
  }

  deinit { _ = try? server.sql("DROP DATABASE \(name) WITH (FORCE)") }

  var target: PostgresTarget { get throws { try PostgresTarget(url: server.url(name), password: nil) } }

  @discardableResult func sql(_ text: String) throws -> String { try server.sql(text, in: name) }
}

let alice = UserID(unchecked: "alice")
let bob = UserID(unchecked: "bob")
let carol = UserID(unchecked: "carol")

func second(_ n: Int) -> Timestamp { TestStore.now + .seconds(n) }

/// A call of these users, each present from and to the given second; the first started it.
func facts(_ id: String, _ stays: [(user: UserID, from: Int, to: Int?)], ended: Int?) -> [StoreChange] {
  let call = CallID(unchecked: id)
  var facts: [HistoryFact] = [.call(call, .video, startedAt: second(stays.first?.from ?? 0))]
  for (place, stay) in stays.enumerated() {
    facts.append(
      .part(call, stay.user, name: stay.user.text.capitalized, place == 0 ? .outgoing : .incoming, .answered))
    facts.append(.came(call, stay.user, at: second(stay.from)))
    if let to = stay.to { facts.append(.went(call, stay.user, at: second(to))) }
  }
  if let ended { facts.append(.ended(call, at: second(ended))) }
  return facts.map(StoreChange.history)
}

func runningCall(_ id: String) -> StoredCall {
  StoredCall(
    id: CallID(unchecked: id), media: .video, initiator: alice, startedAt: second(0), policy: Policy(), metadata: nil,
    starter: Device(user: alice, device: DeviceID(unchecked: "phone")), joinId: Base64Bytes([1]), reply: nil)
}

/// The rest of a call that no store loads without.
func progress(epoch: UInt32) -> StoredProgress {
  StoredProgress(
    activeSince: nil, lastNumber: 3, soleCallee: nil, hasSilenced: nil, aloneSince: nil, lastThere: nil, failures: nil,
    links: nil, rotateAt: nil, epoch: epoch, isSettled: true, distributor: nil, revisionLimit: 9)
}

/// - Parameter number: 0 for a device that rings.
func entry(_ user: UserID, _ number: ParticipantNumber, refresh: JoinKey? = nil) -> ListEntry {
  ListEntry(
    user: user, device: DeviceID(unchecked: "phone"), participant: number, joinId: number > 0 ? Base64Bytes([1]) : nil,
    joinKey: nil, fingerprint: Base64Bytes([255, 0]), refresh: refresh)
}
