package import Forwarding
package import LinuxIO

/// How the media plane is laid out.
package struct MediaPlaneConfiguration: Sendable {
  /// Threads, one call each at most; one a processor is right for a server that does nothing else.
  package var workers = availableProcessors().count
  /// Whether each worker takes TCP connections too, on the number of its UDP port.
  package var tcp = true
  /// The first worker's UDP port, the next worker has the next one. 0: each gets a free port of the system's choice.
  package var firstPort: UInt16 = 0
  /// Whether each worker gets a processor of its own. Only for machines that do nothing else.
  package var isPinned = false
  package var socket = UDPSocket.Options()
  package var forwarding = SFUConfiguration()

  package init() {}
}
