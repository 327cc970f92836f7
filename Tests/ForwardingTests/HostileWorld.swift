import MediaModel
import Octets
import Paths

@testable import Forwarding

/// Two calls on one worker, from a seed: honest people in both, and hostile members in the first, if any.
struct HostileWorld {
  /// The packets that an honest receiver got from an honest sender's track.
  struct Reception: Equatable {
    var receiver: Int
    var track: TrackID
    var during: Int
    var afterwards: Int
  }

  let call: SimulatedCall
  /// Three in the first call, two in the other.
  let honest: [TestPeer]
  private(set) var hostile: [HostileMember] = []
  /// The strategies that were used.
  private(set) var used: Set<String> = []
  private var random: SplitMix64
  private let strategies: [HostileStrategy]
  private static let other = CallID(unchecked: "other")
  private(set) var processor: Processor?

  /// A thread that forwards a limited number of packets per second, and sheds video when it gets more.
  struct Processor {
    let capacity: Double
    private(set) var share = 1.0
    private(set) var lowest = 1.0
    private var forwarded: UInt64 = 0
    private var lateWindows = 0
    private var changed = 0

    init(capacity: Double) { self.capacity = capacity }

    /// Judges like `SheddingRule`, with packets instead of the time that they take.
    mutating func judge(_ sfu: SFU, millisecond: Int, now: Instant) {
      let window = 50
      guard millisecond % window == 0 else { return }
      let load = Double(sfu.counters.forwarded &- forwarded) / (capacity * Double(window) / 1_000)
      forwarded = sfu.counters.forwarded
      lateWindows = load > 1 ? lateWindows + 1 : 0
      if lateWindows == 3 {
        (lateWindows, changed) = (0, millisecond)
        share *= load > 2 ? 0.5 : 0.75
      } else if share < 1, load < 0.8, millisecond - changed >= 350 {
        changed = millisecond
        share = min(1, max(share + 0.05, share * 0.85 / max(load, 0.01)))
      }
      lowest = min(lowest, share)
      sfu.setVideoShare(share, now: now)
    }
  }

  /// - Parameter capacity: packets that the worker can forward in a second; nil for all.
  init(
    seed: UInt64, hostile count: Int, strategies: [HostileStrategy] = HostileStrategy.enabled, capacity: Double? = nil
  ) throws {
    processor = capacity.map(Processor.init)
    var random = SplitMix64(seed: seed)
    self.strategies = strategies
    let isReported = seed % 2 == 0
    let loss = [0, 0.01, 0.03][Int.random(in: 0...2, using: &random)]
    let call = SimulatedCall(seed: seed)
    self.call = call
    honest = (0..<5).map { place in
      let peer = call.join(
        [.microphone, .camera], audioSlots: 6, videoSlots: 8, of: place < 3 ? SimulatedCall.name : Self.other)
      if isReported {
        peer.reportArrivals()
        call.configure(peer)
      }
      (peer.tracks[0].payloadLength, peer.tracks[0].level) = (60, 30)
      (peer.tracks[1].payloadLength, peer.tracks[1].packetsPerFrame) = (300, 1)
      return peer
    }
    self.random = random
    for place in 0..<count {
      let peer = call.join([.microphone, .microphone, .camera, .screen], audioSlots: 6, videoSlots: 8)
      peer.configuration.extensions.dependencyDescriptor = 11
      peer.configuration.extensions.rid = 9
      if isReported { peer.reportArrivals() }
      call.configure(peer)
      peer.sendsNacks = false
      peer.sendsReports = false
      peer.feedback.isSilent = true
      hostile.append(HostileMember(peer, in: call, seed: seed &* 31 &+ UInt64(place)))
    }
    try call.connect()
    // Only now: a lost handshake makes its peer deaf for a while, and the worlds should begin in the same state.
    for peer in honest {
      var link = Link(rate: 100_000_000)
      link.loss = loss
      call.network.links[peer.address] = link
    }
  }

