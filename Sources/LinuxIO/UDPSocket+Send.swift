package import MediaModel

extension UDPSocket {
  /// Sends the runs in order, 64 messages per system call, except those to TCP connections. A failing destination does not affect others; `counters` counts what was
  /// not sent by reason.
  package func send(_ runs: UnsafeBufferPointer<DatagramRun>) {
    for run in runs {
      precondition(run.segment > 0 && run.length > 0, "an empty run is a fault of the caller")
      guard run.destination.connection == 0 else { continue }
      guard hasIPv6 || run.destination.isIPv4 else {
        counters[.unreachable] &+= UInt64(run.count)
        continue
      }
      if run.length > run.segment, !gate.allows() {
        append(eachOf: run, to: window)
      } else {
        append(run, to: window)
      }
    }
    flush(window)
  }

  private func append(_ run: DatagramRun, to window: SendWindow) {
    if window.isFull { flush(window) }
    window.append(run, from: local[run.destination.localAddress])
  }

  private func append(eachOf run: DatagramRun, to window: SendWindow) {
    var offset = 0
    while offset < run.length {
      let length = min(run.segment, run.length - offset)
      append(
        DatagramRun(base: run.base + offset, length: length, segment: length, destination: run.destination),
        to: window)
      offset += length
    }
  }

  private func flush(_ window: SendWindow) {
    var first = 0
    var isRetry = false
    while first < window.count {
      let result = window.send(from: first, to: descriptor)
      counters.sendCalls &+= 1
      if result > 0 {
        for index in first..<first + Int(result) { countSent(window[index]) }
        first += Int(result)
        isRetry = false
        continue
      }
      let failure = SendFailure(code: -result)
      if failure == .refused, !isRetry {
        // The error of an earlier datagram, to any destination; this one has not been tried.
        counters[.refused] &+= 1
        isRetry = true
        continue
      }
      isRetry = false
      if failure == .bufferFull {
        // The datagrams behind it would fail likewise: late media is worth less than the time it takes to wait.
        for index in first..<window.count { counters[.bufferFull] &+= UInt64(window[index].count) }
        break
      }
      fail(window[first], code: -result, failure)
      first += 1
    }
    window.removeAll()
  }

  private func countSent(_ run: DatagramRun) {
    counters.sentBytes &+= UInt64(run.length)
    guard run.length > run.segment else {
      counters.sent &+= 1
      return
    }
    counters.sent &+= UInt64(run.count)
    counters.segmentedRuns &+= 1
    gate.accepted()
  }

  private func fail(_ run: DatagramRun, code: Int32, _ failure: SendFailure) {
    guard run.length > run.segment, SegmentationGate.isRefusal(code) else {
      counters[failure == .refused ? .other : failure] &+= UInt64(run.count)
      return
    }
    counters.refusedRuns &+= 1
    gate.refused()
    append(eachOf: run, to: singles)
    flush(singles)
  }
}
