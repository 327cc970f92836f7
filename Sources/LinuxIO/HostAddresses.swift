import CLinux
package import MediaModel

/// The addresses of the interfaces that are up, with port 0: reachable ones first, then loopback, then link-local (which need a zone and are of no use
/// to a browser). Empty if the system cannot tell.
/// - Parameter ipv6: whether IPv6 addresses are of use, `UDPSocket.hasIPv6`.
package func hostAddresses(ipv6: Bool = true) -> [SocketAddress] {
  var found: [SocketAddress] = []
  withUnsafeMutablePointer(to: &found) { list in
    _ = clinux_visit_addresses(
      { context, address in
        context?.assumingMemoryBound(to: [SocketAddress].self).pointee.append(SocketAddress(address))
      }, list)
  }
  func rank(_ address: SocketAddress) -> Int { address.isLinkLocal ? 2 : address.isLoopback ? 1 : 0 }
  let usable = found.filter { ipv6 || $0.isIPv4 }
  return (0...2).flatMap { r in usable.filter { rank($0) == r } }
}

extension SocketAddress {
  init(_ address: clinux_address) {
    self.init(high: address.high, low: address.low, port: address.port, scope: address.scope)
  }

  var clinux: clinux_address { clinux_address(high: high, low: low, scope: scope, port: port) }
}
