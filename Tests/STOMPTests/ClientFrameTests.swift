import NIOCore
import STOMP
import Testing

/// A client's frames, checked by the server's rules.
@Suite struct ClientFrameTests {
  @Test(arguments: Version.allCases)
  func aClientConnectsSubscribesAndAcknowledges(version: Version) throws {
    var server = TestServer()
    let encoder = FrameEncoder(version: version)
    func send(_ frame: Frame) { server.receive(Array(encoder.encode(frame).readableBytesView)) }
    send(
      .connect(host: "h", passcode: "p:\\", device: "d", versions: [version], heartBeat: HeartBeat(sends: 0, wants: 0)))
    #expect(server.session.version == version)
    send(.subscribe(id: "e", to: "/user/queue/events", ack: .client, receipt: "1"))
    send(.send(to: "/app/x", headers: ["request-id": "7"], body: ByteBuffer(string: "{}")))
    #expect(server.sent.first?.headers["request-id"] == "7" && server.sent.first?.headers["destination"] == "/app/x")
    for token in 1...2 as ClosedRange<UInt64> { server.deliver("x", to: "/user/queue/events", token: token) }
    send(.acknowledge(try #require(server.last), version: version))
    #expect(server.acknowledged.map(\.token) == [1, 2])
    send(.unsubscribe(id: "e"))
    send(.disconnect(receipt: "2"))
    #expect(server.last == Frame(.receipt, ["receipt-id": "2"]) && server.closed == .disconnected)
  }
}
