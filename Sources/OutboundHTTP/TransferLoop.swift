import CCurl
import LinuxIO
import MediaModel

/// libcurl's multi interface on one thread, which owns everything of libcurl: no pointer leaves it.
struct TransferLoop: ~Copyable {
  private let queue: ExchangeQueue
  private let multi: UnsafeMutableRawPointer
  /// PEM; nil for the system's authorities only.
  private let trust: [UInt8]?
  private var transfers: [UnsafeMutableRawPointer: Transfer] = [:]

  /// The longest sleep, in milliseconds.
  private static let longestWait: Int64 = 3_600_000

  /// libcurl takes care that it is initialised once (`threadsafe` in Debian's build).
  private static let isReady = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK

  /// Called on the thread of the loop. nil if there is no memory.
  /// - Parameter trust: PEM of authorities that are trusted in addition to the system's.
  init?(_ queue: ExchangeQueue, hostConnections: Int, trust: [UInt8]?) {
    guard Self.isReady, let multi = curl_multi_init() else { return nil }
    // Two hosts may keep all of their connections.
    guard ccurl_limit_connections(multi, hostConnections, 2 * hostConnections) == CURLM_OK else {
      curl_multi_cleanup(multi)
      return nil
    }
    self.queue = queue
    self.multi = multi
    self.trust = trust.map { Transfer.systemAuthorities + [UInt8(ascii: "\n")] + $0 }
  }

  deinit { curl_multi_cleanup(multi) }

  /// Returns when the queue was stopped and everything in it has ended.
  mutating func run() {
    while true {
      let news = queue.take()
      for exchange in news.added { start(exchange) }
      for exchange in news.ended { end(exchange) }
      if news.isStopped { break }
      var running: Int32 = 0
      curl_multi_perform(multi, &running)
      takeResults()
      giveUpLate()
      wait()
    }
    for transfer in Array(transfers.values) { remove(transfer, .failure(.stopped)) }
  }

  private mutating func start(_ exchange: Exchange) {
    guard !exchange.isOver else { return queue.left() }
    guard let transfer = Transfer(exchange, authorities: trust),
      curl_multi_add_handle(multi, transfer.handle) == CURLM_OK
    else {
      exchange.finish(.failure(.unreachable("libcurl does not take the request")))
      return queue.left()
    }
    transfers[transfer.handle] = transfer
  }

  private mutating func end(_ exchange: Exchange) {
    guard let transfer = transfers.values.first(where: { $0.exchange === exchange }) else { return }
    remove(transfer, .failure(.cancelled))
  }

  /// libcurl calls nothing of the transfer after that, so its memory may go.
  private mutating func remove(_ transfer: Transfer, _ outcome: Exchange.Outcome) {
    curl_multi_remove_handle(multi, transfer.handle)
    transfers[transfer.handle] = nil
    transfer.exchange.finish(outcome)
    queue.left()
  }

  private mutating func takeResults() {
    var rest: Int32 = 0
    while let message = curl_multi_info_read(multi, &rest) {
      guard message.pointee.msg == CURLMSG_DONE, let handle = message.pointee.easy_handle,
        let transfer = transfers[handle]
      else { continue }
      // The message is gone with the handle.
      let code = message.pointee.data.result
      remove(transfer, transfer.outcome(code))
    }
  }

  /// libcurl's own time limit does not count while a transfer waits for a connection.
  private mutating func giveUpLate() {
    let now = MonotonicClock.now()
    for transfer in transfers.values.filter({ $0.deadline <= now }) { remove(transfer, .failure(.timeout)) }
  }

  private func wait() {
    var milliseconds = Self.longestWait
    if let deadline = transfers.values.map(\.deadline).min() {
      let left = MonotonicClock.now().duration(to: deadline).nanoseconds
      milliseconds = min(milliseconds, max(0, left / 1_000_000 + 1))
    }
    var wake = curl_waitfd(fd: queue.descriptor, events: Int16(CURL_WAIT_POLLIN), revents: 0)
    guard curl_multi_poll(multi, &wake, 1, Int32(milliseconds), nil) == CURLM_OK else {
      // Out of memory: a loop that does not wait would take the processor.
      return MonotonicClock.sleep(nanoseconds: 10_000_000)
    }
  }
}
