import CongestionControl
import Seeded

/// One receiver of the SFU and its path: source, allocator, controller, pacer, and the browser at the other end.
final class Flow {
  static let audioRate = 68_000
  private static let audioSize = 170

  var controller: any RateController
  let index: Int
  private(set) var path: PathModel
  private var random: SeededGenerator
  private(set) var receiver = Receiver()
  private var source: VideoSource
  private var allocator = LayerAllocator()
  private let streams: [StreamWish]
  private var pacer = Pacer(now: 0)

  private var number = 0
  private var nextAudio: Microseconds = 0
  private var frames = 0
  private struct Sent { var size: Int; var frame: Int; var last: Microseconds; var copies = 0 }
  private var history: [Sent] = []
  private var probe: (order: ProbeOrder, began: Microseconds, bytes: Int, packets: Int)?
  private var copyBudget = 0.0

  private var toReceiver = Queue<(packet: Packet, arrival: Microseconds)>()
  private var reports = Queue<(packets: [(number: Int, arrival: Microseconds?)], arrival: Microseconds)>()
  private var nacks = Queue<(sequences: [Int], arrival: Microseconds)>()
  private var lastArrival: Microseconds = 0

  // The tables are made from it.
  private(set) var log = FlowLog()

  init(index: Int, controller: any RateController, path: PathModel, seed: UInt64) {
    self.index = index
    self.controller = controller
    self.path = path
    random = SeededGenerator(seed: seed &* 1_000_003 &+ UInt64(index))
    source = VideoSource(random: &random)
    streams = [StreamWish(height: 720, steps: VideoSource.steps)]
  }

  /// The allocated step; nil is paused.
  var step: Int? { allocator.step(0) }
  var isAtTop: Bool { step == VideoSource.steps.count - 1 && source.spatial == 2 }

  /// One millisecond.
  func advance(to now: Microseconds, bottleneck: Bottleneck) {
    receive(now: now)
    if now % (10 * millisecond) == 0 { decide(now: now) }
    produce(now: now, bottleneck: bottleneck)
    while let packet = pacer.next(rate: pacingRate, now: now) { send(packet, now: now, bottleneck: bottleneck) }
    continueProbe(now: now, bottleneck: bottleneck)
  }

  private var pacingRate: Int { max(controller.pacingRate, probe?.order.rate ?? 0) }

  // MARK: The way back

  private func receive(now: Microseconds) {
    while let (packet, arrival) = toReceiver.first, arrival <= now {
      _ = toReceiver.removeFirst()
      receiver.arrived(packet, at: arrival)
      log.arrived(packet, at: arrival)
    }
    let back = path.roundTrip / 2
    if now % (10 * millisecond) == 0 {
      let sequences = receiver.nacks(roundTrip: path.roundTrip, now: now)
      if !sequences.isEmpty { nacks.append((sequences, now + back)) }
    }
    if let report = receiver.report(now: now) {
      let isLost = path.feedbackOutage.contains(now) || (path.feedbackLoss > 0 && random.uniform() < path.feedbackLoss)
      let late = now >= path.feedbackDelay.from ? path.feedbackDelay.delay : 0
      if !isLost { reports.append((report, now + back + late)) }
    }
    while let (report, arrival) = reports.first, arrival <= now {
      _ = reports.removeFirst()
      controller.report(report, now: now)
    }
    while let (sequences, arrival) = nacks.first, arrival <= now {
      _ = nacks.removeFirst()
      for sequence in sequences { retransmit(sequence, now: now) }
    }
  }

  private func retransmit(_ sequence: Int, now: Microseconds) {
    guard history[sequence].copies < 3, now - history[sequence].last > max(path.roundTrip / 2, 20 * millisecond),
      copyBudget > 0
    else { return }
    history[sequence].copies += 1
    history[sequence].last = now
    copyBudget -= Double(history[sequence].size)
    let packet = PacedPacket(
      index: UInt64(sequence), size: history[sequence].size, frame: 0, slot: 0, kind: .retransmission)
    if pacer.offer(packet, rate: pacingRate, now: now) == .passes { copies.append(packet) }
  }

  private var copies: [PacedPacket] = []

  // MARK: Decisions

