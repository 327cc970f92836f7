import CallMessages
import Contract
import MediaModel
import NIOCore

/// Carries out effects whose turn has come: each goes to one part of the server. Confined to the control plane's loop.
final class EffectOutlet {
  /// The parts of the server that receive effects; none of them blocks.
  struct Parts {
    var clients: ControlPlane.Clients
    var media: MediaOutlet
    var archive: Archive
    /// nil if the server stores no recordings.
    var recordings: RecordingService?
    /// nil if it records no calls.
    var callRecordings: CallRecordings?
    var backEnd: BackEnd?
    var webPush: WebPush?
    var measurements: Measurements
    /// Receives the answers to questions; callable from any thread.
    var answer: @Sendable (NodeCommand) -> Void
  }

  /// The interface to the workers.
  struct MediaOutlet: Sendable {
    var submit: @Sendable (MediaCommand, WorkerAddress) -> Void
    var candidates: @Sendable (WorkerAddress) -> [MediaModel.SocketAddress]
  }

  private let parts: Parts
  private let reader: OfferReader
  private let loop: any EventLoop
  private let clock: WallClock
  private var peers: MediaPeers
  private var log: CallLog
  private var telemetry: Telemetry?
  /// Participants who agreed to be recorded.
  private var recorded: [PeerID: RecordingID] = [:]

  init(
    parts: Parts, peers: MediaPeers, reader: OfferReader, log: CallLog, telemetry: Telemetry?, clock: WallClock,
    loop: any EventLoop
  ) {
    self.parts = parts
    self.peers = peers
    self.reader = reader
    self.log = log
    self.telemetry = telemetry
    self.clock = clock
    self.loop = loop
  }

  /// The outcomes of calls and joins since the start.
  var callCounts: CallCounts { log.counts }

  /// A worker has confirmed a configuration. Returns the reply to the offer, if one is pending.
  func configured(_ peer: PeerID, request: UInt64, slots: SlotMap) -> CallMessages.Effect? {
    guard let (reply, commands) = peers.configured(peer, request: request, slots: slots) else { return nil }
    submit(commands)
    return .client(reply)
  }

  /// Deliveries to clients go out together, after the other effects.
  func carryOut(_ effects: [CallMessages.Effect]) {
    let lag = clock.lag
    var deliveries: [Delivery] = []
    for effect in effects {
      switch effect {
      case .client(let delivery): deliveries.append(delivery.later(by: lag))
      case .read(let session, let id, let call, let request): reader.read(request, of: call, for: session, id: id)
      case .negotiate(let session, let id, let negotiate): self.negotiate(negotiate, session, id)
      case .media(let command):
        submit(peers.route(command))
        if let peer = command.peer, recorded[peer] != nil { parts.callRecordings?.take(.media(command)) }
        guard case .remove(let peer) = command else { continue }
        let (replies, commands) = peers.remove(peer)
        submit(commands)
        deliveries += replies
      case .webhook(_, let event):
        let traceparent = telemetry?.take(event)
        parts.backEnd?.webhooks?.send(event.later(by: lag), traceparent: traceparent)
        if let call = event.call, case let failures = log.take(event), failures > 0 {
          parts.answer(.failures(call, failures))
        }
      case .push(let user, let subscription, let notice, let until):
        parts.webPush?.send(notice, to: subscription, of: user, until: until)
      case .ask(let question, .authorize(let action, let from, let to, let call)):
        ask(question, action, from: from, to: to, call)
      case .ask(let question, .acquainted(let user, let others)):
        parts.archive.acquainted(user, with: others) { [answer = parts.answer] in
          answer(.answer(question, allowed: $0))
        }
      case .history(let session, let id, let query):
        parts.archive.answer(query) { [loop, clients = parts.clients] reply in
          loop.execute { clients.deliver([.reply(session, id: id, reply)]) }
        }
      case .recordings(let session, let id, let query):
        let deliver: @Sendable (CallMessages.Reply) -> Void = { [loop, clients = parts.clients] reply in
          loop.execute { clients.deliver([.reply(session, id: id, reply)]) }
        }
        guard let recordings = parts.recordings else {
          deliver(
            .failed(
              RequestError(.recordingUnavailable, "this server stores no recordings: its operator can set recordings")))
          continue
        }
        recordings.answer(query, done: deliver)
      case .measured(let numbers): parts.measurements.add(numbers)
      case .keyless(let call, let participant, let state): log.take(participant, wasWithoutKey: state, in: call)
      case .recorded(let change): record(change)
      case .store: break
      }
    }
    if !deliveries.isEmpty { parts.clients.deliver(deliveries) }
  }

  private func negotiate(_ negotiate: Negotiate, _ session: SessionID, _ id: String) {
    var generator = SystemRandomNumberGenerator()
    submit(
      peers.negotiate(negotiate, for: session, id: id, candidates: parts.media.candidates, using: &generator))
  }

  private func submit(_ commands: [MediaPeers.Routed]) {
    for (command, worker) in commands {
      parts.media.submit(command, worker)
      if case .configure(let configuration, _) = command, recorded[configuration.peer] != nil {
        parts.callRecordings?.take(.described(configuration, worker))
      }
    }
  }

  private func record(_ change: CallRecordingChange) {
    guard let recordings = parts.callRecordings else { return }
    switch change {
    case .keeps(let kept):
      let isNew = recorded.updateValue(kept.recording, forKey: kept.peer) == nil
      guard isNew, let (configuration, worker, isHeld) = peers.description(of: kept.peer) else { break }
      recordings.take(.described(configuration, worker))
      recordings.take(.change(change))
      if isHeld { recordings.take(.media(.hold(kept.peer, true))) }
      return
    case .went(_, let peer): recorded[peer] = nil
    case .ended(let id): recorded = recorded.filter { $0.value != id }
    case .began, .joined, .exported, .erased: break
    }
    recordings.take(.change(change))
  }

  private func ask(_ question: QuestionID, _ action: Question.Action, from: UserID, to: [UserID], _ call: CallID?) {
    guard let backEnd = parts.backEnd else { return parts.answer(.answer(question, allowed: [])) }
    let logger = log.logger
    let context = call.flatMap { telemetry?.ask(about: $0) }
    let asked = clock.now()
    let outlet = NIOLoopBound(self, eventLoop: loop)
    backEnd.ask(action, from: from, to: to, traceparent: context?.traceparent) {
      [loop, clock, pass = parts.answer] answer in
      if let call { CallLog.log(answer, of: to.count, for: call, to: logger) }
      if let call, let context {
        loop.execute {
          outlet.value.telemetry?.take(
            answer, to: context, about: call, asked: to.count, from: asked, now: clock.now())
        }
      }
      pass(.answer(question, allowed: answer.allowed))
    }
  }

  /// Ends all spans.
  func stop() { telemetry?.stop(now: clock.now()) }
}
