import Calls
import Contract
import Foundation
import MediaModel
import Persistence

/// A store in a folder of its own, which goes with it.
final class TestStore {
  static let now = Timestamp(milliseconds: 1_790_000_000_000)

  let folder: String
  var path: String { folder + "/conclave.sqlite" }

  init() throws {
    folder = FileManager.default.temporaryDirectory.path + "/store-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: folder) }

  func open() throws -> Store { try Store(path: path) }
}

let alice = UserID(unchecked: "alice")
let bob = UserID(unchecked: "bob")
let carol = UserID(unchecked: "carol")

func second(_ n: Int) -> Timestamp { TestStore.now + .seconds(n) }

/// A call of these users, each there from and to the given second; the first began it.
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