  private func decide(now: Microseconds) {
    controller.tick(now: now)
    copyBudget = min(copyBudget + Double(max(64_000, controller.target * 3 / 10)) / 800, 20_000)
    let before = step
    let changed = allocator.allocate(
      streams, target: controller.target - Self.audioRate, proven: controller.proven(now: now) - Self.audioRate,
      isCongested: controller.isCongested, now: now)
    if changed {
      let new = step.map { VideoSource.steps[$0] }
      log.changed(from: before.map { VideoSource.steps[$0] }, to: new)
      source.select(new, random: &random, now: now)
    } else if let step {
      source.select(VideoSource.steps[step], random: &random, now: now)
    }
    controller.demand = RateDemand(
      allocated: allocator.rate(of: streams) + Self.audioRate,
      nextStep: allocator.nextStep(of: streams).map { $0 + Self.audioRate },
      wished: VideoSource.steps.last!.rate + Self.audioRate, isPaused: allocator.step(0) == nil)
    if probe == nil, let order = controller.probe(now: now) { probe = (order, now, 0, 0) }
    log.sample(self, now: now)
  }

  // MARK: Sending

  private func produce(now: Microseconds, bottleneck: Bottleneck) {
    if now >= nextAudio {
      nextAudio += 20 * millisecond
      transmit(size: Self.audioSize, kind: .audio, sequence: -1, frame: -1, now: now, bottleneck: bottleneck)
    }
    for packet in copies { send(packet, now: now, bottleneck: bottleneck) }
    copies.removeAll(keepingCapacity: true)
    guard let frame = source.frame(random: &random, now: now) else { return }
    frames += 1
    var rest = frame.bytes
    var admitted: [PacedPacket] = []
    let packets = (rest + VideoSource.payload - 1) / VideoSource.payload
    let share = (rest + packets - 1) / packets
    let firstSequence = history.count
    receiver.begins(frame: frames, packets: packets, highestSequence: firstSequence + packets - 1, at: now)
    for i in 0..<packets {
      let size = min(share, rest) + VideoSource.overhead
      rest -= min(share, rest)
      history.append(Sent(size: size, frame: frames, last: now))
      let packet = PacedPacket(
        index: UInt64(firstSequence + i), size: size, frame: UInt16(truncatingIfNeeded: frames), slot: 0, kind: .video,
        isDiscardable: frame.isDiscardable, isKeyFrame: frame.isKey)
      switch pacer.offer(packet, rate: pacingRate, now: now) {
      case .passes: send(packet, now: now, bottleneck: bottleneck)
      case .queued: break
      case .dropped: log.dropped += 1
      }
      admitted.append(packet)
    }
    if pacer.needsKeyFrame(slot: 0) { source.needsKeyFrame(now: now) }
  }

  private func send(_ packet: PacedPacket, now: Microseconds, bottleneck: Bottleneck) {
    let sent = history[Int(packet.index)]
    transmit(
      size: sent.size + (packet.kind == .retransmission ? 2 : 0), kind: packet.kind, sequence: Int(packet.index),
      frame: sent.frame, now: now, bottleneck: bottleneck)
  }

  private func continueProbe(now: Microseconds, bottleneck: Bottleneck) {
    while let probe {
      guard probe.bytes < probe.order.bytes || probe.packets < probe.order.packets else {
        self.probe = nil
        return
      }
      guard probe.bytes <= probe.order.rate / 8 * Int(now - probe.began) / 1_000_000 else { return }
      if let packet = pacer.next(rate: .max / 1_000_000, now: now) {
        send(packet, now: now, bottleneck: bottleneck)
      } else {
        let size = min(1_200, max(300, probe.order.bytes / probe.order.packets))
        transmit(size: size, kind: .padding, sequence: -1, frame: -1, now: now, bottleneck: bottleneck)
      }
    }
  }

  private func transmit(
    size: Int, kind: SentKind, sequence: Int, frame: Int, now: Microseconds, bottleneck: Bottleneck
  ) {
    let packet = Packet(
      flow: index, number: number, size: size, kind: kind, sent: now, sequence: sequence, frame: frame)
    number += 1
    pacer.sent(bytes: size)
    if probe != nil {
      probe!.bytes += size
      probe!.packets += 1
    }
    controller.sent(
      UInt16(truncatingIfNeeded: packet.number), size: size, kind: kind, probe: probe?.order.id ?? 0, now: now)
    log.sent(packet)
    _ = bottleneck.enqueue(packet, now: now)
  }

  /// A packet has left the bottleneck.
  func forwarded(_ packet: Packet, at time: Microseconds) {
    if path.loses(&random) { return }
    var arrival = time + path.roundTrip / 2
    if path.jitter > 0 {
      arrival += Microseconds(random.uniform() * Double(2 * path.jitter))
      if random.uniform() < path.reordering {
        toReceiver.insert((packet, arrival)) { $0.arrival > $1.arrival }
        return
      }
    }
    arrival = max(arrival, lastArrival)
    lastArrival = arrival
    toReceiver.insert((packet, arrival)) { $0.arrival > $1.arrival }
  }
}
