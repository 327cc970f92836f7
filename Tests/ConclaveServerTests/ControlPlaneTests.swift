import CallMessages
import Calls
import Contract
import Foundation
import GRDB
import Logging
import MediaModel
import MediaPlane
import NIOCore
import NIOPosix
import Connections
import Listening
import Synchronization
import Testing
import Transport

@testable import ConclaveServer
@testable import Persistence

/// A value that several threads share.
private final class Box<Value: Sendable>: Sendable {
  let value: Mutex<Value>
  init(_ value: Value) { self.value = Mutex(value) }
}

/// A control plane with a real database whose disk can be blocked, and a list instead of clients.
private final class Plane: Sendable {
  let folder = FileManager.default.temporaryDirectory.path + "/plane-\(UUID().uuidString)"
  let store: SQLiteStore
  let health = StoreHealth()
  let loop: any EventLoop
  let control: ControlPlane
  /// Everything that clients were told, as `session id`, with the users whose presence was on the disk at that moment.
  let told: AsyncStream<(String, stored: [String])>
  private let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
  private let reading = NIOThreadPool(numberOfThreads: 1)
  private let media: MediaWorkers
  private let count = Box(0)
  private let disk = DispatchSemaphore(value: 0)

  /// Replies so far.
  var replies: Int { count.value.withLock { $0 } }

  /// Requests that failed.
  let failures = Box<[String]>([])
  /// The events that users were charged for.
  let charges = Box<[UserID: EventCharge]>([:])
  /// Sessions whose requests are refused.
  let inDebt = Box<Set<SessionID>>([])

  /// - Parameter backEnd: decides which users a user may reach; nil: no back end.
  init(backEnd: BackEnd? = nil) throws {
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    let store = try SQLiteStore(path: folder + "/conclave.sqlite")
    self.store = store
    loop = group.next()
    reading.start()
    let log = LimitedLog(Logger(label: "test"))
    let clock = WallClock()
    let health = health
    var layout = MediaPlaneConfiguration()
    layout.workers = 1
    let certificate = DTLSCertificate()
    media = try MediaWorkers(layout, node: Incarnation(6), certificate: certificate, seed: 1) { _ in }
    let (told, continuation) = AsyncStream.makeStream(of: (String, stored: [String]).self)
    self.told = told
    let count = count
    let (charges, inDebt, failures) = (charges, inDebt, failures)
    var configuration = CallConfiguration()
    configuration.asksBackEnd = backEnd != nil
    control = ControlPlane(
      node: Node(
        configuration: configuration, hashing: .sha256,
        random: { UInt64.random(in: .min ... .max) }),
      ControlPlane.Parts(
        clock: clock, loop: loop,
        disk: ControlPlane.Disk(
          store: store, token: FencingToken(number: 0),
          recorder: Recorder(place: store.place, logger: Logger(label: "test"), health: health),
          archive: Archive(store: store, clock: clock, log: log),
          housekeeping: Housekeeping(store: store, health: health, clock: clock, historyDays: 30, log: log)),
        media: ControlPlane.Media(
          workers: media, callShare: 40, announced: try AnnouncedAddresses(["192.0.2.1"]),
          fingerprint: certificate.fingerprint, reading: reading),
        clients: ControlPlane.Clients(
          deliver: { deliveries in
            let users = try? store.reader.read {
              try String.fetchAll($0, sql: "SELECT user FROM presence ORDER BY user")
            }
            for case .reply(let session, let id, let reply) in deliveries {
              if case .failed = reply { failures.value.withLock { $0.append(id) } }
              count.value.withLock { $0 += 1 }
              continuation.yield(("\(session.rawValue) \(id)", stored: users ?? ["unreadable"]))
            }
          },
          charge: { user, events in
            charges.value.withLock {
              let before = $0[user] ?? EventCharge(count: 0, bytes: 0)
              $0[user] = EventCharge(count: before.count + events.count, bytes: before.bytes + events.bytes)
            }
          },
          refusal: { session in
            inDebt.value.withLock { $0.contains(session) } ? RequestError(.rateLimited, "wait", retryAfterMs: 1) : nil
          }),
        backEnd: backEnd, log: CallLog(Logger(label: "test"))))
  }

  func connect(_ session: UInt64, _ user: String, _ device: String = "phone") {
    let device = Device(user: UserID(unchecked: user), device: DeviceID(unchecked: device))
    control.submit(.connect(SessionID(rawValue: session), Identity(device: device, name: nil)))
  }

