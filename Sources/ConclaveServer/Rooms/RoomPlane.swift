import JanusAPI
import JanusFront
import LinuxIO
import MediaModel
import MediaPlane
import NIOCore
import NIOPosix
import SDP
import Synchronization

/// The rooms of the server: their state machine, and the way from it to the media plane and to the clients. It shares no state with calls.
///
/// Confined to one event loop. Nothing in it waits for the disk: rooms end with the server.
actor RoomPlane: JanusSink {
  struct Parts {
    var loop: any EventLoop
    var workers: MediaWorkers
    var announced: AnnouncedAddresses
    var fingerprint: CertificateFingerprint
    /// Started threads that read SDPs.
    var reading: NIOThreadPool
    /// Gives messages to their clients; callable from any thread, must not block.
    var deliver: @Sendable ([(to: Requester, JSONTree)]) -> Void
  }

  /// Commands that may wait; more requests are refused.
  private static let maximumWaiting = 20_000

  private let executor: any SerialExecutor
  private let parts: Parts
  private let waiting = Mutex(0)
  private var gateway: JanusGateway<SystemRandomNumberGenerator>
  private var peers: RoomPeers
  private var generator = SystemRandomNumberGenerator()
  private var timer: (deadline: Instant, task: Scheduled<Void>)?
  private var isStopped = false

  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  /// - Throws: `ConfigurationError` if a room of the configuration is wrong.
  init(_ configuration: GatewayConfiguration, _ parts: Parts) throws(ConfigurationError) {
    do throws(JanusError) {
      gateway = try JanusGateway(configuration, using: SystemRandomNumberGenerator())
    } catch {
      throw ConfigurationError("janus.rooms: \(error.reason)")
    }
    self.parts = parts
    executor = parts.loop.executor
    peers = RoomPeers(
      workers: parts.workers.addresses, fingerprint: parts.fingerprint, hasTCP: parts.workers.hasTCP)
  }

  // MARK: In

  nonisolated func submit(_ command: JanusCommand) {
    let isFull = waiting.withLock { count in
      if case .request = command, count >= Self.maximumWaiting { return true }
      count += 1
      return false
    }
    guard !isFull else { return refuse(command) }
    parts.loop.execute { self.assumeIsolated { $0.take(command) } }
  }

  /// The media plane's events about rooms.
  /// - Returns: whether the event is about a room.
  nonisolated func submit(_ event: MediaEvent) -> Bool {
    switch event {
    case .configured(let peer, let request, _) where peer.isOfRoom:
      parts.loop.execute { self.assumeIsolated { $0.configured(request) } }
    case .connected(let peer) where peer.isOfRoom: submit(.media(.connected(peer)))
    case .disconnected(let peer, let silence) where peer.isOfRoom: submit(.media(.disconnected(peer, silence: silence)))
    case .speakers(let call, let numbers) where call.isOfRoom: submit(.media(.speakers(call, numbers)))
    case .slots(let peer, _), .need(let peer, _, _), .wanted(let peer, _, _), .quality(let peer, _, _):
      return peer.isOfRoom
    default: return false
    }
    return true
  }

  private nonisolated func refuse(_ command: JanusCommand) {
    guard case .request(let request) = command, case .object(let object) = request.value else { return }
    let error: JSONTree = ["code": 490, "reason": "The server is busy; try again in a moment"]
    let reply: JSONTree = ["janus": "error", "transaction": object["transaction"] ?? .null, "error": error]
    parts.deliver([(request.from, reply)])
  }

  private func take(_ command: JanusCommand) {
    waiting.withLock { $0 -= 1 }
    handle(command)
  }

  private func handle(_ command: JanusCommand) {
    guard !isStopped else { return }
    var commands = [command]
    var messages: [(to: Requester, JSONTree)] = []
    while !commands.isEmpty {
      for effect in gateway.handle(commands.removeFirst(), now: MonotonicClock.now()) {
        switch effect {
        case .send(let requester, let message): messages.append((requester, message))
        case .media(let command): if let result = carryOut(command) { commands.append(result) }
        }
      }
    }
    if !messages.isEmpty { parts.deliver(messages) }
    schedule()
  }

  // MARK: The media plane

  /// - Returns: a result that needs no worker and no other thread.
  private func carryOut(_ command: RoomMedia) -> JanusCommand? {
    switch command {
    case .read(let number, let sdp): read(sdp, number) { .read(Self.offer($0)) }
    case .negotiate(let negotiation):
      send(peers.negotiate(negotiation, candidates: candidates, using: &generator))
    case .offer(let offer):
      do throws(OfferingError) {
        let sdp = try peers.offer(offer, candidates: candidates, using: &generator)
        return .result(number: offer.number, .offered(.success(sdp)))
      } catch {
        return .result(number: offer.number, .offered(.failure(DescriptionRefusal(error.description))))
      }
    case .answer(let number, let peer, let sdp):
      parts.reading.submit { [parts] _ in
        let answer = Self.answer(sdp)
        parts.loop.execute { self.assumeIsolated { $0.apply(answer, of: peer, number: number) } }
      }
    case .pin(let peer, let pins): send(peers.pin(peer, pins))
    case .mute(let peer, let track, let isMuted): send(peers.mute(peer, track, isMuted))
    case .hangUp(let peer): send(peers.remove(peer))
    // A limit is in the next answer; key frames are requested by the slots that need them.
    case .limit, .requestKeyFrame: break
    }
    return nil
  }

  private func send(_ routed: RoomPeers.Routed?) {
    if let routed { parts.workers.submit(routed.command, worker: routed.worker.worker) }
  }

  private var candidates: (WorkerAddress) -> [MediaModel.SocketAddress] {
    { [parts] in parts.announced.addresses(of: $0.worker, in: parts.workers) }
  }

  /// A large SDP takes milliseconds.
  private func read(_ sdp: String, _ number: UInt64, _ result: @escaping @Sendable (String) -> RoomMediaResult) {
    parts.reading.submit { _ in self.submit(.result(number: number, result(sdp))) }
  }

  private func apply(_ answer: Result<SubscriberAnswer, DescriptionRefusal>, of peer: PeerID, number: UInt64) {
    do {
      for routed in try peers.apply(answer.get(), of: peer, number: number) { send(routed) }
    } catch {
      let refusal = error as? DescriptionRefusal ?? DescriptionRefusal("\(error)")
      handle(.result(number: number, .answered(.failure(refusal))))
    }
  }

  private func configured(_ request: UInt64) {
    if let (number, result) = peers.configured(request: request) { handle(.result(number: number, result)) }
  }

  private static func offer(_ sdp: String) -> Result<MediaOffer, DescriptionRefusal> {
    do throws(SDPError) {
      return .success(try MediaOffer(parsing: sdp))
    } catch {
      return .failure(DescriptionRefusal("line \(error.line): \(error.reason)"))
    }
  }

  private static func answer(_ sdp: String) -> Result<SubscriberAnswer, DescriptionRefusal> {
    do throws(SDPError) {
      return .success(try SubscriberAnswer(parsing: sdp))
    } catch {
      return .failure(DescriptionRefusal("line \(error.line): \(error.reason)"))
    }
  }

  // MARK: Time

  /// Keeps one timer, at the next deadline.
  private func schedule() {
    let deadline = gateway.nextDeadline
    guard deadline != timer?.deadline else { return }
    timer?.task.cancel()
    timer = deadline.map { deadline in
      let delay = TimeAmount.nanoseconds(max(0, MonotonicClock.now().duration(to: deadline).nanoseconds))
      return (deadline, parts.loop.scheduleTask(in: delay) { self.assumeIsolated { $0.fire(deadline) } })
    }
  }

  private func fire(_ deadline: Instant) {
    guard timer?.deadline == deadline else { return }
    timer = nil
    handle(.timeout)
  }

  // MARK: The operator

  var summaries: [RoomSummary] { gateway.summaries }

  var counts: RoomCounts {
    RoomCounts(
      sessions: gateway.sessionCount, handles: gateway.handleCount, rooms: gateway.roomCount, peers: gateway.peerCount,
      counters: gateway.counters)
  }

  /// Ends a room by its name for operators.
  /// - Returns: whether there was one.
  func end(_ call: CallID) -> Bool {
    guard let room = gateway.summaries.first(where: { "room~" + $0.id.description == call.text }) else { return false }
    handle(.endRoom(room.id))
    return true
  }

  nonisolated func drain() { submit(.drain) }

  /// Tells all in the rooms that these end.
  func stop() {
    for room in gateway.summaries { handle(.endRoom(room.id)) }
    isStopped = true
    timer?.task.cancel()
  }
}

/// Gauges and counters of the rooms.
struct RoomCounts: Sendable {
  var sessions: Int
  var handles: Int
  var rooms: Int
  var peers: Int
  var counters: GatewayCounters
}

extension CallID {
  var isOfRoom: Bool { text.hasPrefix("room~") }
}
