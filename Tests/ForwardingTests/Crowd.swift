import MediaModel
import Transport

@testable import Forwarding

/// A call of many peers around a real SFU, connected without a handshake, for the SFU's work besides packets.
final class Crowd {
  let sfu = SFU(configuration: SFUConfiguration(), certificate: SimulatedCall.certificate, seed: 1)
  let outbox = Outbox(chunks: 256)
  private(set) var now = instant(1000)
  private(set) var events: [MediaEvent] = []
  /// The highest number of visits in one pass.
  private(set) var largestPass: UInt64 = 0

  var call: ForwardedCall { sfu.calls[SimulatedCall.name]! }

  func join(
    _ number: UInt32, _ sources: [TrackSource], audioSlots: Int = 8, videoSlots: Int = 12, codec: String = "VP8",
    isGuest: Bool = false, member: Int? = nil, filling: SlotFilling = .ranked
  ) {
    var configuration = TestPeer.configuration(number, sources, audioSlots, videoSlots, false, true, codec)
    configuration.isGuest = isGuest
    configuration.filling = filling
    if let member { configuration.member = member }
    handle(.configure(configuration, request: UInt64(number)))
    let peer = sfu.peersByID[configuration.peer]!
    peer.transport.sender = SRTPSender(
      profile: .aeadAES128GCM,
      master: SRTPMasterKey(key: [UInt8](repeating: 1, count: 16), salt: [UInt8](repeating: 2, count: 12)))
    peer.connectionState = .silent
    let pair = CandidatePair(peer, SocketAddress(ipv4: 0x0a00_0000 | number, port: 4000), now: now)
    sfu.paths.addresses.insert(pair)
    peer.pairs.append(pair)
    sfu.paths.prove(pair, now: now)
  }

  func peer(_ number: UInt32) -> Peer { sfu.peersByID[PeerID(rawValue: UInt64(number))]! }

  func handle(_ command: MediaCommand) {
    let before = sfu.counters.visits
    sfu.handle(command, now: now, into: outbox)
    finishPass(since: before)
  }

  /// Carries out commands like a worker, with a pass of the timers after each of its passes.
  /// - Parameter visits: after this many visits no further command is begun in a pass.
  /// - Returns: the commands of each pass.
  func handle(_ commands: [MediaCommand], visits: UInt64) -> [Int] {
    var passes: [Int] = []
    var carriedOut = 0
    while carriedOut < commands.count {
      let before = sfu.counters.visits
      let count = sfu.handle(commands[carriedOut...], now: now, into: outbox) { sfu.counters.visits - before >= visits }
      finishPass(since: before)
      passes.append(count)
      carriedOut += count
      let then = sfu.counters.visits
      sfu.handleTimeout(now: now, into: outbox)
      finishPass(since: then)
    }
    return passes
  }

  /// A packet of the peer's microphone with this level.
  func hear(level: UInt8, of peer: Peer, now: Instant? = nil) {
    let now = now ?? self.now
    let change = peer.call.speakers.hear(level: level, of: peer, most: sfu.configuration.voices, now: now)
    sfu.slots.note(change, in: peer.call, now: now)
  }

  /// The peer's microphone has this level for a while.
  func speak(_ number: UInt32, level: UInt8) {
    let peer = peer(number)
    for i in 0..<10 { hear(level: level, of: peer, now: now.advanced(by: .milliseconds(20 * i - 180))) }
    peer.call.speakers.isDue = true
    sfu.output.schedule(peer.call)
  }

  func run(milliseconds: Int) {
    for _ in 0..<milliseconds {
      now = now.advanced(by: .milliseconds(1))
      settle()
    }
  }

  /// Runs all passes that are due.
  func settle() {
    while let due = sfu.nextTimeout, due <= now {
      let before = sfu.counters.visits
      sfu.handleTimeout(now: now, into: outbox)
      finishPass(since: before)
    }
  }

  private func finishPass(since before: UInt64) {
    largestPass = max(largestPass, sfu.counters.visits - before)
    outbox.reset()
    events += sfu.events
    sfu.events.removeAll()
  }

  /// The number of visits meanwhile.
  func visits(_ body: (Crowd) -> Void) -> UInt64 {
    let before = sfu.counters.visits
    body(self)
    settle()
    return sfu.counters.visits - before
  }
}
