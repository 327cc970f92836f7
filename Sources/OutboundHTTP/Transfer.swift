import CCurl
import Foundation
import LinuxIO
import MediaModel

/// One exchange as libcurl's easy handle. The thread of the loop owns it; libcurl has an unretained pointer to it, so it must stay until its handle was removed
/// from the loop.
final class Transfer {
  let exchange: Exchange
  let handle: UnsafeMutableRawPointer
  /// Later the transfer is given up.
  private(set) var deadline: Instant
  private var headers: UnsafeMutablePointer<curl_slist>?
  private var body: [UInt8] = []
  /// Bytes of a body that nobody wants.
  private var discarded = 0
  /// Why a callback ended the transfer.
  private var failure: HTTPClient.Failure?
  private var allowedAddresses = 0
  private var refusedAddresses = 0

  private static let connectTimeout = 5_000
  /// After the head of an answer whose body is not wanted: a connection whose answer ends within that is reused.
  private static let drainTime = Duration.seconds(1)
  private static let drainBytes = 64 << 10

  /// nil if libcurl does not take the request.
  /// - Parameter authorities: PEM, in place of the system's authorities.
  init?(_ exchange: Exchange, authorities: [UInt8]?) {
    guard let handle = curl_easy_init() else { return nil }
    self.exchange = exchange
    self.handle = handle
    deadline = exchange.deadline
    guard setOptions(exchange.request, authorities) else { return nil }
  }

  deinit {
    curl_easy_cleanup(handle)
    curl_slist_free_all(headers)
  }

  /// The PEM file of the system's authorities; empty if there is none.
  static var systemAuthorities: [UInt8] {
    guard let handle = curl_easy_init() else { return [] }
    defer { curl_easy_cleanup(handle) }
    guard let name = ccurl_system_authorities(handle) else { return [] }
    return FileManager.default.contents(atPath: String(cString: name)).map(Array.init) ?? []
  }

  /// The outcome of a transfer that libcurl has ended.
  func outcome(_ code: CURLcode) -> Exchange.Outcome {
    if code == CURLE_OK { return .success(response) }
    if let failure { return .failure(failure) }
    if refusedAddresses > 0, allowedAddresses == 0 { return .failure(.address) }
    return .failure(.unreachable(String(cString: curl_easy_strerror(code))))
  }

  private var status: Int { ccurl_status(handle) }

  private var response: HTTPClient.Response {
    let retryAfter = ccurl_retry_after(handle)
    return HTTPClient.Response(status: status, body: body, retryAfter: retryAfter == 0 ? nil : retryAfter)
  }

  // MARK: options

  private func setOptions(_ request: HTTPClient.Request, _ authorities: [UInt8]?) -> Bool {
    let context = Unmanaged.passUnretained(self).toOpaque()
    var codes = [
      ccurl_set_text(handle, CURLOPT_URL, request.url),
      ccurl_set_text(handle, CURLOPT_PROTOCOLS_STR, "http,https"),
      // Dots in a path are sent as they are.
      ccurl_set_number(handle, CURLOPT_PATH_AS_IS, 1),
      ccurl_set_text(handle, CURLOPT_PROXY, ""),
      ccurl_set_number(handle, CURLOPT_NOSIGNAL, 1),
      // A lookup that takes long does not delay the end of its transfer, which would stop all others. Its thread ends by itself.
      ccurl_set_number(handle, CURLOPT_QUICK_EXIT, 1),
      ccurl_set_number(handle, CURLOPT_CONNECTTIMEOUT_MS, Self.connectTimeout),
      ccurl_on_header(handle, { Transfer.took($0, $1, $2, of: $3, { $0.takeHeader($1) }) }, context),
      ccurl_on_body(handle, { Transfer.took($0, $1, $2, of: $3, { $0.takeBody($1) }) }, context),
    ]
    if let body = request.body {
      codes.append(body.withUnsafeBytes { ccurl_set_body(handle, $0.baseAddress, $0.count) })
    }
    if let authorities {
      codes.append(authorities.withUnsafeBytes { ccurl_set_authorities(handle, $0.baseAddress, $0.count) })
    }
    if case .own = request.connection {
      codes += [
        ccurl_set_number(handle, CURLOPT_FRESH_CONNECT, 1), ccurl_set_number(handle, CURLOPT_FORBID_REUSE, 1),
        // The name is looked up each time.
        ccurl_set_number(handle, CURLOPT_DNS_CACHE_TIMEOUT, 0),
        ccurl_set_number(handle, CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1)),
        ccurl_on_open_socket(handle, { context, _, address in Transfer.openSocket(context, address) }, context),
      ]
    }
    guard setHeaders(request) else { return false }
    codes.append(ccurl_set_headers(handle, headers))
    return codes.allSatisfy { $0 == CURLE_OK }
  }

  private func setHeaders(_ request: HTTPClient.Request) -> Bool {
    // A large body is sent without asking first whether it is wanted.
    var lines = ["expect:"] + request.headers.map { "\($0.name): \($0.value)" }
    if case .own = request.connection { lines.append("connection: close") }
    for line in lines {
      // A line break in a value would begin another header.
      guard line.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7f }), let longer = curl_slist_append(headers, line) else {
        return false
      }
      headers = longer
    }
    return true
  }

  // MARK: callbacks, on the thread of the loop

  /// libcurl takes any other number than that of the bytes for an error.
  private static func took(
    _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, of context: UnsafeMutableRawPointer?,
    _ take: (Transfer, UnsafeRawBufferPointer) -> Bool
  ) -> Int {
    guard let context else { return Int(CURL_WRITEFUNC_ERROR) }
    let transfer = Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue()
    // In range: the size is 1, and the count at most the size of libcurl's buffer.
    let total = size * count
    return take(transfer, UnsafeRawBufferPointer(start: bytes, count: total)) ? total : Int(CURL_WRITEFUNC_ERROR)
  }

  private func takeHeader(_ line: UnsafeRawBufferPointer) -> Bool {
    // The empty line ends a head. 1xx is not the answer yet (RFC 9110 section 15.2).
    guard exchange.request.maximumBody == 0, line.first == 0x0d || line.first == 0x0a, status >= 200 else {
      return true
    }
    exchange.finish(.success(response))
    switch exchange.request.connection {
    case .shared: deadline = min(deadline, MonotonicClock.now().advanced(by: Self.drainTime))
    case .own: deadline = MonotonicClock.now()
    }
    return true
  }

  private func takeBody(_ bytes: UnsafeRawBufferPointer) -> Bool {
    let limit = exchange.request.maximumBody
    guard limit > 0 else {
      discarded += bytes.count
      return discarded <= Self.drainBytes
    }
    guard bytes.count <= limit - body.count else {
      failure = .tooLong(limit)
      return false
    }
    body += bytes
    return true
  }

  private static func openSocket(
    _ context: UnsafeMutableRawPointer?, _ address: UnsafeMutablePointer<curl_sockaddr>?
  ) -> curl_socket_t {
    guard let context, let address else { return -1 }
    let transfer = Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue()
    guard transfer.allows(address) else {
      transfer.refusedAddresses += 1
      return -1
    }
    transfer.allowedAddresses += 1
    return ccurl_open_socket(address)
  }

  private func allows(_ address: UnsafePointer<curl_sockaddr>) -> Bool {
    guard case .own(let isAllowed) = exchange.request.connection else { return true }
    var words = ccurl_address()
    guard ccurl_read_address(address, &words) != 0 else { return false }
    return isAllowed(SocketAddress(high: words.high, low: words.low, port: words.port))
  }
}
