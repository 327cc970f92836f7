import Contract
import MediaModel

/// Events of the server, and what a key agreement wants done.
extension CallClient {
  /// At most so many events are kept for a call whose join is still being answered.
  private static let earlyLimit = 256

  func receive(_ delivery: EventDelivery) {
    guard let id = delivery.message.call else { return acknowledge(delivery) }
    announceRing(delivery.message.body, of: id)
    route(delivery, to: id)
  }

  /// Hands an event to its call.
  func route(_ delivery: EventDelivery, to id: CallID) {
    guard calls[id] != nil else {
      if joining > 0, early[id, default: []].count < Self.earlyLimit {
        early[id, default: []].append(delivery)
      } else {
        acknowledge(delivery)
      }
      return
    }
    if delivery.followsGap { catchUp(id) }
    if case .envelope(let envelope) = delivery.message.body {
      deliveries[delivery.seq] = delivery
      feed(.envelope(envelope, delivery: delivery.seq), to: id)
      return
    }
    apply(delivery.message.body, to: id)
    acknowledge(delivery)
  }

  /// No join is awaited any more: what was kept belongs to calls that this device is not in.
  func dropEarly() {
    for deliveries in early.values { for delivery in deliveries { acknowledge(delivery) } }
    early = [:]
  }

  private func acknowledge(_ delivery: EventDelivery, accepted: Bool = true) {
    Task { await connection.acknowledge(delivery, accepted: accepted) }
  }

  /// Asks for what lost events would have said.
  private func catchUp(_ id: CallID) {
    run(.listKeys(id), of: id)
    Task {
      guard let state = try? await connection.request(.state(id), reply: CallState.self) else { return }
      apply(.state(state), to: id)
    }
  }

  private func announceRing(_ body: EventBody, of id: CallID) {
    switch body {
    case .ring(let ring):
      eventSink.yield(
        .ring(
          IncomingCall(
            id: id.text, from: ring.from.text, media: CallSnapshot.Media(rawValue: ring.media.rawValue) ?? .video,
            members: ring.members.map(CallSnapshot.Member.init), isWaiting: ring.waiting,
            expiresAt: ring.expiresAt.milliseconds, metadata: ring.metadata?.bytes)))
    case .answeredElsewhere: eventSink.yield(.ringStopped(call: id.text, .answeredElsewhere))
    case .declinedElsewhere: eventSink.yield(.ringStopped(call: id.text, .declinedElsewhere))
    case .cancelled: eventSink.yield(.ringStopped(call: id.text, .cancelled))
    case .missed: eventSink.yield(.ringStopped(call: id.text, .missed))
    case .ended where calls[id] == nil: eventSink.yield(.ringStopped(call: id.text, .cancelled))
    default: break
    }
  }

  private func apply(_ body: EventBody, to id: CallID) {
    guard let change = calls[id]?.session.handle(body), let call = calls[id] else { return }
    switch change {
    case .none: break
    case .members, .speakers: call.updates.yield(.changed(CallSnapshot(call.session)))
    case .slots:
      call.updates.yield(.slots(call.session.slots.values.map(ReceivedTrack.init).sorted { $0.mid < $1.mid }))
    case .need: call.updates.yield(.need(audio: call.session.need?.audio ?? 0, video: call.session.need?.video ?? 0))
    case .lost: call.updates.yield(.lost)
    case .ended:
      call.updates.yield(.ended(reason: call.session.ended?.reason.rawValue ?? ""))
      return forget(id)
    }
    switch body {
    case .rotate(let rotation): feed(.rotate(rotation), to: id)
    case .switchKeys(let change): feed(.switchKeys(epoch: change.epoch), to: id)
    case .keyRequest(let request): feed(.keyRequest(request), to: id)
    case .state(let state) where change != .lost: feed(.state(epoch: state.epoch), to: id)
    default: break
    }
  }

  private func feed(_ input: KeyInput, to id: CallID) {
    var generator = SystemRandomNumberGenerator()
    guard let effects = calls[id]?.keys.handle(input, now: Self.now, using: &generator) else { return }
    perform(effects, of: id)
  }

  func perform(_ effects: [KeyEffect], of id: CallID) {
    guard let call = calls[id] else { return }
    for effect in effects {
      switch effect {
      case .request(let request): run(request, of: id)
      case .acknowledge(let seq, let opened):
        if let delivery = deliveries.removeValue(forKey: seq) { acknowledge(delivery, accepted: opened) }
      case .install(let keys): call.cipher.install(keys)
      case .send(let epoch):
        call.cipher.send(epoch, as: call.session.participant)
        call.updates.yield(.keyChanged(epoch: epoch))
      case .stopSending: call.cipher.stopSending()
      case .retire(let epoch): call.cipher.retire(epoch)
      case .pin(let device, let fingerprint):
        pins[device] = fingerprint
        eventSink.yield(
          .pinned(PinnedDevice(user: device.user.text, device: device.device.text, fingerprint: fingerprint)))
      case .code(let digits): call.updates.yield(.code(digits))
      case .refused(let refusal): call.updates.yield(.warning(refusal))
      }
    }
    scheduleTimer()
  }

  /// Sends a key agreement's request and feeds it the reply.
  private func run(_ request: Request, of id: CallID) {
    Task {
      switch request {
      case .listDevices:
        let reply = try? await requestAgain(request, reply: Devices.self)
        feed(.directory(reply?.devices ?? []), to: id)
      case .listKeys:
        if let list = try? await requestAgain(request, reply: KeyList.self) { feed(.list(list), to: id) }
      case .keys(_, let handedOut):
        feed(.handedOut(epoch: handedOut.epoch, taken: await handOut(request)), to: id)
      default:
        try? await perform(request)
      }
    }
  }

  /// Whether the server took the envelopes; nil when it could not say.
  private func handOut(_ request: Request) async -> Bool? {
    do {
      _ = try await connection.request(request, reply: KeysDelivered.self)
      return true
    } catch {
      if case .refused = error { return false }
      return nil
    }
  }

  /// Wakes up when the next key agreement has something to forget or to ask again.
  private func scheduleTimer() {
    timer?.cancel()
    guard let due = calls.values.compactMap(\.keys.nextTimeout).min() else { return }
    timer = Task {
      try? await Task.sleep(for: max(.zero, Self.now.duration(to: due)))
      if !Task.isCancelled { timeout() }
    }
  }

  private func timeout() {
    timer = nil
    for id in calls.keys {
      if let effects = calls[id]?.keys.handleTimeout(now: Self.now) { perform(effects, of: id) }
    }
    scheduleTimer()
  }
}
