import Forwarding
import MediaModel
import Octets
import Recording
import Reels
import Synchronization
import Testing
import Transport

@testable import MediaPlane

/// The thread that makes reels, with workers and a client on a real socket.
struct ReelWorkerTests {
  private static let recording = RecordingID([UInt8](repeating: 4, count: 16))!
  /// Microseconds since 1970 when the monotonic clock was 0.
  private static let wallClock: Int64 = 1_800_000_000_000_000

  let certificate = DTLSCertificate()
  let log = EventLog()
  let store = Store()

  private func makePlane(workers: Int) throws -> MediaWorkers {
    var configuration = MediaPlaneConfiguration()
    configuration.workers = workers
    configuration.tcp = false
    configuration.reels = ReelTable.Configuration()
    return try MediaWorkers(
      configuration, node: Incarnation(1), certificate: certificate, seed: 1, wallClock: { Self.wallClock },
      onReels: { [store] in store.take($0) }, onEvent: { [log] in log.append($0) })
  }

  private func kept(_ client: TestClient, _ epochs: [UInt32]) -> RecordedPeer {
    let configuration = client.configuration
    return RecordedPeer(
      recording: Self.recording, call: configuration.call, peer: configuration.peer,
      participant: configuration.participant, keys: Set(epochs.map { RecordedPeer.Key(epoch: $0, track: 1) }))
  }

  /// A frame of the microphone as the sender's transform returns it.
  private func frame(_ client: TestClient, epoch: UInt32, _ number: UInt64) -> [UInt8] {
    let keyID = FrameKeyID(participant: client.number, track: 1, epoch: epoch)
    let header = SFrameHeader(keyID: keyID.rawValue, counter: number)
    var bytes = [UInt8](repeating: 0, count: header.byteCount)
    bytes.withUnsafeMutableBytes { _ = header.write(into: $0) }
    return bytes + [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: 40)
  }

  @Test(arguments: [1, 2]) func soundOfAWorkerBecomesAReel(workers: Int) throws {
    let plane = try makePlane(workers: workers)
    let client = try TestClient(UInt32(workers), server: certificate, slots: 0)
    let home = workers - 1
    plane.submit(.configure(client.configuration, request: 1), worker: home)
    try #require(eventually { log.configured.count == 1 })
    client.start(plane.loopback(home))
    try #require(eventually({ client.isConnected && log.connected.count == 1 }) { client.receive(waiting: 1_000_000) })

    plane.submit(.keep(kept(client, [7]), client.configuration, worker: plane.addresses[home]))
    var sent: [[UInt8]] = []
    let isStored = eventually({ (plane.reelStatistics?.counts.frames ?? 0) >= 20 }) {
      let number = UInt64(sent.count + 1)
      // The second one is of an epoch whose key was not exported.
      sent.append(frame(client, epoch: 7, number))
      client.sendAudio(sent.last!)
      client.sendAudio(frame(client, epoch: 6, number))
      client.receive(waiting: 2_000_000)
      for (name, count) in store.takeWritten() { plane.submit(.written(name, count)) }
    }
    #expect(isStored)
    plane.submit(.end(client.configuration.peer))
    #expect(eventually { store.hasEnded })
    for (name, count) in store.takeWritten() { plane.submit(.written(name, count)) }
    #expect(eventually { plane.reelStatistics?.backlog == 0 })
    plane.stop()

    let segment = try #require(store.segment)
    let contents = SegmentContents(parsing: segment.bytes.span.bytes, start: segment.start)
    #expect(segment.start > Self.wallClock)
    let frames = contents.records.compactMap { record -> [UInt8]? in
      if case .frame(let frame) = record { Array(segment.bytes[frame.range]) } else { nil }
    }
    let first = try #require(frames.first.flatMap(sent.firstIndex(of:)))
    #expect(frames.count >= 20 && frames.elementsEqual(sent[first...].prefix(frames.count)))
    #expect(plane.reelStatistics?.counts.drops[.notAdmitted] ?? 0 > 0)
    withExtendedLifetime(client) {}
  }

  @Test func aWorkerSendsNothingMoreOfAPeerThatIsNotRecorded() throws {
    let plane = try makePlane(workers: 1)
    let client = try TestClient(1, server: certificate, slots: 0)
    try plane.connect([client], log)
    plane.submit(.keep(kept(client, [7]), client.configuration, worker: plane.addresses[0]))
    var number: UInt64 = 0
    func speak() {
      number += 1
      client.sendAudio(frame(client, epoch: 7, number))
      client.receive(waiting: 2_000_000)
    }
    try #require(eventually({ plane.statistics()[0].forwarding.relayed > 0 }, step: speak))
    plane.submit(.end(client.configuration.peer))
    #expect(eventually { store.hasEnded })
    // The end of its wish is on the way; then the count stands still.
    var last: UInt64 = 0
    var same = 0
    let isQuiet = eventually({ same >= 100 }) {
      speak()
      let relayed = plane.statistics()[0].forwarding.relayed
      same = relayed == last ? same + 1 : 0
      last = relayed
    }
    #expect(isQuiet)
  }

  @Test func withoutReelsCommandsGoNowhere() throws {
    var configuration = MediaPlaneConfiguration()
    configuration.workers = 1
    let plane = try MediaWorkers(configuration, node: Incarnation(1), certificate: certificate, seed: 1) { _ in }
    plane.submit(.end(PeerID(rawValue: 1)))
    #expect(plane.reelStatistics == nil)
  }

  /// Keeps the bytes of one reel.
  final class Store: Sendable {
    private struct State {
      var segment: (start: Int64, bytes: [UInt8])?
      var written: [(ReelName, Int)] = []
      var hasEnded = false
    }

    private let state = Mutex(State())

    var segment: (start: Int64, bytes: [UInt8])? { state.withLock { $0.segment } }
    var hasEnded: Bool { state.withLock { $0.hasEnded } }

    func take(_ outputs: [ReelOutput]) {
      state.withLock { state in
        for output in outputs {
          switch output {
          case .begin(_, let start):
            #expect(state.segment == nil)
            state.segment = (start, [])
          case .write(let name, let bytes):
            state.segment?.bytes += bytes
            state.written.append((name, bytes.count))
          case .end: state.hasEnded = true
          case .close, .erase: break
          }
        }
      }
    }

    func takeWritten() -> [(ReelName, Int)] {
      state.withLock { state in
        defer { state.written = [] }
        return state.written
      }
    }
  }
}
