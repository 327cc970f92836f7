import Contract
import MediaModel

@testable import Calls

/// What `.store` effects leave behind: stands for the database.
struct Disk {
  private(set) var stored = Stored()
  private(set) var history: [HistoryFact] = []
  private(set) var writes = 0
  private var calls: [CallID: Stored.Call] = [:]

  mutating func write(_ effects: [Calls.Effect]) {
    for case .store(let change) in effects {
      writes += 1
      apply(change)
    }
  }

  /// What a starting server reads.
  mutating func read() -> Stored {
    var read = stored
    read.calls = Array(calls.values)
    stored.boots += 1
    read.boots += 1
    return read
  }

  func call(_ id: CallID) -> Stored.Call? { calls[id] }

  var isEmptyOfCalls: Bool { calls.isEmpty }

  private mutating func apply(_ change: StoreChange) {
    switch change {
    case .reset:
      calls = [:]
      stored.devices = []
      stored.mailboxes = [:]
      stored.presence = [:]
    case .call(let call):
      guard calls[call.id] == nil else {
        calls[call.id]?.call = call
        return
      }
      let progress = StoredProgress(lastNumber: 0, epoch: 0, isSettled: false)
      let epoch = StoredEpoch(number: 0, mode: .fresh, list: [], hadRingEnvelopes: false)
      calls[call.id] = Stored.Call(call: call, progress: progress, epoch: epoch, members: [], ringEnvelopes: [])
    case .progress(let id, let progress): calls[id]?.progress = progress
    case .epoch(let id, let epoch): calls[id]?.epoch = epoch
    case .member(let id, let member):
      calls[id]?.members.removeAll { $0.user == member.user }
      calls[id]?.members.append(member)
    case .memberGone(let id, let user): calls[id]?.members.removeAll { $0.user == user }
    case .number(let id, let number, let join): stored.numbers[id, default: [:]][number] = join
    case .ringEnvelope(let id, let envelope): calls[id]?.ringEnvelopes.append(envelope)
    case .ringEnvelopeOver(let id, let device): calls[id]?.ringEnvelopes.removeAll { $0.to == device }
    case .ended(let end):
      calls[end.call] = nil
      stored.ended.append(end)
    case .device(let device):
      stored.devices.removeAll { $0.device == device.device }
      stored.devices.append(device)
    case .deviceGone(let device): stored.devices.removeAll { $0.device == device }
    case .mailbox(let device, let mailbox): stored.mailboxes[device] = mailbox.isEmpty ? nil : mailbox
    case .presence(let user, let setting): stored.presence[user] = setting
    case .history(let fact): history.append(fact)
    case .forgotten(let user):
      stored.devices.removeAll { $0.entry.user == user }
      history.removeAll { fact in
        switch fact {
        case .part(_, user, _, _, _), .came(_, user, _), .went(_, user, _): true
        default: false
        }
      }
      stored.mailboxes = stored.mailboxes.filter { $0.key.user != user }
      stored.presence[user] = nil
      for place in stored.ended.indices { stored.ended[place].forget(user) }
    }
  }

  /// The same state, in an order of its own, for comparing.
  var contents: Set<StoreChange> {
    var contents: Set<StoreChange> = []
    for call in calls.values {
      contents.insert(.call(call.call))
      contents.insert(.progress(call.call.id, call.progress))
      contents.insert(.epoch(call.call.id, call.epoch))
      contents.formUnion(call.members.map { .member(call.call.id, $0) })
      contents.formUnion(call.ringEnvelopes.map { .ringEnvelope(call.call.id, $0) })
    }
    contents.formUnion(stored.devices.map(StoreChange.device))
    contents.formUnion(stored.mailboxes.map { .mailbox($0.key, $0.value) })
    contents.formUnion(stored.presence.map { .presence($0.key, $0.value) })
    return contents
  }
}

extension Calls {
  /// What should be on the disk now.
  var storable: Set<StoreChange> {
    Set(everything).filter {
      switch $0 {
      case .reset, .history, .number: false
      default: true
      }
    }
  }
}
