import Contract
import Foundation
import Testing

/// docs/contract.json is for authors of other clients.
@Test func theDocumentOfTheContractIsThatOfTheDeclarations() throws {
  let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()
  let file = root.appending(path: "docs/contract.json")
  let text = try ContractDocument().text
  if ProcessInfo.processInfo.environment["CONCLAVE_WRITE"] != nil {
    try text.write(to: file, atomically: true, encoding: .utf8)
  }
  let isCurrent = try String(contentsOf: file, encoding: .utf8) == text
  #expect(isCurrent, "docs/contract.json is out of date: run CONCLAVE_WRITE=1 deploy/test ContractTests, and commit it")
}

/// The protocol's requests, replies and events as JSON Schema, generated from the declarations in `Contract`.
private struct ContractDocument {
  let text: String

  init() throws {
    let writer = SchemaWriter()
    var requests: [String: Any] = [:]
    for request in RequestDeclaration.all {
      requests[request.path] = [
        "body": try writer.schema(of: request.body), "replies": request.replies.map(\.rawValue),
      ]
    }
    var replies: [String: Any] = ["error": try writer.schema(of: ErrorReply.self)]
    for reply in ReplyName.allCases { replies[reply.rawValue] = try writer.schema(of: reply.body) }
    var events: [String: Any] = [:]
    for name in EventName.allCases {
      let declaration = name.declaration
      events[name.rawValue] = [
        "body": try writer.object { _ = try EventMessage(name, from: $0) },
        "recipients": declaration.recipients.names, "keeping": "\(declaration.keeping)",
        "mayWait": declaration.traits.contains(.mayWait),
      ]
    }
    let document: [String: Any] = [
      "$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Conclave's protocol",
      "description":
        "The bodies of requests, replies and events of docs/protocol.md. `CONCLAVE_WRITE=1 deploy/test ContractTests` writes this file. Readers ignore members that they do not know.",
      "requests": requests, "replies": replies, "events": events, "$defs": writer.definitions,
    ]
    let data = try JSONSerialization.data(
      withJSONObject: document, options: [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes])
    text = String(decoding: data, as: UTF8.self) + "\n"
  }
}

extension EventDeclaration.Recipients {
  fileprivate var names: [String] {
    let all: [(Self, String)] = [
      (.users, "users"), (.participants, "participants"), (.topic, "topic"), (.services, "services"),
    ]
    return all.filter { contains($0.0) }.map(\.1)
  }
}
