import Contract
import Testing

@testable import ConclaveClient

/// Lasting links, with a real server: made without a call, and serving one call after the other.
@Suite(.timeLimit(.minutes(5))) struct LastingLinkTests {
  private static let over = "call.link-invalid"

  private func code(_ action: () async throws -> Void) async -> String? {
    do {
      try await action()
      return nil
    } catch SignalingError.refused(let code, _) {
      return code
    } catch {
      return "\(error)"
    }
  }

  @Test func oneLinkServesTwoCalls() async throws {
    let house = try await House()
    let (alice, bob) = try await (house.client("alice"), house.client("bob"))
    let link = try await alice.client.makeLastingLink(expiresIn: 86_400)
    #expect(!"\(link)".contains(link.secret) && LinkSecret(link.secret)?.id.text == link.id)
    for _ in 0..<2 {
      // Bob waits before Alice starts.
      async let joining = bob.client.join(lasting: link.secret)
      let call = try await alice.client.start(lasting: link, media: .audio)
      let bobs = try await joining
      #expect(bobs.id == call.id)
      try await expectAgreement([call, bobs])
      try await eventually { await bobs.snapshot?.root == "alice" }
      try await eventually {
        await call.snapshot?.devices.first { $0.user == "bob" }?.letIn == .link(of: "alice")
      }
      let list = try await alice.client.lastingLinks()
      #expect(list.days > 0 && list.links.map(\.id) == [link.id] && list.links.first?.call == call.id)
      try await call.end()
      for await _ in bobs.updates {}
    }
    await house.close()
  }

  @Test func onlyItsMakerStartsALinkAndOnlyWhileItLasts() async throws {
    let house = try await House()
    let (alice, bob) = try await (house.client("alice"), house.client("bob"))
    let link = try await alice.client.makeLastingLink(expiresIn: 3_600)
    #expect(await code { _ = try await bob.client.start(lasting: link, media: .audio) } == Self.over)
    var late = link
    late.expiresAt = 1
    #expect(await code { _ = try await alice.client.start(lasting: late, media: .audio) } == Self.over)
    var other = link
    other.id = "AAAAAAAAAAAAAAAAAAAAAA"
    await #expect(throws: SignalingError.invalidIdentifier) {
      _ = try await alice.client.start(lasting: other, media: .audio)
    }
    #expect(try await alice.client.joinableCalls().isEmpty)
    try await alice.client.deleteLastingLink(link.id)
    #expect(await code { _ = try await alice.client.start(lasting: link, media: .audio) } == Self.over)
    try await eventually { try await alice.client.joinableCalls().isEmpty }
    #expect(await code { _ = try await bob.client.join(lasting: link.secret) } == Self.over)
    await house.close()
  }

  @Test func theWaitingEndsWithTheLinkAndWithItsTask() async throws {
    let house = try await House()
    let (alice, bob, carol) = try await (house.client("alice"), house.client("bob"), house.client("carol"))
    let link = try await alice.client.makeLastingLink(expiresIn: 3_600)
    let bobs = Task { await code { _ = try await bob.client.join(lasting: link.secret) } }
    let carols = Task { await code { _ = try await carol.client.join(lasting: link.secret) } }
    for client in [bob.client, carol.client] { try await eventually { await !client.linkWaits.waiting.isEmpty } }
    carols.cancel()
    #expect(await carols.value == "call.not-found")
    #expect(await carol.client.linkWaits.waiting.isEmpty)
    try await alice.client.deleteLastingLink(link.id)
    #expect(await bobs.value == Self.over)
    await house.close()
  }
}
