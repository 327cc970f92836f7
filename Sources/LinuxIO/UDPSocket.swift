import CLinux
import Glibc

/// A non-blocking UDP socket on all addresses of the host.
///
/// It accepts both address families if the kernel has IPv6, else only IPv4. Datagrams to the source of an earlier one leave from the address to which that one
/// came (`SocketAddress.localAddress`). Not thread-safe: it belongs to the thread that uses it. Nothing is allocated after `init`, and nothing throws. Lost
/// datagrams are counted by reason in `counters`.
package final class UDPSocket {
  package struct Options: Sendable {
    /// Requested size of the kernel's buffers in bytes. The default holds 30 ms of a gigabit.
    package var bufferSize = 4 << 20
    /// UDP_GRO: the kernel may return several datagrams of one sender as one message; receive into a coalesced `ReceiveBatch`.
    package var receiveOffload = true
    /// UDP_SEGMENT for runs of datagrams.
    package var sendOffload = true
    package var ipv6 = true
    /// Answers leave from the address to which the request came. Otherwise the kernel chooses their address.
    package var answersFromSameAddress = true
    package init() {}
  }

  package let descriptor: Int32
  /// The bound port: the requested one, or the one that the kernel chose for 0.
  package let port: UInt16
  package let hasIPv6: Bool
  package internal(set) var counters = UDPCounters()

  let window: SendWindow
  /// For runs that were refused as one message.
  let singles: SendWindow
  var gate: SegmentationGate
  var local = LocalAddresses()

  package init(port: UInt16, options: Options = Options()) throws(PortError) {
    var result = options.ipv6 ? clinux_udp_open(true, port) : -EAFNOSUPPORT
    // Without the module, with ipv6.disable=1, or with no address to bind to.
    let ipv6 = result != -EAFNOSUPPORT && result != -EADDRNOTAVAIL && result != -EPROTONOSUPPORT
    if !ipv6 { result = clinux_udp_open(false, port) }
    guard result >= 0 else { throw PortError(.udp, port, code: -result) }
    descriptor = result
    hasIPv6 = ipv6
    self.port = UInt16(truncatingIfNeeded: clinux_udp_port(descriptor))
    clinux_udp_size_buffers(descriptor, Int32(clamping: options.bufferSize))
    // A kernel before 5.0 does not support it. Each message is then one datagram.
    if options.receiveOffload { _ = clinux_udp_enable_gro(descriptor) }
    if options.answersFromSameAddress { _ = clinux_udp_enable_local_addresses(descriptor, ipv6) }
    // Otherwise datagrams have no age.
    _ = clinux_udp_enable_arrival_times(descriptor)
    gate = SegmentationGate(isKnown: options.sendOffload && clinux_udp_knows_gso(descriptor))
    window = SendWindow(ipv6: ipv6)
    singles = SendWindow(ipv6: ipv6)
  }

  deinit { close(descriptor) }

  /// The buffer sizes that the kernel granted (net.core.rmem_max and wmem_max limit them for ordinary users), in bytes.
  package var receiveBufferSize: Int { Int(clinux_udp_receive_buffer(descriptor)) }
  package var sendBufferSize: Int { Int(clinux_udp_send_buffer(descriptor)) }

  /// Datagrams that the kernel dropped because this socket was not read in time; wraps at 2^32.
  package var receiveDrops: UInt32 { clinux_udp_receive_drops(descriptor) }

  /// Takes what has arrived, as much as the batch holds. `batch.isFull` says that there may be more.
  package func receive(into batch: ReceiveBatch) { batch.receive(from: descriptor, counters: &counters, local: &local) }
}
