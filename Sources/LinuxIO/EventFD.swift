import CLinux
import Glibc

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
