import Connections
import Foundation
import MediaModel
import NIOCore
import Listening
import Testing

@testable import ConclaveServer

private let tokens = TokenAuthority(secret: String(repeating: "s", count: 64))

private func pages(demo: Bool, isReady: Bool = true) async throws -> Pages {
  try Pages(
    demo: demo ? tokens : nil, guests: nil, clock: WallClock(),
    status: StatusPages(unready: { isReady ? nil : "the disk is full" }, metrics: { "m 1\n" }))
}

private func request(
  _ method: String, _ path: String, host: String? = "localhost:8080", from address: String = "127.0.0.1",
  body: String = "", type: String = "application/json"
) throws -> HTTPRequest {
  let headers = [("content-type", type)] + (host.map { [("host", $0)] } ?? [])
  return HTTPRequest(
    method: method, path: path, query: nil, headers: headers.map { (name: $0.0, value: $0.1) },
    body: ByteBuffer(string: body), remoteAddress: try SocketAddress(ipAddress: address, port: 5))
}

private let signIn = #"{"user":"alice","device":"tab","name":"Alice"}"#

@Test(arguments: ["localhost:8080", "LOCALHOST", "127.0.0.1:8080", "[::1]:8080"])
func aNameIsEnoughAtThisMachineInDemoMode(host: String) async throws {
  let response = try await pages(demo: true).respond(to: request("POST", "/demo/token", host: host, body: signIn))
  #expect(response.status == 200)
  let text = String(buffer: response.body.bytes)
  let token = try #require(text.split(separator: "\"").first { $0.count > 40 })
  #expect(try await tokens.verify(String(token), now: WallClock().now()).user == UserID("alice"))
}

/// A foreign host name that points here is another site's page (DNS rebinding); another address is another machine.
@Test(arguments: [
  ("[::1].evil", "127.0.0.1"), ("localhost:1@evil", "127.0.0.1"), ("localhost.", "127.0.0.1"),
  ("evil.example:8080", "127.0.0.1"), ("localhost.evil.example", "127.0.0.1"), (nil, "127.0.0.1"),
  ("localhost", "192.0.2.1"), ("[::1]", "2001:db8::1"),
])
func otherOriginsGetNoDemoToken(host: String?, address: String) async throws {
  let pages = try await pages(demo: true)
  let post = try await pages.respond(to: request("POST", "/demo/token", host: host, from: address, body: signIn))
  #expect(post.status == 405)
  #expect(try await pages.respond(to: request("GET", "/demo", host: host, from: address)).status == 404)
}

@Test func withoutDemoModeThereIsNoDemoToken() async throws {
  let pages = try await pages(demo: false)
  #expect(try await pages.respond(to: request("POST", "/demo/token", body: signIn)).status == 405)
  #expect(try await pages.respond(to: request("GET", "/demo")).status == 404)
}

@Test func aFormOfAnotherSiteAndABadIdGetNoToken() async throws {
  let pages = try await pages(demo: true)
  #expect(
    try await pages.respond(to: request("POST", "/demo/token", body: signIn, type: "text/plain")).status == 415)
  #expect(try await pages.respond(to: request("POST", "/demo/token", body: #"{"user":"a b"}"#)).status == 400)
}

@Test func readinessWaitsForThePorts() async throws {
  #expect(try await pages(demo: false, isReady: false).respond(to: request("GET", "/readyz")).status == 503)
  #expect(try await pages(demo: false).respond(to: request("GET", "/readyz")).status == 200)
}

@Test func onlyThePageIsServedAndItMayLoadOnlyItself() async throws {
  let pages = try await pages(demo: false)
  let page = try await pages.respond(to: request("GET", "/", from: "192.0.2.1"))
  #expect(page.status == 200)
  let policies = page.headers.filter { $0.name == "content-security-policy" }.map(\.value)
  #expect(policies.count == 1)
  let directives = policies.flatMap { $0.components(separatedBy: "; ") }
  #expect(directives.contains("default-src 'none'"))
  #expect(directives.contains("connect-src 'self'"))
  #expect(directives.contains("require-trusted-types-for 'script'"))
  #expect(directives.contains("trusted-types conclave conclave-page"))
  #expect(!String(buffer: page.body.bytes).contains("http-equiv"))
  let manifest = try await pages.respond(to: request("GET", "/manifest.webmanifest"))
  #expect(manifest.headers.contains { $0.name == "content-type" && $0.value == "application/manifest+json" })
  let worker = try await pages.respond(to: request("GET", "/sw.js"))
  #expect(worker.status == 200 && worker.headers.contains { $0.name == "cache-control" && $0.value == "no-cache" })
  #expect(!String(buffer: page.body.bytes).contains("href=\"sw.js\""), "the page registers it, and does not run it")
  for path in ["/../Configuration.swift", "/etc/passwd", "/index.html/..", "//index.html"] {
    #expect(try await pages.respond(to: request("GET", path)).status == 404)
  }
}
