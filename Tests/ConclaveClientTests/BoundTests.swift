import Contract
import MediaModel
import NIOCore
import NIOEmbedded
import NIOPosix
import STOMP
import Synchronization
import Testing

@testable import ConclaveClient

/// A server that floods, and an app that does not read: the client's memory stays within its bounds.
@Suite(.timeLimit(.minutes(5)))
struct BoundTests {
  private static let call = "00000000-0000-4000-8000-000000000001"
  private static let silence = #"{"at":1,"call":"\#(call)","participants":[2]}"#

  private func client(of server: FakeServer) throws -> CallClient {
    CallClient(
      server: ServerAddress(host: "127.0.0.1", port: server.port, usesTLS: false),
      identity: try #require(DeviceIdentity(user: "alice", device: "phone")), token: { "good" })
  }

  // MARK: what the app does not read

  /// A flood of presences displaces only the oldest presences, and nothing that the app has to keep.
  @Test func eventsToKeepAreNeverDropped() async {
    let queue = UnreadQueue<ClientEvent>()
    let pins = (1...3_000).map { PinnedDevice(user: "bob", device: "\($0)", fingerprint: [1]) }
    for (number, pin) in pins.enumerated() {
      queue.yield(.pinned(pin))
      queue.yield(.ringUsed(UsedRing(call: "\(number)", at: 1)))
      queue.yield(.presence(Presence(PresenceState(user: UserID("u\(number)")!, state: .offline))))
    }
    queue.yield(.pinned(pins[0]))
    queue.finish()
    var counts = (pins: 0, rings: 0, presences: 0)
    var last: ClientEvent?
    for await event in queue.stream {
      switch event {
      case .pinned: counts.pins += 1
      case .ringUsed: counts.rings += 1
      default: counts.presences += 1
      }
      last = event
    }
    #expect(counts.pins == 3_000)
    #expect(counts.rings == 3_000)
    #expect(counts.presences == UnreadQueue<ClientEvent>.limit)
    #expect(last == .pinned(pins[0]), "the newest pin of a device took the place of the older one")
  }

  /// A server floods the app with everything that it can make up.
  @Test func noFloodDrivesOutAWarning() async {
    let queue = UnreadQueue<CallUpdate>()
    func warning(_ device: Int) -> CallUpdate {
      .keyWarning(KeyWarning(.changedKey, user: "bob", device: "\(device)", fingerprint: [1]))
    }
    for device in 1...2_000 { queue.yield(warning(device)) }
    queue.yield(.warning(.brokenHistory))
    queue.yield(.silence([]))
    for number: UInt32 in 1...5_000 {
      queue.yield(.message(from: number, body: [], isPrivate: false))
      queue.yield(.wanted(track: "\(number).1", layers: []))
      queue.yield(.warning(.keyWithheld))
      queue.yield(warning(1))
    }
    queue.yield(.ended(reason: "failed"))
    queue.finish()
    var updates: [CallUpdate] = []
    for await update in queue.stream { updates.append(update) }
    #expect((1...2_000).allSatisfy { device in updates.count { $0 == warning(device) } == 1 })
    #expect(updates.contains(.warning(.brokenHistory)) && updates.contains(.silence([])))
    #expect(updates.last == .ended(reason: "failed"))
    #expect(updates.count == 2_000 + 4 + UnreadQueue<CallUpdate>.limit)
  }

  @Test func bytesThatWaitForTheAppAreBounded() async {
    let queue = UnreadQueue<CallUpdate>()
    let large = [UInt8](repeating: 0, count: UnreadQueue<CallUpdate>.byteLimit / 2)
    for number: UInt32 in 1...4 { queue.yield(.message(from: number, body: large, isPrivate: false)) }
    queue.finish()
    var senders: [UInt32] = []
    for await case .message(let from, _, _) in queue.stream { senders.append(from) }
    #expect(senders == [4])
  }

  /// The app never reads: rather than lose a pin, the client stops learning new ones.
  @Test func aClientWhoseAppDoesNotReadEndsBeforeItsPinsAreLost() async throws {
    let server = try await FakeServer { _, _ in ("ok", #"{"fingerprint":"AAAA"}"#) }
    let client = try client(of: server)
    try await client.connect()
    for number in 1...CallClient.securityLimit {
      await client.trust(PinnedDevice(user: "bob", device: "\(number)", fingerprint: [UInt8](repeating: 1, count: 32)))
    }
    var pins = 0
    var end: ClientEvent?
    for await event in client.events {
      if case .pinned = event { pins += 1 } else { end = event }
    }
    #expect(pins == CallClient.securityLimit)
    #expect(end == .ended("the app does not read the client's events"))
  }

  // MARK: what has arrived

  /// Everything arrives in the end, and never more than the bound waits.
  @Test func aFloodWaitsInTheSocket() async throws {
    let server = try await FakeServer()
    let connection = SignalingConnection(
      address: ServerAddress(host: "127.0.0.1", port: server.port, usesTLS: false), user: "alice", device: "phone",
      group: .singletonMultiThreadedEventLoopGroup, token: { "good" })
    await connection.open()
    for await status in connection.statuses where status == .connected { break }
    let total = 3 * ArrivalQueue.limit
    async let flood: Void = {
      for seq in 1...total { try await server.event("speakers", seq: UInt64(seq), body: Self.silence, on: 1) }
    }()
    while connection.arrivals.count < ArrivalQueue.limit { await Task.yield() }
    var read = 0
    for await arrival in connection.arrivals {
      #expect(connection.arrivals.count <= ArrivalQueue.limit)
      guard case .event(let delivery) = arrival else { continue }
      read += 1
      #expect(delivery.seq == UInt64(read))
      if read == total { break }
    }
    try await flood
    await connection.close()
  }

  @Test func oneWhoSendsWaitsForRoom() async {
    let queue = ArrivalQueue()
    let call = CallID(Self.call)!
    let sent = Mutex(0)
    let sender = Task {
      for _ in 0..<3 * ArrivalQueue.limit {
        await queue.send(.event(Self.delivery(1)))
        sent.withLock { $0 += 1 }
      }
      queue.add(.state(call, .failure(.timedOut)))
      queue.finish()
    }
    var read = 0
    for await _ in queue {
      read += 1
      #expect(sent.withLock { $0 } <= read + ArrivalQueue.limit)
    }
    await sender.value
    #expect(read == 3 * ArrivalQueue.limit + 1)
  }

  /// Reads that wait for the connection hold back the next one, until they are taken.
  @Test func theSocketIsNotReadWhileTheConnectionIsBehind() throws {
    let (inputs, source, demand) = FrameHandler.Inputs.make()
    let reads = Reads()
    let channel = EmbeddedChannel(handlers: [reads, FrameHandler(source, demand)])
    let bytes = FrameEncoder(version: .v12).encode(FakeServer.event("speakers", seq: 1, body: Self.silence))
    for _ in 0..<FrameHandler.Inputs.highest { try channel.writeInbound(bytes) }
    let before = reads.count
    channel.read()
    #expect(reads.count == before, "no read goes out")
    demand.produceMore()
    channel.embeddedEventLoop.run()
    #expect(reads.count == before + 1)
    withExtendedLifetime(inputs) {}
  }

  private final class Reads: ChannelOutboundHandler {
    typealias OutboundIn = ByteBuffer
    var count = 0

    func read(context: ChannelHandlerContext) {
      count += 1
      context.read()
    }
  }

  /// It floods with events and reads no acknowledgements, which would pile up here.
  @Test func aServerThatDoesNotReadIsLeft() throws {
    let (inputs, source, demand) = FrameHandler.Inputs.make()
    let channel = EmbeddedChannel(handler: FrameHandler(source, demand))
    try channel.connect(to: .init(ipAddress: "127.0.0.1", port: 1)).wait()
    #expect(channel.isActive)
    channel.isWritable = false
    channel.pipeline.fireChannelWritabilityChanged()
    channel.embeddedEventLoop.run()
    #expect(!channel.isActive)
    withExtendedLifetime(inputs) {}
  }

  @Test func onlyTheNewestStatusesWait() async throws {
    let server = try await FakeServer()
    let connection = SignalingConnection(
      address: ServerAddress(host: "127.0.0.1", port: server.port, usesTLS: false), user: "alice", device: "phone",
      group: .singletonMultiThreadedEventLoopGroup, token: { "good" })
    await connection.open()
    var connections = 0
    for await received in server.frames where received.frame.headers["id"] == "events" {
      connections += 1
      if connections == 3 { break }
      try await server.drop(connections)
    }
    await connection.close(reason: "done")
    var statuses: [SignalingConnection.Status] = []
    for await status in connection.statuses { statuses.append(status) }
    #expect(statuses == [.connected, .ended("done")])
  }

  // MARK: joins

  private static func delivery(_ seq: UInt64, bytes: Int = 10) -> ReceivedEvent {
    ReceivedEvent(
      message: EventMessage(
        at: Timestamp(milliseconds: 1), call: CallID(call), body: .speakers(Speakers(participants: []))),
      seq: seq, followsGap: false,
      frame: Frame(.message, [:], body: ByteBuffer(repeating: 32, count: bytes)), connection: 1)
  }

  @Test func eventsOfJoinsAreBoundedForAllCallsTogether() {
    var early = EarlyEvents()
    var kept = 0
    for number in 0..<100 {
      for seq: UInt64 in 1...300 where early.keep(Self.delivery(seq), of: CallID("call\(number)")!) { kept += 1 }
    }
    #expect(kept == EarlyEvents.limit)
    let (events, isComplete) = early.take(CallID("call0")!)
    #expect(events.count == EarlyEvents.callLimit && !isComplete)
    // A part after the lost one would be out of order.
    let isKept = early.keep(Self.delivery(301), of: CallID("call1")!)
    #expect(!isKept)
    let isLargeKept = early.keep(Self.delivery(1, bytes: EarlyEvents.byteLimit), of: CallID("call0")!)
    #expect(!isLargeKept)
  }

  /// The server floods a call whose join it does not answer. The client then asks for what was lost.
  @Test func aJoinThatLostEventsCatchesUp() async throws {
    let server = try await FakeServer { destination, _ in
      destination.hasSuffix("/rejoin") ? nil : ("ok", #"{"fingerprint":"AAAA"}"#)
    }
    let client = try client(of: server)
    try await client.connect()
    async let joined = client.rejoin(Self.call)
    var frames = server.frames.makeAsyncIterator()
    var request = ""
    while let received = await frames.next() {
      guard received.frame.headers["destination"]?.hasSuffix("/rejoin") == true else { continue }
      request = received.frame.headers["request-id"] ?? ""
      break
    }
    for seq in 1...UInt64(EarlyEvents.callLimit + 1) {
      try await server.event("speakers", seq: seq, body: Self.silence, on: 1)
    }
    // The last one, for which there is no room, is acknowledged.
    while let received = await frames.next(), received.frame.headers["id"] != "a\(EarlyEvents.callLimit + 1)" {}
    try await server.reply(to: request, body: Self.joined, on: 1)
    _ = try await joined
    var asked: Set<String> = []
    while asked.count < 2, let received = await frames.next() {
      guard let destination = received.frame.headers["destination"] else { continue }
      if destination.hasSuffix("/state") || destination.hasSuffix("/keys/list") { asked.insert(destination) }
    }
    #expect(asked.count == 2)
    await client.close()
  }

  // MARK: requests of its own

  /// The client does not make a request for each event of a server that answers none.
  @Test func eventsWithoutEndCauseNoRequestsWithoutEnd() async throws {
    let server = try await FakeServer { destination, _ in
      if destination.hasSuffix("/rejoin") { return ("ok", Self.joined) }
      if destination == "/app/calls/list" { return ("ok", #"{"calls":[]}"#) }
      return destination.hasSuffix("/register") ? ("ok", #"{"fingerprint":"AAAA"}"#) : nil
    }
    let client = try client(of: server)
    try await client.connect()
    _ = try await client.rejoin(Self.call)
    var seq: UInt64 = 1
    try await server.event(
      "call.state", seq: seq, body: #"{"at":1,"call":"\#(Self.call)","# + Self.state.dropFirst(), on: 1)
    for number in 1...200 {
      // Before each number one is missing.
      seq += 2
      let changed = #"{"at":1,"call":"\#(Self.call)","user":"user\#(number)"}"#
      try await server.event("keys.devices-changed", seq: seq, body: changed, on: 1)
      seq += 2
      try await server.event("call.ring", seq: seq, body: Self.ring(number), on: 1)
    }
    var frames = server.frames.makeAsyncIterator()
    var requests: [String: Int] = [:]
    func count(until isLast: (Frame) -> Bool) async {
      while let frame = await frames.next()?.frame {
        if frame.command == .send { requests[frame.headers["destination"] ?? "", default: 0] += 1 }
        if isLast(frame) { break }
      }
    }
    await count { $0.headers["id"] == "a\(seq)" }
    // It is sent after the requests that the events have caused.
    _ = try await client.joinableCalls()
    await count { $0.headers["destination"] == "/app/calls/list" }
    #expect(requests["/app/calls/\(Self.call)/state"] == 1)
    // One more is from the newcomer, which has no list after 5 s.
    #expect((1...2).contains(requests["/app/calls/\(Self.call)/keys/list"] ?? 0))
    // One for the members, and one for each ring that is kept.
    #expect((2...1 + CallClient.maximumRings).contains(requests["/app/devices/list"] ?? 0))
    await client.close()
  }

  private static let joined = #"{"call":\#(state),"participant":5,"ice":{"servers":[]}}"#

  private static let state =
    #"{"id":"\#(call)","state":"active","media":"audio","initiator":"bob","startedAt":1,"epoch":4,"#
    + #""policy":{},"members":[{"user":"alice","state":"joined","participants":[{"participant":5,"device":"phone","#
    + #""joinId":"AAAAAAAAAAAAAAAAAAAAAA==","connected":true,"held":false,"tracks":[]}]}]}"#

  /// With a key of an unknown device. Its id is always the same, so that the ring is kept again each time.
  private static func ring(_ number: Int) -> String {
    let device = #""user":"bob","device":"d\#(number)""#
    return
      #"{"at":1,"call":"00000000-0000-4000-8000-000000000002","from":"bob","media":"audio","members":[],"waiting":false,"#
      + #""expiresAt":9000000000000,"envelope":{"epoch":1,"to":{"user":"alice","device":"phone"},"from":{\#(device)},"key":"AAAA","#
      + #""alg":"x","ciphertext":"AAAA"},"list":[{\#(device),"participant":0,"fingerprint":"AAAA"}]}"#
  }
}