  /// A request that stores something.
  func setPresence(_ session: UInt64, _ id: String) {
    control.submit(
      .request(SessionID(rawValue: session), id: id, .people(.setPresence(SetPresence(state: .unavailable)))))
  }

  func watch(_ session: UInt64, _ user: String) {
    let body = WatchPresence(users: [UserID(unchecked: user)])
    control.submit(.request(SessionID(rawValue: session), id: "watch", .people(.watchPresence(body))))
  }

  /// A request that stores nothing.
  func listCalls(_ session: UInt64, _ id: String) {
    control.submit(.request(SessionID(rawValue: session), id: id, .listCalls))
  }

  /// No transaction ends until `releaseDisk`.
  func holdDisk() { store.writer.asyncWriteWithoutTransaction { [disk] _ in disk.wait() } }
  func releaseDisk() { disk.signal() }

  /// Returns when the control plane has handled all requests, which it does on the loop that serves connections.
  func settle() async throws {
    while control.backlog.waiting > 0 { try await loop.submit {}.get() }
    try await loop.submit {}.get()
  }

  func stop() async throws {
    await control.stop()
    media.stop()
    try await group.shutdownGracefully()
    try await reading.shutdownGracefully()
    try FileManager.default.removeItem(atPath: folder)
  }
}

/// Everything that a client was told is on the disk, and no connection waits for the disk.
@Suite(.timeLimit(.minutes(5))) struct ControlPlaneTests {
  /// A request that came before its user's debt was known may be queued behind the one that made the debt.
  @Test func aRequestInLineIsRefusedWhenItsUserHasCausedTooMuch() async throws {
    let plane = try Plane()
    plane.connect(1, "alice")
    plane.connect(2, "bob")
    plane.setPresence(1, "a1")
    plane.setPresence(2, "b1")
    try await plane.settle()
    plane.inDebt.value.withLock { $0 = [SessionID(rawValue: 1)] }
    plane.setPresence(1, "a2")
    plane.setPresence(2, "b2")
    try await plane.settle()
    var told = plane.told.makeAsyncIterator()
    var replies: Set<String> = []
    while replies.count < 4, let (reply, _) = await told.next() { replies.insert(reply) }
    #expect(replies == ["1 a1", "2 b1", "1 a2", "2 b2"])
    #expect(plane.failures.value.withLock { $0 } == ["a2"])
    try await plane.stop()
  }

  /// Presence goes to all connections that watch the user: whoever changes it is charged for the bytes.
  @Test func eventsAreChargedToWhoeverCausedThem() async throws {
    let plane = try Plane()
    plane.connect(1, "alice")
    for session in 2...21 {
      plane.connect(UInt64(session), "alice", "device\(session)")
      plane.control.submit(.subscribe(SessionID(rawValue: UInt64(session)), .events, .auto))
    }
    for session in 2...21 { plane.watch(UInt64(session), "alice") }
    try await plane.settle()
    plane.charges.value.withLock { $0 = [:] }
    plane.setPresence(1, "a")
    try await plane.settle()
    let charges = plane.charges.value.withLock { $0 }
    #expect(charges.keys.map(\.text) == ["alice"])
    let alice = try #require(charges[UserID(unchecked: "alice")])
    #expect(alice.count == 20 && alice.bytes >= 20 * 60)
    try await plane.stop()
  }

  @Test func aServerThatWasReplacedWritesNothing() async throws {
    let plane = try Plane()
    plane.connect(1, "alice")
    _ = try SQLiteStore(path: plane.store.path).load(now: WallClock().now())
    plane.setPresence(1, "a")
    var told = plane.told.makeAsyncIterator()
    let reply = try #require(await told.next())
    #expect(reply.0 == "1 a" && reply.stored == [], "it continues in memory, as with a failing disk")
    #expect(plane.health.statistics.failure?.contains("a server that started later uses the file") == true)
    try await plane.stop()
  }

  @Test func aSlowDiskHoldsBackRepliesAndNotTheLoop() async throws {
    let plane = try Plane()
    plane.connect(1, "alice")
    plane.connect(2, "bob")
    plane.holdDisk()
    plane.setPresence(1, "a1")
    plane.listCalls(2, "b1")
    plane.setPresence(2, "b2")
    plane.listCalls(1, "a2")
    try await plane.settle()
    #expect(plane.replies == 0, "the loop has continued, and told nobody what is not on the disk")
    plane.releaseDisk()
    var told = plane.told.makeAsyncIterator()
    var order: [String] = []
    for _ in 0..<4 {
      let (reply, stored) = try #require(await told.next())
      order.append(reply)
      #expect(stored.contains("alice"), "\(reply) may tell of it")
      if order.contains("2 b2") { #expect(stored == ["alice", "bob"]) }
    }
    // Users are served round-robin, and each user's requests in order.
    #expect(order.first == "1 a1" && order.filter { $0.hasPrefix("1") } == ["1 a1", "1 a2"])
    #expect(order.filter { $0.hasPrefix("2") } == ["2 b1", "2 b2"])
    try await plane.stop()
  }

  @Test func effectsThatNothingWaitsForGoOutAtOnce() async throws {
    let plane = try Plane()
    plane.connect(1, "alice")
    plane.holdDisk()
    plane.listCalls(1, "a1")
    var told = plane.told.makeAsyncIterator()
    #expect(await told.next()?.0 == "1 a1", "there was nothing to store")
    plane.releaseDisk()
    try await plane.stop()
  }

  /// One transaction has all the changes that came during the previous one.
  @Test func manyRequestsShareATransaction() async throws {
    let plane = try Plane()
    for session in UInt64(1)...50 { plane.connect(session, "user\(session)") }
    plane.holdDisk()
    for session in UInt64(1)...50 { plane.setPresence(session, "r") }
    try await plane.settle()
    let before = plane.health.statistics.transactions
    plane.releaseDisk()
    var told = plane.told.makeAsyncIterator()
    for _ in 0..<50 { #expect(await told.next() != nil) }
    #expect(plane.health.statistics.transactions - before == 2, "the first request's, and one for the others")
    try await plane.stop()
  }

  /// The deadline of a question is measured from the request, so a slow disk must not use it up.
  @Test func theBackEndIsAskedWhileTheDiskIsSlow() async throws {
    let server = try await BackEndServer { _, _ in .init(body: #"{"allowed":[]}"#) }
    let backEnd = try authorizer(server.url)
    let plane = try Plane(backEnd: backEnd)
    plane.connect(1, "alice")
    plane.connect(2, "bob")
    plane.holdDisk()
    plane.setPresence(1, "a1")
    let users = [UserID(unchecked: "alice")]
    plane.control.submit(.request(SessionID(rawValue: 2), id: "b1", .people(.listDevices(ListDevices(users: users)))))
    #expect(await eventually { server.received.count == 1 })
    #expect(plane.replies == 0, "what is not on the disk is not told")
    plane.releaseDisk()
    var told = plane.told.makeAsyncIterator()
    #expect(await [told.next()?.0, told.next()?.0] == ["1 a1", "2 b1"])
    try await plane.stop()
    backEnd.stop()
    await server.stop()
  }

  /// A server that stops when it is idle has sent everything before.
  @Test func aDrainEndsWhenTheDiskHasWhatIsTold() async throws {
    let plane = try Plane()
    plane.connect(1, "alice")
    plane.holdDisk()
    plane.setPresence(1, "a1")
    let toldAtTheEnd = Box<Int?>(nil)
    plane.control.drain { toldAtTheEnd.value.withLock { $0 = plane.replies } }
    try await plane.settle()
    #expect(toldAtTheEnd.value.withLock { $0 } == nil, "a reply waits")
    plane.releaseDisk()
    #expect(await eventually { toldAtTheEnd.value.withLock { $0 } == 1 })
    try await plane.stop()
  }

  @Test func theServerEndsWithoutATransactionUnderWay() async throws {
    let plane = try Plane()
    plane.connect(1, "alice")
    plane.holdDisk()
    plane.setPresence(1, "a1")
    try await plane.settle()
    let hasStopped = Box(false)
    async let stopped: Void = {
      await plane.control.stop()
      hasStopped.value.withLock { $0 = true }
    }()
    // `stop` runs on the loop; it starts before the disk continues.
    while await !plane.control.isEnding { await Task.yield() }
    #expect(!hasStopped.value.withLock { $0 }, "the transaction is under way")
    plane.releaseDisk()
    await stopped
    let users = try await plane.store.reader.read { try String.fetchAll($0, sql: "SELECT user FROM presence") }
    #expect(users == ["alice"])
    try await plane.stop()
  }
}
