import Glibc
import LinuxIO
import MediaModel
import Synchronization
import Testing

struct HostTests {
  @Test func hostAddressesAreOrderedByUse() throws {
    let addresses = hostAddresses()
    #expect(addresses.contains(SocketAddress(ipv4: 0x7f00_0001, port: 0)))
    let ranks = addresses.map { $0.isLinkLocal ? 2 : $0.isLoopback ? 1 : 0 }
    #expect(ranks == ranks.sorted())
    #expect(Set(addresses).count == addresses.count)
  }

  @Test func withoutIPv6OnlyIPv4IsListed() {
    let addresses = hostAddresses(ipv6: false)
    #expect(addresses == hostAddresses().filter(\.isIPv4))
    #expect(!addresses.isEmpty)
  }

  @Test func everyHostAddressReachesTheSocket() throws {
    let receiver = try Receiver()
    let sender = try UDPSocket(port: 0)
    let addresses = hostAddresses(ipv6: receiver.socket.hasIPv6)
    for (i, address) in addresses.enumerated() {
      var target = address
      target.port = receiver.socket.port
      sender.send([TestRun(lengths: [i + 1], to: target)])
      #expect(receiver.collect(1).map(\.bytes.count) == [i + 1])
    }
  }

  @Test func aThreadHasItsNameAndProcessor() throws {
    let processor = try #require(availableProcessors().last)
    let seen = Mutex(("", ""))
    let thread = try OSThread(name: "a-name-that-is-too-long", processor: processor) {
      let name = firstLine(of: "/proc/thread-self/comm") { _ in true }
      let processors = firstLine(of: "/proc/thread-self/status") { $0.hasPrefix("Cpus_allowed_list:") }
      seen.withLock { $0 = (name, processors) }
    }
    thread.join()
    thread.join()
    #expect(seen.withLock { $0.0 } == "a-name-that-is-")
    #expect(seen.withLock { $0.1 } == "Cpus_allowed_list:\t\(processor)")
  }

  @Test func cpuTimeOfThisProcessRises() throws {
    let before = try #require(ProcessUsage())
    let clock = MonotonicClock.now()
    var sum: UInt64 = 0
    while clock.duration(to: MonotonicClock.now()) < .milliseconds(5) { sum &+= 1 }
    let after = try #require(ProcessUsage(of: getpid()))
    #expect(after.cpuNanoseconds > before.cpuNanoseconds)
    #expect(after.residentBytes > 1 << 20)
  }

  @Test func aMissingProcessHasNoUsage() { #expect(ProcessUsage(of: 1 << 30) == nil) }
}

private func firstLine(of path: String, where matches: (Substring) -> Bool) -> String {
  let file = open(path, O_RDONLY)
  defer { close(file) }
  let text = String(unsafeUninitializedCapacity: 8_192) { max(0, read(file, $0.baseAddress, $0.count)) }
  return text.split(separator: "\n").first(where: matches).map(String.init) ?? ""
}
