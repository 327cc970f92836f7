import CLinux
import Glibc
package import MediaModel

/// Memory for one `recvmmsg`, allocated once. One batch can serve several sockets of a thread in succession.
package final class ReceiveBatch {
  /// Messages taken by one system call.
  package let capacity: Int
  /// Whether the last receive filled the batch, so that the socket may hold more.
  package private(set) var isFull = false

  private let bufferSize: Int
  private let memory: UnsafeMutableRawPointer
  private let entryCapacity: Int
  private let entries: UnsafeMutablePointer<ReceivedDatagram>
  private var count = 0
  private let messages: OpaquePointer

  /// The kernel coalesces at most this many datagrams (UDP_MAX_SEGMENTS was 64 before Linux 6.10, 128 since).
  private static let segmentLimit = 128

  /// - Parameter coalesced: for sockets with receive offload, whose messages hold up to 64 KiB; else a datagram over 2,048 bytes is dropped and counted. Pages into
  ///   which nothing was received take no memory.
  package init(capacity: Int = 64, coalesced: Bool = true) {
    self.capacity = capacity
    bufferSize = coalesced ? 65_536 : 2_048
    memory = .allocate(byteCount: capacity * bufferSize, alignment: 4_096)
    entryCapacity = capacity * (coalesced ? Self.segmentLimit : 1)
    entries = .allocate(capacity: entryCapacity)
    guard let messages = clinux_messages_create(UInt32(capacity), true) else { fatalError("out of memory") }
    self.messages = messages
    for i in 0..<capacity {
      clinux_messages_prepare(messages, UInt32(i), memory + i * bufferSize, bufferSize)
    }
  }

  deinit {
    clinux_messages_destroy(messages)
    entries.deallocate()
    memory.deallocate()
  }

  /// The datagrams of the last receive, in order of arrival; coalesced messages are split again.
  package var datagrams: UnsafeBufferPointer<ReceivedDatagram> { UnsafeBufferPointer(start: entries, count: count) }

  func receive(from descriptor: Int32, counters: inout UDPCounters, local: inout LocalAddresses) {
    count = 0
    isFull = false
    var result = clinux_messages_receive(messages, descriptor, UInt32(capacity))
    counters.receiveCalls &+= 1
    if result < 0, -result != EAGAIN {
      // A pending ICMP error is reported once and hides what is behind it.
      counters.receiveErrors &+= 1
      result = clinux_messages_receive(messages, descriptor, UInt32(capacity))
      counters.receiveCalls &+= 1
    }
    guard result > 0 else { return }
    isFull = result == capacity
    let now = Self.wallClock()
    for i in 0..<Int(result) { split(i, now: now, &counters, &local) }
  }

  /// The kernel measures the time by CLOCK_REALTIME, which may be set. A longer age than this is due to that. A process may be suspended for
  /// minutes.
  private static let longestAge: UInt64 = 600_000_000_000

  private static func wallClock() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return UInt64(time.tv_sec) &* 1_000_000_000 &+ UInt64(time.tv_nsec)
  }

  private static func age(of arrival: UInt64, now: UInt64) -> UInt64 {
    // In range: the kernel's time is below now.
    arrival > 0 && now > arrival && now - arrival <= longestAge ? now - arrival : 0
  }

  private func split(_ index: Int, now: UInt64, _ counters: inout UDPCounters, _ local: inout LocalAddresses) {
    let received = clinux_messages_received(messages, UInt32(index))
    var base = memory + index * bufferSize
    var left = Int(received.length)
    if received.truncated {
      // The kernel truncated the message. All but the last datagram of a coalesced one would be complete, but such a message cannot exceed
      // the buffer.
      counters.truncated &+= 1
      return
    }
    counters.receivedBytes &+= UInt64(left)
    let segment = received.segment == 0 ? left : Int(received.segment)
    var source = SocketAddress(received.source)
    source.localAddress = local.number(of: SocketAddress(received.local))
    let age = Self.age(of: received.arrival, now: now)
    repeat {
      let length = min(segment, left)
      guard count < entryCapacity else { return }
      entries[count] = ReceivedDatagram(bytes: .init(start: base, count: length), source: source, age: age)
      count += 1
      counters.received &+= 1
      base += length
      left -= length
    } while left > 0
  }
}

/// One datagram in a `ReceiveBatch`; valid until the batch receives again. The bytes may be changed in place.
package struct ReceivedDatagram {
  package var bytes: UnsafeMutableRawBufferPointer
  package var source: SocketAddress
  /// How long it was in the kernel's buffer, in nanoseconds; 0 if the kernel does not say. Not a `Duration`, because each datagram has one, and few are
  /// read.
  package var age: UInt64
}
