import CAllocations
import Forwarding
import LinuxIO
import MediaModel
import Synchronization
import Testing

@testable import MediaPlane

struct RelayRingTests {
  private static let node = Incarnation(3)

  private static func end(_ worker: Int, of node: Incarnation = node) -> RelayEnd {
    .worker(WorkerAddress(node: node, worker: worker))
  }

  private func message(_ number: UInt64) -> RelayMessage {
    RelayMessage(
      peer: PeerID(rawValue: number), track: TrackID(participant: 3, index: 2), rank: 1,
      body: .packet(index: number, isRetransmission: false, restarts: 7))
  }

  private func write(_ number: UInt64, _ packet: [UInt8], to ring: RelayRing) -> Bool {
    packet.withUnsafeBytes { ring.write(message(number), $0) }
  }

  /// Bytes that identify their packet.
  private func packet(_ number: UInt64) -> [UInt8] {
    let length = Int(number * 37 % 1500)
    return [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: length)
  }

  @Test func publishedMessagesAreReadOnceAndInOrder() {
    let ring = RelayRing()
    #expect(ring.read(10) { _, _ in } == 0)
    #expect(!ring.publish())
    for number in 0..<5 as Range<UInt64> { #expect(write(number, packet(number), to: ring)) }
    #expect(ring.read(10) { _, _ in } == 0, "not published")
    #expect(ring.publish() && !ring.publish())
    var read: [UInt64] = []
    let step: (RelayMessage, UnsafeMutableRawBufferPointer) -> Void = { message, bytes in
      read.append(message.peer.rawValue)
      #expect(Array(bytes) == packet(message.peer.rawValue))
      #expect(message.track == TrackID(participant: 3, index: 2) && message.rank == 1)
    }
    #expect(ring.read(3, each: step) == 3)
    #expect(ring.read(10, each: step) == 2)
    #expect(read == [0, 1, 2, 3, 4])
  }

  /// The ring wraps many times, with entries of all lengths at its end.
  @Test func aFullRingTakesNothingAndLosesNothing() {
    let ring = RelayRing()
    var (next, expected, refused) = (UInt64(0), UInt64(0), 0)
    for round in 0..<400 {
      for _ in 0..<(round % 7 + 1) * 200 {
        guard write(next, packet(next), to: ring) else {
          refused += 1
          break
        }
        next += 1
      }
      _ = ring.publish()
      _ = ring.read(round % 5 * 300 + 50) { message, bytes in
        #expect(message.peer.rawValue == expected)
        #expect(Array(bytes) == packet(expected))
        expected += 1
      }
    }
    #expect(refused > 20 && next > 100_000 && expected > 100_000)
  }

  /// The reader sleeps whenever it has read everything; the wake-up event wakes it.
  @Test func noMessageOfAnotherThreadIsLostOrLeftUnannounced() throws {
    let exchange = try RelayExchange(workers: 2, of: Self.node)
    let total: UInt64 = 200_000
    let writer = try OSThread(name: "writer", processor: nil) {
      let port = RelayPort(0, of: exchange)
      var number: UInt64 = 0
      while number < total {
        let bytes = [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: 100)
        let message = RelayMessage(
          peer: PeerID(rawValue: number), track: TrackID(participant: 1, index: 1), rank: 0, body: .keyFrame)
        if bytes.withUnsafeBytes({ port.send(message, $0, to: Self.end(1)) }) { number += 1 }
        if number % 13 == 0 { port.publish() }
      }
      port.publish()
    }
    let port = RelayPort(1, of: exchange)
    let epoll = try Epoll()
    try epoll.add(port.descriptor, token: 0)
    var expected: UInt64 = 0
    var isInOrder = true
    while expected < total {
      guard !epoll.wait(nanoseconds: 60_000_000_000).isEmpty else { break }
      port.hear()
      var count = 0
      repeat {
        count = port.receive(50) { message, bytes, sender in
          let byte = UInt8(truncatingIfNeeded: expected)
          isInOrder = isInOrder && message.peer.rawValue == expected && sender == Self.end(0)
          isInOrder = isInOrder && bytes.allSatisfy { $0 == byte }
          expected += 1
        }
      } while count > 0
    }
    #expect(isInOrder && expected == total)
    writer.join()
  }

  @Test func nothingIsSentToAnEndWithoutALink() throws {
    let exchange = try RelayExchange(workers: 2, of: Self.node)
    let (from, to) = (RelayPort(0, of: exchange), RelayPort(1, of: exchange))
    func send(to end: RelayEnd) -> Bool {
      from.send(message(1), UnsafeRawBufferPointer(start: nil, count: 0), to: end)
    }
    for worker in [-1, 2, Int.max] { #expect(!send(to: Self.end(worker))) }
    #expect(!send(to: Self.end(1, of: Incarnation(2))), "a worker of the same number, of another server")
    from.publish()
    #expect(to.receive(10) { _, _, _ in } == 0)
    #expect(send(to: Self.end(1)))
    from.publish()
    var senders: [RelayEnd] = []
    _ = to.receive(10) { _, _, sender in senders.append(sender) }
    #expect(senders == [Self.end(0)])
  }

  @Test func theRecorderHasARingOfItsOwn() throws {
    let exchange = try RelayExchange(workers: 2, of: Self.node, hasRecorder: true)
    let (worker, recorder) = (RelayPort(1, of: exchange), RelayPort(2, of: exchange))
    let nothing = UnsafeRawBufferPointer(start: nil, count: 0)
    #expect(!worker.send(message(1), nothing, to: Self.end(2)), "the recorder is no worker")
    #expect(worker.send(message(1), nothing, to: .recorder))
    #expect(recorder.send(message(2), nothing, to: Self.end(1)))
    worker.publish()
    recorder.publish()
    var senders: [RelayEnd] = []
    #expect(recorder.receive(10) { _, _, sender in senders.append(sender) } == 1)
    #expect(worker.receive(10) { _, _, sender in senders.append(sender) } == 1)
    #expect(senders == [Self.end(1), .recorder])
    let without = try RelayExchange(workers: 2, of: Self.node)
    #expect(!RelayPort(0, of: without).send(message(1), nothing, to: .recorder))
  }

  @Test func aReaderLearnsOnceWhoseMessagesWereRefused() throws {
    let exchange = try RelayExchange(workers: 2, of: Self.node, hasRecorder: true)
    let (worker, recorder) = (RelayPort(1, of: exchange), RelayPort(2, of: exchange))
    let bytes = [UInt8](repeating: 1, count: 1200)
    var count = 0
    while bytes.withUnsafeBytes({ worker.send(message(1), $0, to: .recorder) }) { count += 1 }
    // More than the ring of a worker holds.
    #expect(count * bytes.count > 7 << 20)
    #expect(recorder.takeLosers() == [Self.end(1)])
    #expect(recorder.takeLosers().isEmpty)
    worker.publish()
    #expect(recorder.receive(count + 1) { _, _, _ in } == count)
    #expect(bytes.withUnsafeBytes { worker.send(message(1), $0, to: .recorder) })
    #expect(recorder.takeLosers().isEmpty)
  }

  @Test(.enabled(if: allocations_are_counted())) func aRingThatIsInUseAllocatesNothing() throws {
    let exchange = try RelayExchange(workers: 2, of: Self.node)
    let (from, to) = (RelayPort(0, of: exchange), RelayPort(1, of: exchange))
    let bytes = [UInt8](repeating: 1, count: 1200)
    func exchangeSome() -> Int {
      var count = 0
      for number in 0..<4_992 as Range<UInt64> {
        _ = bytes.withUnsafeBytes { from.send(message(number), $0, to: Self.end(1)) }
        guard number % 32 == 31 else { continue }
        from.publish()
        to.hear()
        count += to.receive(64) { _, _, _ in }
      }
      return count
    }
    _ = exchangeSome()
    let before = allocations_of_this_thread()
    let start = ThreadClock.now()
    let count = exchangeSome()
    let nanoseconds = ThreadClock.now() - start
    #expect(allocations_of_this_thread() == before)
    #expect(count == 4_992)
    print("a packet of 1,200 bytes to another worker and out of its ring: \(Int(nanoseconds) / count) ns")
  }
}
