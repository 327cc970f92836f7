/// The traffic of one socket since it was opened.
package struct UDPCounters: Sendable {
  package var received: UInt64 = 0
  package var receivedBytes: UInt64 = 0
  package var receiveCalls: UInt64 = 0
  /// Received datagrams that were larger than the buffer, and were therefore dropped.
  package var truncated: UInt64 = 0
  /// Failures of recvmmsg for a reason other than an empty socket.
  package var receiveErrors: UInt64 = 0
  package var sent: UInt64 = 0
  package var sentBytes: UInt64 = 0
  package var sendCalls: UInt64 = 0
  /// Messages that carried several datagrams (UDP_SEGMENT).
  package var segmentedRuns: UInt64 = 0
  /// Runs that the kernel or the route refused as one message and that were sent one by one.
  package var refusedRuns: UInt64 = 0
  private var failures: InlineArray<7, UInt64> = .init(repeating: 0)

  package init() {}

  /// Datagrams that were not sent for this reason. `.refused` counts ICMP errors instead: the datagram that met one is sent again.
  package internal(set) subscript(failure: SendFailure) -> UInt64 {
    get { failures[failure.rawValue] }
    set { failures[failure.rawValue] = newValue }
  }

  package var failed: UInt64 { SendFailure.allCases.reduce(0) { $0 &+ self[$1] } &- self[.refused] }
}
