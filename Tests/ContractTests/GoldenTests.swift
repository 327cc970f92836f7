import Contract
import Foundation
import JSON
import Testing

/// The whole contract as JSON: `Golden/` has one example of each request, reply and event with every member that it can
/// have. Other authors write clients by these; a change here is a change of the contract.
struct GoldenTests {
  @Test func everyRequestReplyAndEventIsReadAndWrittenAsItStands() throws {
    var coverage = Coverage()
    try checkRequests { coverage.add($0) }
    try checkReplies { coverage.add($0) }
    try checkEvents { coverage.add($0) }
    let never = coverage.absent.subtracting(coverage.present)
    #expect(never.isEmpty, "no example has these members")
  }

  @Test func theReasonsOfAnEndAreThoseOfTheProtocol() {
    #expect(
      EndReason.allCases.map(\.rawValue) == [
        "ended-by-initiator", "ended-by-service", "ended-by-operator", "all-left", "declined", "no-answer", "cancelled",
        "expired",
      ])
  }

  private func checkRequests(note: (Any) -> Void) throws {
    var paths: Set<String> = []
    for (destination, body) in try golden("requests") {
      let request = try #require(
        try readRequest(destination, body), "\(destination)")
      let message = request.message
      #expect(message.destination == destination)
      #expect(try sorted(try JSONCoding.encode(Body(message.body))) == sorted(body), "\(destination)")
      note(message.body)
      paths.insert(path(destination))
    }
    #expect(paths == Set(requestPaths))
  }

  private func checkReplies(note: (Any) -> Void) throws {
    let examples = try golden("replies")
    #expect(Set(examples.keys) == Set(ReplyName.allCases.map(\.rawValue) + ["error"]))
    for (name, body) in examples {
      let type = ReplyName(rawValue: name)?.body ?? ErrorReply.self
      let value = try JSONCoding.decode(type, from: body)
      #expect(try sorted(try JSONCoding.encode(Body(value))) == sorted(body), "\(name)")
      note(value)
    }
  }

  private func checkEvents(note: (Any) -> Void) throws {
    let examples = try golden("events")
    #expect(Set(examples.keys) == Set(EventName.allCases.map(\.rawValue)))
    for (text, body) in examples {
      let name = try #require(EventName(rawValue: text), "\(text)")
      let decoder = JSONDecoder()
      decoder.userInfo[.eventName] = name
      let read = try decoder.decode(Event.self, from: Data(body)).message
      #expect(try sorted(try JSONCoding.encode(read)) == sorted(body), "\(text)")
      #expect(read.body.name == name)
      note(read)
    }
  }

  /// docs/protocol.md names every path, event, member and error code in the code.
  @Test func theDocumentIsInStepWithTheCode() throws {
    let text = try String(contentsOf: root.appending(path: "docs/protocol.md"), encoding: .utf8)
    for path in requestPaths { #expect(text.contains("`\(path)`"), "docs/protocol.md lacks the request \(path)") }
    for name in EventName.allCases.map(\.rawValue) {
      #expect(text.contains("`\(name)`"), "docs/protocol.md lacks the event \(name)")
    }
    for code in RequestError.Code.allCases.map(\.rawValue) {
      #expect(text.contains("`\(code)`"), "docs/protocol.md lacks the code \(code)")
    }
    for file in ["requests", "replies", "events"] {
      for (name, body) in try golden(file) {
        for member in members(of: try JSONSerialization.jsonObject(with: Data(body))) {
          #expect(mentions(text, member), "docs/protocol.md lacks the member \(member) of \(name)")
        }
      }
    }
  }
}

// MARK: examples

private let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
  .deletingLastPathComponent()

/// The examples of a file, each as the bytes of its JSON.
private func golden(_ name: String) throws -> [String: [UInt8]] {
  let file = root.appending(path: "Tests/ContractTests/Golden/\(name).json")
  let object = try JSONSerialization.jsonObject(with: Data(contentsOf: file))
  return try #require(object as? [String: Any]).mapValues { Array(try JSONSerialization.data(withJSONObject: $0)) }
}

private func sorted(_ body: [UInt8]) throws -> String {
  let object = try JSONSerialization.jsonObject(with: Data(body))
  return String(decoding: try JSONSerialization.data(withJSONObject: object, options: .sortedKeys), as: UTF8.self)
}

private let requestPaths = RequestDeclaration.all.map(\.path)

/// The path in the document's form: ids replaced by their names.
private func path(_ destination: String) -> String {
  var parts = destination.split(separator: "/").map(String.init)
  if parts.count > 3 { parts[2] = "{id}" }
  if parts.count > 4, parts[3] == "tracks" { parts[4] = "{track}" }
  return "/" + parts.joined(separator: "/")
}

/// The optional members, by type and name, that examples have and lack.
private struct Coverage {
  var present: Set<String> = []
  var absent: Set<String> = []

  mutating func add(_ value: Any) {
    let mirror = Mirror(reflecting: value)
    for child in mirror.children {
      let inner = Mirror(reflecting: child.value)
      if inner.displayStyle == .optional, let label = child.label {
        let name = "\(mirror.subjectType).\(label)"
        if inner.children.isEmpty { absent.insert(name) } else { present.insert(name) }
      }
      add(child.value)
    }
  }
}

private func members(of object: Any) -> Set<String> {
  switch object {
  case let object as [String: Any]:
    // The keys of `results` are user ids.
    Set(object.keys).union(object.filter { $0.key != "results" }.values.flatMap(members(of:)))
  case let list as [Any]: Set(list.flatMap(members(of:)))
  default: []
  }
}

/// Whether a name occurs in code, alone or in a piece of JSON.
private func mentions(_ text: String, _ member: String) -> Bool {
  text.contains("`\(member)`") || text.contains("\"\(member)\"")
}

extension CodingUserInfoKey { fileprivate static let eventName = CodingUserInfoKey(rawValue: "event")! }

/// An event's body, parsed by the name that its header would have.
private struct Event: Decodable {
  let message: EventMessage
  init(from decoder: any Decoder) throws {
    let name = try #require(decoder.userInfo[.eventName] as? EventName)
    message = try EventMessage(name, from: decoder)
  }
}

private struct Body: Encodable {
  let body: any Encodable
  init(_ body: any Encodable) { self.body = body }
  func encode(to encoder: any Encoder) throws { try body.encode(to: encoder) }
}
