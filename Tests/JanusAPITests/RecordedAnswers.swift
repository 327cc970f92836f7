import Foundation
import JanusAPI
import Testing

/// Requests with what Janus 1.1.2 of Debian answered, asked as a black box.
@Suite struct RecordedAnswers {
  @Test func requestsAreAnsweredAsJanusDoes() throws {
    let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appending(path: "Vectors/answers.json")
    let steps = try JSONDecoder().decode([Recorded].self, from: Data(contentsOf: file)).map(\.tree)
    #expect(steps.count > 60)
    let client = try Stage().client(1)
    let handles = ["a": client.handle(), "b": client.handle(), "c": client.handle()]
    for step in steps {
      guard let handle = step["handle"].string.flatMap({ handles[$0] }), case .object(let body) = step["body"] else {
        Issue.record("no step: \(step)")
        continue
      }
      _ = client.received()
      let transaction = handle.send(body)
      let answers = client.received().filter { $0["transaction"] == .text(transaction) && $0["janus"] != "ack" }
      #expect(answers.count == 1 && answers.first?["janus"] == step["janus"], "\(body)")
      #expect(answers.first?["plugindata"]["data"].comparable == step["data"].comparable, "\(body)")
    }
  }
}

extension JSONTree {
  /// Without random ids and the texts of errors, and in a fixed order.
  fileprivate var comparable: [String: JSONTree] {
    guard case .object(let object) = self else { return [:] }
    let members = object.members.filter { member in
      !["private_id", "error"].contains(member.name) && !(member.name == "id" && member.value.number ?? 0 > 100)
    }
    return Dictionary(uniqueKeysWithValues: members.map { ($0.name, $0.value.sorted) })
  }

  private var sorted: JSONTree {
    switch self {
    case .list(let values): .list(values.map(\.sorted))
    case .object(let object):
      .object(
        JSONObject(
          object.members.sorted { $0.name < $1.name }.map { .init(name: $0.name, value: $0.value.sorted) }))
    default: self
    }
  }
}

/// A value of the file.
private struct Recorded: Decodable {
  let tree: JSONTree

  init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if let flag = try? container.decode(Bool.self) {
      tree = .boolean(flag)
    } else if let number = try? container.decode(Int64.self) {
      tree = .integer(number)
    } else if let text = try? container.decode(String.self) {
      tree = .text(text)
    } else if let values = try? container.decode([Recorded].self) {
      tree = .list(values.map(\.tree))
    } else {
      let members = try container.decode([String: Recorded].self)
      tree = .object(JSONObject(members.map { .init(name: $0.key, value: $0.value.tree) }))
    }
  }
}
