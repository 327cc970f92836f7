import CLinux
import MediaModel

extension SocketAddress {
  init(_ address: clinux_address) {
    self.init(high: address.high, low: address.low, port: address.port, scope: address.scope)
  }

  var clinux: clinux_address { clinux_address(high: high, low: low, scope: scope, port: port) }
}
