import CongestionControl
import MediaModel

@testable import Forwarding

/// A running call, and the sender's next packets as they will arrive from the network.
final class ForwardingBench {
  private let call: SimulatedCall
  private let sender: TestPeer
  private var datagrams: [[UInt8]] = []
  private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1500, alignment: 64)
  private let before: UInt64
  /// The receivers whose packets may wait.
  private var paced: [Peer] = []
  private var now: Instant

  /// - Parameters:
  ///   - isPaced: the receivers' paths are narrow, with 20 Mbit/s.
  ///   - history: bytes kept of the sender's packets; the first 1,000 packets should fill them.
  init(
    receivers: Int, packets: Int, payload: Int = 1150, isReported: Bool, isPaced: Bool = false, history: Int = 1 << 20
  ) throws {
    var configuration = SFUConfiguration()
    configuration.videoHistory = history
    // The bench sends faster than any publisher may, but its packets are still charged.
    configuration.videoTrack = PublishingRate(packets: 1_000_000, kilobits: 10_000_000)
    configuration.publisher = configuration.videoTrack
    call = SimulatedCall(configuration: configuration)
    sender = call.join([.camera], audioSlots: 0, videoSlots: 0)
    for _ in 0..<receivers {
      let receiver = call.join([], audioSlots: 0, videoSlots: 1)
      guard isReported else { continue }
      receiver.reportArrivals()
      call.configure(receiver)
    }
    try call.connect()
    call.run(milliseconds: 2500)
    let track = sender.tracks[0]
    track.packetsPerFrame = packets
    track.payloadLength = payload
    track.wantsKeyFrame = false
    track.isMidSent = false
    let sender = sender
    datagrams = track.nextFrame(extensions: sender.configuration.extensions).map { sender.protect($0)! }
    before = call.sfu.counters.forwarded
    now = call.now
    guard isPaced else { return }
    paced = call.sfu.peers.filter { !$0.videoSlots.isEmpty }
    for peer in paced {
      peer.transport.downlink?.pointee.estimator.presume(20_000_000, sent: 20_000_000, now: call.now.microseconds)
      peer.transport.downlink?.pointee.setPacing(true, now: call.now)
    }
  }

  deinit { buffer.deallocate() }

  var forwarded: UInt64 { call.sfu.counters.forwarded - before }
  var waited: UInt64 { call.sfu.counters.paced }

  /// Passes these packets to the SFU, emptying the outbox like a worker after a full batch.
  /// - Parameter send: called with the outbox before it is emptied.
  func forward(_ range: Range<Int>, batch: Int = 32, _ send: (UnsafeBufferPointer<DatagramRun>) -> Void = { _ in }) {
    let sfu = call.sfu
    let outbox = call.outbox
    let address = sender.address
    for i in range {
      datagrams[i].withUnsafeBytes { buffer.copyMemory(from: $0) }
      let datagram = UnsafeMutableRawBufferPointer(rebasing: buffer[..<datagrams[i].count])
      now = now.advanced(by: .microseconds(100))
      sfu.handle(datagram, from: address, now: now, into: outbox)
      guard i % batch == batch - 1 else { continue }
      for peer in paced { sfu.release(to: peer, now: now, into: outbox) }
      send(outbox.runs)
      outbox.reset()
    }
  }

  /// The same under a name that callgrind finds.
  @inline(never) func measured(_ range: Range<Int>) { forward(range) }
}
