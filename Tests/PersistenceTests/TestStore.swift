import Contract
import Foundation
import MediaModel
import Persistence

@testable import Calls

/// The kinds of stores with which the tests of the contract (`Storage`) run.
enum StoreKind: CaseIterable, Sendable {
  case sqlite
}

/// A store in a temporary folder, which is deleted with it.
final class TestStore {
  static let now = Timestamp(milliseconds: 1_790_000_000_000)

  let folder: String
  var path: String { folder + "/conclave.sqlite" }

  init() throws {
    folder = FileManager.default.temporaryDirectory.path + "/store-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: folder) }

  func open() throws -> SQLiteStore { try SQLiteStore(path: path) }

  /// Another server that uses the same store.
  func open(_ kind: StoreKind) throws -> any Storage {
    switch kind {
    case .sqlite: try open()
    }
  }
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