  /// Media for 300 ms, the hostile members' 1.5 s, and a second without them.
  mutating func run() -> [Reception] {
    run(milliseconds: 300)
    let start = call.now
    for _ in 0..<5 { runHostile(milliseconds: 300) }
    for member in hostile { call.command(.remove(member.peer.configuration.peer)) }
    for member in hostile { member.peer.isPresent = false }
    let end = call.now
    run(milliseconds: 100)
    let settled = call.now
    run(milliseconds: 1_000)
    return receptions(from: start, to: end, after: settled)
  }

  private mutating func runHostile(milliseconds: Int) {
    let acts = hostile.map { _ in
      (0..<Int.random(in: 1...2, using: &random)).map { _ in strategies.randomElement(using: &random)! }
    }
    for strategy in acts.joined() { used.insert(strategy.name) }
    for _ in 0..<milliseconds {
      for (member, strategies) in zip(hostile, acts) {
        member.tick += 1
        for strategy in strategies { strategy.act(member) }
      }
      run(milliseconds: 1)
    }
  }

  private mutating func run(milliseconds: Int) {
    for _ in 0..<milliseconds {
      call.run(milliseconds: 1)
      processor?.judge(call.sfu, millisecond: Int(call.now.nanoseconds / 1_000_000), now: call.now)
    }
  }

  private func receptions(from start: Instant, to end: Instant, after settled: Instant) -> [Reception] {
    honest.enumerated().flatMap { place, receiver in
      let packets = receiver.streams.values.flatMap { stream in stream.packets.values }
      return honest.filter { $0 !== receiver && $0.configuration.call == receiver.configuration.call }.flatMap {
        sender in
        sender.tracks.map { track in
          let name = track.description.track
          let prefix = UInt64(name.participant) << 8 | UInt64(name.index)
          let own = packets.filter { $0.serial >> 32 == prefix }
          return Reception(
            receiver: place, track: name, during: own.count { $0.arrival >= start && $0.arrival < end },
            afterwards: own.count { $0.arrival >= settled })
        }
      }
    }
  }

  /// The losses that the hostile members cause; nil if the honest people get media within 20 % of what they would get
  /// otherwise.
  static func harm(
    seed: UInt64, strategies: [HostileStrategy] = HostileStrategy.enabled, capacity: Double? = nil,
    least: (Reception) -> Double = { _ in 0.8 }, shed: (Double) -> Void = { _ in }
  ) throws -> String? {
    var quiet = try HostileWorld(seed: seed, hostile: 0, strategies: strategies, capacity: capacity)
    var pressed = try HostileWorld(
      seed: seed, hostile: Int(1 + seed % 2), strategies: strategies, capacity: capacity)
    let (expected, found) = (quiet.run(), pressed.run())
    if let processor = pressed.processor { shed(processor.lowest) }
    var harms: [String] = []
    for (expected, found) in zip(expected, found) {
      guard expected.during > 20, expected.afterwards > 20 else {
        harms.append("the world without hostile members has no media")
        continue
      }
      let part = min(
        Double(found.during) / Double(expected.during), Double(found.afterwards) / Double(expected.afterwards))
      guard part < least(found) else { continue }
      harms.append(
        "\(found.receiver) of \(found.track): \(found.during) and \(found.afterwards) of \(expected.during) and \(expected.afterwards)"
      )
    }
    for (place, peer) in pressed.honest.enumerated() where peer.refused > 0 {
      harms.append("\(place) could not open \(peer.refused) packets")
    }
    if pressed.call.sfu.counters.connected != pressed.honest.count { harms.append("an honest participant is cut off") }
    guard !harms.isEmpty else { return nil }
    return "seed \(seed), \(pressed.used.sorted().joined(separator: ", ")): \(harms.prefix(4).joined(separator: "; "))"
  }
}
