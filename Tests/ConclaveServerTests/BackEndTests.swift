import CallMessages
import Contract
import Crypto
import Foundation
import MediaModel
import NIOCore
import NIOPosix
import Testing

@testable import ConclaveServer

private let secret = String(repeating: "k", count: 40)
private let (alice, bob, carol) = (UserID("alice")!, UserID("bob")!, UserID("carol")!)

private func backEnd(_ members: String) throws -> BackEnd {
  let configuration = try Configuration(json: Array("{\(members)}".utf8))
  return try #require(
    try BackEnd(
      configuration, answerTime: .seconds(1), clock: WallClock(), group: MultiThreadedEventLoopGroup.singleton))
}

private func webhooks(_ url: String, more: String = "") throws -> BackEnd {
  try backEnd(#""webhooks":{"url":"\#(url)","secret":"\#(secret)"\#(more)}"#)
}

func authorizer(_ url: String) throws -> BackEnd {
  try backEnd(#""authorize":{"url":"\#(url)","secret":"\#(secret)"}"#)
}

private func ended(_ call: String, seconds: Int = 7) -> EventMessage {
  EventMessage(
    at: Timestamp(milliseconds: 1_790_000_000_000), call: CallID(unchecked: call),
    body: .ended(.init(reason: .allLeft, by: nil, seconds: seconds)))
}

/// Checks it like a back end, with only Foundation and swift-crypto.
private func isSigned(_ request: BackEndServer.Received, by secret: String) -> Bool {
  let parts = (request.headers["conclave-signature"] ?? "").split(separator: ",").map { $0.split(separator: "=") }
  guard parts.count == 2, parts[0].first == "t", parts[1].first == "v1", let time = Int(parts[0][1]) else {
    return false
  }
  let code = HMAC<SHA256>.authenticationCode(
    for: Data("\(time).".utf8) + Data(request.body), using: SymmetricKey(data: Data(secret.utf8)))
  return code.map { String(format: "%02x", $0) }.joined() == String(parts[1][1])
    && abs(Date().timeIntervalSince1970 - Double(time)) < 600
}

/// Each byte of an answer comes in time, but the whole answer does not.
struct DrippingServers {
  @Test func anAuthorizeAnswerByteByByteIsGivenUpWithItsConnection() async throws {
    let server = try await BackEndServer { _, _ in
      .init(body: String(repeating: " ", count: 10_000), drip: .milliseconds(50))
    }
    let backEnd = try authorizer(server.url)
    let clock = ContinuousClock()
    let began = clock.now
    let answer = await backEnd.authorizer?.allowed(.ring, from: alice, to: [bob])
    #expect(answer?.allowed == [] && answer?.source == .failure)
    #expect(clock.now - began < .seconds(40), "the bound is 1 s, and the answer would take 500 s")
    #expect(await eventually { server.connections == 0 })
    backEnd.stop()
    await server.stop()
  }

  @Test func aWebhookDoesNotWaitForABodyThatItDoesNotRead() async throws {
    let server = try await BackEndServer { _, _ in
      .init(body: String(repeating: " ", count: 10_000), drip: .milliseconds(50))
    }
    let backEnd = try webhooks(server.url)
    backEnd.webhooks?.send(ended("c1"))
    #expect(await eventually { backEnd.webhooks?.statistics.delivered == 1 })
    #expect(await eventually { server.connections == 0 })
    backEnd.stop()
    await server.stop()
  }
}

struct WebhookTests {
  @Test func anEventIsPostedWithItsNameAndASignature() async throws {
    let server = try await BackEndServer { _, _ in .init() }
    let backEnd = try webhooks(server.url)
    backEnd.webhooks?.send(ended("c1"))
    #expect(await eventually { backEnd.webhooks?.statistics.delivered == 1 })
    let request = try #require(server.received.first)
    #expect(request.path == "/hook" && request.headers["content-type"] == "application/json")
    #expect(request.headers["conclave-event"] == "call.ended")
    #expect(try #require(request.headers["conclave-id"]).count >= 16)
    #expect(isSigned(request, by: secret) && !isSigned(request, by: "another"))
    let body = try #require(try JSONSerialization.jsonObject(with: Data(request.body)) as? [String: Any])
    #expect(body["event"] as? String == "call.ended" && body["call"] as? String == "c1")
    #expect(body["at"] as? Int == 1_790_000_000_000 && body["seconds"] as? Int == 7)
    backEnd.stop()
    await server.stop()
  }

  @Test func requestsBelongToTheTraceOfTheirCallWhereThereIsOne() async throws {
    let server = try await BackEndServer { _, _ in .init(body: "[]") }
    let (hook, door) = (try webhooks(server.url), try authorizer(server.url))
    hook.webhooks?.send(ended("c1"), traceparent: "00-0a-0b-01")
    #expect(await eventually { server.received.count == 1 })
    _ = await door.authorizer?.allowed(.ring, from: alice, to: [bob], traceparent: "00-0a-0c-01")
    _ = await door.authorizer?.allowed(.ring, from: alice, to: [bob])
    #expect(server.received.map { $0.headers["traceparent"] } == ["00-0a-0b-01", "00-0a-0c-01", nil])
    hook.stop()
    door.stop()
    await server.stop()
  }

  @Test(arguments: [500, 503, 429]) func aFailureIsTriedAgainUnderTheSameID(status: Int) async throws {
    let server = try await BackEndServer { number, _ in .init(status: number == 0 ? status : 204) }
    let backEnd = try webhooks(server.url)
    backEnd.webhooks?.send(ended("c1", seconds: 1))
    backEnd.webhooks?.send(ended("c1", seconds: 2))
    #expect(await eventually { backEnd.webhooks?.statistics.delivered == 2 })
    let ids = server.received.map { $0.headers["conclave-id"] }
    #expect(ids.count == 3 && ids[0] == ids[1] && ids[1] != ids[2])
    #expect(server.received.map { $0.text.contains(#""seconds":1"#) } == [true, true, false])
    backEnd.stop()
    await server.stop()
  }

  @Test func aRefusalAndARedirectAreNotTriedAgain() async throws {
    let target = try await BackEndServer { _, _ in .init() }
    let location = target.url
    let server = try await BackEndServer { number, _ in
      number == 0 ? .init(status: 400) : .init(status: 307, location: location)
    }
    let backEnd = try webhooks(server.url)
    backEnd.webhooks?.send(ended("c1"))
    backEnd.webhooks?.send(ended("c1"))
    #expect(await eventually { backEnd.webhooks?.statistics.drops == [.refused: 2] })
    #expect(server.received.count == 2 && target.received.isEmpty)
    backEnd.stop()
    await server.stop()
    await target.stop()
  }

  @Test func onlyWantedEventsAreSent() async throws {
    let server = try await BackEndServer { _, _ in .init() }
    let backEnd = try webhooks(server.url, more: #","events":["push.ring"]"#)
    backEnd.webhooks?.send(ended("c1"))
    #expect(backEnd.webhooks?.statistics.waiting == 0)
    backEnd.stop()
    await server.stop()
  }

  @Test func aSlowCallHoldsUpNoOther() async throws {
    let server = try await BackEndServer { _, request in
      .init(delay: request.text.contains("slow") ? .seconds(9) : .zero)
    }
    let backEnd = try webhooks(server.url)
    backEnd.webhooks?.send(ended("slow"))
    for i in 0..<20 { backEnd.webhooks?.send(ended("quick \(i)")) }
    #expect(await eventually { backEnd.webhooks?.statistics.delivered == 20 })
    #expect(backEnd.webhooks?.statistics.waiting == 1)
    backEnd.stop()
    await server.stop()
  }
}

struct AuthorizeTests {
  @Test(arguments: [#"{"allowed":["bob","mallory"]}"#, #"["bob"]"#, #"{"allowed":["bob",""],"more":1}"#])
  func theAnswerNamesWhoIsAllowed(body: String) async throws {
    let server = try await BackEndServer { _, _ in .init(body: body) }
    let backEnd = try authorizer(server.url)
    let allowed = await backEnd.authorizer?.allowed(.ring, from: alice, to: [bob, carol])
    #expect(allowed?.allowed == [bob], "and nobody who was not in the question")
    let request = try #require(server.received.first)
    #expect(isSigned(request, by: secret))
    let asked = try #require(try JSONSerialization.jsonObject(with: Data(request.body)) as? [String: Any])
    #expect(asked["action"] as? String == "ring" && asked["from"] as? String == "alice")
    #expect(asked["to"] as? [String] == ["bob", "carol"])
    backEnd.stop()
    await server.stop()
  }

  @Test(arguments: [
    BackEndServer.Answer(status: 500, body: #"["bob"]"#), .init(body: "yes"), .init(body: #"{"allowed":"bob"}"#),
    .init(body: "[" + String(repeating: #""bob","#, count: 300_000) + #""bob"]"#),
    .init(body: #"["bob"]"#, delay: .minutes(10)),
  ])
  func eachFailureMeansNobody(answer: BackEndServer.Answer) async throws {
    let server = try await BackEndServer { _, _ in answer }
    let backEnd = try authorizer(server.url)
    let start = ContinuousClock.now
    #expect(await backEnd.authorizer?.allowed(.watch, from: alice, to: [bob]).source == .failure)
    #expect(ContinuousClock.now - start < .seconds(300), "it does not wait for the late answer")
    #expect(backEnd.authorizer?.statistics.failed == 1)
    backEnd.stop()
    await server.stop()
  }

  @Test func aBackEndThatIsNotThereIsNobody() async throws {
    let backEnd = try authorizer("http://127.0.0.1:1/")
    #expect(await backEnd.authorizer?.allowed(.devices, from: alice, to: [bob]).allowed == [])
    backEnd.stop()
  }
}
