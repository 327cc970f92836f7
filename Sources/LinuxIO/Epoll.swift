import CLinux
import Glibc

/// Waits for descriptors, with a timeout in nanoseconds. Belongs to one thread.
package struct Epoll: ~Copyable {
  private let descriptor: Int32
  private let tokens: UnsafeMutablePointer<UInt64>
  private static let capacity: Int32 = 16

  package init() throws(SystemError) {
    descriptor = try checked(clinux_epoll_create(), "make an epoll descriptor")
    tokens = .allocate(capacity: Int(Self.capacity))
  }

  deinit {
    tokens.deallocate()
    close(descriptor)
  }

  /// Reports a descriptor as long as it is readable (level-triggered); `token` is what `wait` returns for it.
  package func add(_ readable: Int32, token: UInt64) throws(SystemError) {
    _ = try checked(clinux_epoll_add_readable(descriptor, readable, token), "watch a descriptor")
  }

  /// Changes the events reported for an added descriptor: readable, writable, both or neither. Errors and hang-ups are always reported.
  package func change(_ descriptor: Int32, token: UInt64, readable: Bool, writable: Bool) {
    let result = clinux_epoll_change(self.descriptor, descriptor, token, readable, writable)
    precondition(result == 0, "a descriptor that was added and is open can be changed")
  }

  /// Reports a stream socket once each time that it has become connected, readable, writable or closed (edge-triggered).
  package func addStream(_ stream: Int32, token: UInt64) throws(SystemError) {
    _ = try checked(clinux_epoll_add_edges(descriptor, stream, token), "watch a socket")
  }

  /// Returns the tokens of up to 16 descriptors, valid until the next wait; none after the timeout, or when a signal came.
  /// - Parameter timeout: nil waits forever.
  package func wait(nanoseconds timeout: UInt64?) -> UnsafeBufferPointer<UInt64> {
    let limit = timeout.map { Int64(clamping: $0) } ?? -1
    let count = clinux_epoll_wait(descriptor, tokens, Self.capacity, limit)
    precondition(count >= 0, "epoll_wait fails only on a descriptor that is not ours")
    return UnsafeBufferPointer(start: tokens, count: Int(count))
  }
}

/// Wakes a thread that waits in `Epoll`: any thread signals, the waiting one drains.
package final class EventFD: Sendable {
  package let descriptor: Int32

  package init() throws(SystemError) {
    descriptor = try checked(clinux_eventfd_create(), "make an event descriptor")
  }

  deinit { close(descriptor) }

  /// Makes the descriptor readable until `drain`; never blocks.
  package func signal() { clinux_eventfd_signal(descriptor) }

  package func drain() { clinux_eventfd_drain(descriptor) }
}
