import NIOCore
import Octets
import Synchronization

/// How often requests may come from one address, over all event loops (protocol section 10).
final class RequestRates: Sendable {
  private let rates: Mutex<AddressRates>
  private let proxies: AddressList

  init(perSecond: Int, burst: Int, proxies: AddressList) {
    rates = Mutex(AddressRates(perSecond: perSecond, burst: burst))
    self.proxies = proxies
  }

  /// All buckets start again if the limits change.
  func set(perSecond: Int, burst: Int) {
    rates.withLock {
      if !$0.has(perSecond: perSecond, burst: burst) { $0 = AddressRates(perSecond: perSecond, burst: burst) }
    }
  }

  /// nil, or the nanoseconds to wait.
  func take(from address: SocketAddress?, now: UInt64) -> UInt64? {
    guard !proxies.contains(address), let block = AddressBlock(address) else { return nil }
    return rates.withLock { $0.take(from: block, now: now) }
  }
}

extension HTTPResponse {
  /// Too many requests (RFC 6585 section 4).
  /// - Parameter wait: nanoseconds.
  package static func tooMany(_ text: String, wait: UInt64) -> HTTPResponse {
    HTTPResponse(
      status: 429,
      headers: [
        ("content-type", "text/plain; charset=utf-8"), ("retry-after", String(wait / 1_000_000_000 + 1)),
      ], body: ByteBuffer(string: text))
  }
}
