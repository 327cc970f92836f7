import Contract
import NIOCore
import Listening
import Testing

@testable import ConclaveServer

@Suite(.timeLimit(.minutes(5))) struct PushPostTests {
  private func outcome(_ post: PushPost, _ server: BackEndServer) async throws -> PushPost.Failure? {
    let endpoint = try #require(PushEndpoint("https://127.0.0.1:\(server.port)/push?x=1"))
    do throws(PushPost.Failure) {
      try await post.post([1, 2, 3], to: endpoint, headers: [("ttl", "60")])
      return nil
    } catch {
      return error
    }
  }

  @Test func thePushServicesAnswerDecides() async throws {
    let statuses = [201, 410, 503, 307]
    let server = try await BackEndServer(certificate: "test") { number, _ in
      .init(status: statuses[number], location: "https://127.0.0.1/")
    }
    let post = try PushPost(
      addresses: PushAddresses(allowed: AddressList(["127.0.0.1"])), trust: BackEndServer.file("test-certificate"))
    for failure in [nil, .gone, .busy, .refused] as [PushPost.Failure?] {
      #expect(try await outcome(post, server) == failure)
    }
    #expect(server.received.allSatisfy { $0.path == "/push?x=1" && $0.body == [1, 2, 3] && $0.headers["ttl"] == "60" })
    #expect(server.received.count == 4 && server.accepted == 4)
    post.stop()
    #expect(try await outcome(post, server) == .unreachable)
    await server.stop()
  }

  @Test func aServiceInTheServersOwnNetworkIsNotConnectedTo() async throws {
    let server = try await BackEndServer(certificate: "test") { _, _ in .init() }
    let post = try PushPost(addresses: PushAddresses(allowed: nil), trust: BackEndServer.file("test-certificate"))
    #expect(try await outcome(post, server) == .address)
    #expect(server.accepted == 0)
    post.stop()
    await server.stop()
  }

  @Test func aServiceWithAnotherCertificateGetsNothing() async throws {
    let server = try await BackEndServer(certificate: "test") { _, _ in .init() }
    let post = try PushPost(addresses: PushAddresses(allowed: AddressList(["127.0.0.1"])), trust: nil)
    #expect(try await outcome(post, server) == .unreachable)
    #expect(server.received.isEmpty)
    post.stop()
    await server.stop()
  }
}
