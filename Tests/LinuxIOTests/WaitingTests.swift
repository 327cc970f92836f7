import LinuxIO
import MediaModel
import Testing

struct WaitingTests {
  @Test func anEventWakesAWaitingThread() throws {
    let event = try EventFD()
    let epoll = try Epoll()
    try epoll.add(event.descriptor, token: 7)
    let thread = try OSThread(name: "signaller") { event.signal() }

    #expect(Array(epoll.wait(nanoseconds: 5_000_000_000)) == [7])

    thread.join()
    event.drain()
  }

  @Test func signalsMergeUntilDrained() throws {
    let event = try EventFD()
    let epoll = try Epoll()
    try epoll.add(event.descriptor, token: 1)
    for _ in 0..<1_000 { event.signal() }
    #expect(epoll.wait(nanoseconds: 0).count == 1)
    #expect(epoll.wait(nanoseconds: 0).count == 1)

    event.drain()

    #expect(epoll.wait(nanoseconds: 0).isEmpty)
    event.drain()
  }

  @Test func eachReadyDescriptorIsNamedByItsToken() throws {
    let events = try (0..<3).map { _ in try EventFD() }
    let epoll = try Epoll()
    for (i, event) in events.enumerated() { try epoll.add(event.descriptor, token: UInt64(i)) }
    events[0].signal()
    events[2].signal()
    #expect(epoll.wait(nanoseconds: 0).sorted() == [0, 2])
    for event in events { event.drain() }
  }

  @Test func aTimeoutBelowAMillisecondIsKept() throws {
    let epoll = try Epoll()
    let start = MonotonicClock.now()
    for _ in 0..<20 { #expect(epoll.wait(nanoseconds: 300_000).isEmpty) }
    let elapsed = start.duration(to: MonotonicClock.now())
    #expect(elapsed >= .milliseconds(6))
  }

  @Test func watchingAClosedDescriptorIsAnError() throws {
    let epoll = try Epoll()
    #expect(throws: SystemError.self) { try epoll.add(-1, token: 0) }
  }
}
