import Crypto
import Octets

extension Transcript {
  var sha256: [UInt8] { Array(SHA256.hash(data: bytes)) }
}
