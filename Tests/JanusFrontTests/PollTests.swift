import JanusFront
import Testing
import WireClients

@Suite struct PollTests {
  private func body(_ answer: String) -> String {
    answer.firstRange(of: "\r\n\r\n").map { String(answer[$0.upperBound...]) } ?? ""
  }

  /// The number after `"id":`.
  private func id(in text: String) -> String {
    text.firstRange(of: #""id":"#).map { String(text[$0.upperBound...].prefix { $0.isNumber }) } ?? ""
  }

  @Test func aSessionIsCreatedAndItsEventsArePolled() async throws {
    try await withRooms { rooms in
      let created = try await rooms.http("POST", "/janus", #"{"janus":"create","transaction":"1"}"#)
      #expect(created.hasPrefix("HTTP/1.1 200 ") && created.lowercased().contains("content-type: application/json"))
      let session = id(in: body(created))
      let attach = #"{"janus":"attach","plugin":"janus.plugin.videoroom","transaction":"2"}"#
      let handle = id(in: body(try await rooms.http("POST", "/janus/\(session)", attach)))
      async let poll = rooms.http("GET", "/janus/\(session)?rid=17")
      let join = #"{"janus":"message","transaction":"3","body":{"request":"join","room":1,"ptype":"publisher"}}"#
      let acknowledged = body(try await rooms.http("POST", "/janus/\(session)/\(handle)", join))
      #expect(acknowledged == #"{"janus":"ack","session_id":\#(session),"transaction":"3"}"#)
      #expect(body(try await poll).contains(#""videoroom":"joined""#))
      let leave = #"{"janus":"message","transaction":"4","body":{"request":"leave"}}"#
      _ = try await rooms.http("POST", "/janus/\(session)/\(handle)", leave)
      let several = body(try await rooms.http("GET", "/janus/\(session)?maxev=5"))
      #expect(several.hasPrefix("[{") && several.contains(#""leaving":"ok""#))
    }
  }

  @Test func secretsOfAPollAreInItsQuery() async throws {
    try await withRooms(isOpen: false) { rooms in
      let create = #"{"janus":"create","apisecret":"secret","transaction":"1"}"#
      let session = id(in: body(try await rooms.http("POST", "/janus", create)))
      #expect(body(try await rooms.http("GET", "/janus/\(session)")).contains(#""code":403"#))
      #expect(body(try await rooms.http("GET", "/janus/99?apisecret=s%65cret")).contains(#""code":458"#))
    }
  }

  @Test func anythingElseIsNotFoundOrRefused() async throws {
    try await withRooms({ $0.messageBytes = 1_000 }) { rooms in
      for path in ["/janus/x", "/janus/1/2/3", "/janus/-1", "/janusx"] {
        let answer = try await rooms.http("POST", path, "{}")
        #expect(answer.hasPrefix("HTTP/1.1 404 "), "\(path)")
      }
      #expect(try await rooms.http("GET", "/janus").hasPrefix("HTTP/1.1 404 "))
      #expect(try await rooms.http("PUT", "/janus", "{}").hasPrefix("HTTP/1.1 405 "))
      #expect(body(try await rooms.http("POST", "/janus", "{")).contains(#""code":454"#))
      #expect(try await rooms.http("POST", "/janus", String(repeating: " ", count: 1_001)).hasPrefix("HTTP/1.1 413 "))
      #expect(body(try await rooms.http("GET", "/janus/info")).contains("janus.plugin.videoroom"))
    }
  }

  @Test func aPollWhoseClientIsGoneIsForgotten() async throws {
    try await withRooms { rooms in
      let session = id(in: body(try await rooms.http("POST", "/janus", #"{"janus":"create","transaction":"1"}"#)))
      let client = try await TestClient.open(port: rooms.httpPort)
      try await client.send("GET /janus/\(session) HTTP/1.1\r\nHost: localhost\r\n\r\n")
      try await client.close()
      while rooms.rooms.exchangesGone == 0 { await Task.yield() }
    }
  }

  @Test func pagesOfNamedOriginsMayReadAnswers() async throws {
    try await withRooms { rooms in
      let named = try await rooms.http("OPTIONS", "/janus", headers: ["Origin: https://app.example"])
      #expect(named.contains("access-control-allow-origin: https://app.example") && named.contains("GET, POST"))
      let foreign = try await rooms.http("OPTIONS", "/janus", headers: ["Origin: https://other.example"])
      #expect(!foreign.contains("access-control-allow-origin"))
    }
  }
}
