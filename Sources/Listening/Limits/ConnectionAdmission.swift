import NIOCore
import Synchronization

/// The `AdmissionTable` of the server's channels.
final class ConnectionAdmission: Sendable {
  private struct State: Sendable {
    var table: AdmissionTable
    var channels: [UInt64: any Channel] = [:]
    var ids: [ObjectIdentifier: UInt64] = [:]
    var last: UInt64 = 0

    mutating func forget(_ id: UInt64) -> (any Channel)? {
      guard let channel = channels.removeValue(forKey: id) else { return nil }
      ids[ObjectIdentifier(channel)] = nil
      return channel
    }
  }

  private let state: Mutex<State>
  private let proxies: AddressList
  private let counters: SignalingCounters

  init(limits: AdmissionTable.Limits, proxies: AddressList, counters: SignalingCounters) {
    state = Mutex(State(table: AdmissionTable(limits: limits)))
    self.proxies = proxies
    self.counters = counters
  }

  func setLimits(_ limits: AdmissionTable.Limits) { state.withLock { $0.table.limits = limits } }

  /// Admits a channel; false if there is no room for it. It is removed when it closes.
  func admit(_ channel: any Channel) -> Bool {
    let address = channel.remoteAddress
    let block = proxies.contains(address) ? nil : AddressBlock(address)
    let (verdict, evicted) = state.withLock { state in
      state.last += 1
      let id = state.last
      let verdict = state.table.admit(id, from: block)
      var evicted: (any Channel)?
      if case .admitted(let oldest, _) = verdict {
        state.channels[id] = channel
        state.ids[ObjectIdentifier(channel)] = id
        evicted = oldest.flatMap { state.forget($0) }
      }
      return (verdict, evicted)
    }
    switch verdict {
    case .refused(let reason):
      counters.drop(reason)
      return false
    case .admitted(_, let reason):
      counters.update { statistics in
        statistics.connections += 1
        statistics.accepted += 1
        if let reason { statistics.drops[reason, default: 0] += 1 }
      }
    }
    evicted?.close(promise: nil)
    channel.closeFuture.whenComplete { _ in
      self.leave(channel)
      self.counters.update { $0.connections -= 1 }
    }
    return true
  }

  /// False if the channel was evicted meanwhile.
  func logIn(_ channel: any Channel) -> Bool {
    state.withLock { state in state.ids[ObjectIdentifier(channel)].map { state.table.logIn($0) } ?? false }
  }

  /// Closes the oldest connection that has not logged in, because the system has no file for another.
  func evictOldest() {
    let channel = state.withLock { state in state.table.evictOldest().flatMap { state.forget($0) } }
    channel?.close(promise: nil)
  }

  private func leave(_ channel: any Channel) {
    state.withLock { state in
      guard let id = state.ids[ObjectIdentifier(channel)] else { return }
      state.table.remove(id)
      _ = state.forget(id)
    }
  }
}
