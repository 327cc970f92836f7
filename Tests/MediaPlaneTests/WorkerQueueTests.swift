import Forwarding
import LinuxIO
import MediaModel
import Testing

@testable import MediaPlane

struct WorkerQueueTests {
  private func remove(_ number: UInt64) -> MediaCommand { .remove(PeerID(rawValue: number)) }

  private func numbers(_ commands: [MediaCommand]) -> [UInt64] {
    commands.map { if case .remove(let peer) = $0 { peer.rawValue } else { 0 } }
  }

  @Test func commandsAreTakenInOrderAndOnce() throws {
    let queue = try WorkerQueue<MediaCommand>()
    for number in 1...3 { queue.submit(remove(UInt64(number))) }
    var taken: [MediaCommand] = []

    #expect(!queue.take(into: &taken))
    #expect(numbers(taken) == [1, 2, 3])

    taken.removeAll()
    #expect(!queue.take(into: &taken))
    #expect(taken.isEmpty)
  }

  @Test func stopComesAfterTheCommandsBeforeIt() throws {
    let queue = try WorkerQueue<MediaCommand>()
    queue.submit(remove(1))
    queue.stop()
    queue.submit(remove(2))
    var taken: [MediaCommand] = []
    #expect(queue.take(into: &taken))
    #expect(numbers(taken) == [1])
  }

  @Test func noCommandOfManyThreadsIsLostOrLeftUnannounced() throws {
    let queue = try WorkerQueue<MediaCommand>()
    let epoll = try Epoll()
    try epoll.add(queue.descriptor, token: 0)
    let threads = try (0..<4).map { thread in
      try OSThread(name: "submitter") {
        for number in 0..<5_000 { queue.submit(.remove(PeerID(rawValue: UInt64(thread * 5_000 + number)))) }
      }
    }
    var all: [UInt64] = []
    var taken: [MediaCommand] = []
    while all.count < 20_000, !epoll.wait(nanoseconds: 2_000_000_000).isEmpty {
      _ = queue.take(into: &taken)
      all += numbers(taken)
      taken.removeAll(keepingCapacity: true)
    }
    for thread in threads { thread.join() }

    #expect(all.sorted() == Array(0..<20_000))
    for thread in 0..<4 {
      let own = all.filter { $0 / 5_000 == thread }
      #expect(own == own.sorted())
    }
  }
}

@Test func theLimitsOfPublishersAreThoseOfTheSFU() {
  var layout = MediaPlaneConfiguration()
  layout.setPublishing(audio: (1, 2), video: (3, 4), participant: (5, 6))
  #expect(layout.forwarding.audioTrack == PublishingRate(packets: 1, kilobits: 2))
  #expect(layout.forwarding.videoTrack == PublishingRate(packets: 3, kilobits: 4))
  #expect(layout.forwarding.publisher == PublishingRate(packets: 5, kilobits: 6))
}
