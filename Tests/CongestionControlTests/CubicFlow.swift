import CongestionControl
import Glibc

/// A TCP download with Cubic's window (RFC 9438): slow start, a cut to 0.7 at most once per round trip when a packet is
/// missing, and the cubic growth.
final class CubicFlow {
  private static let size = 1_500
  private let roundTrip: Microseconds
  private var window = 10.0
  private var threshold = Double.infinity
  private var most = 0.0
  private var epoch: Microseconds?
  private var inFlight = 0
  private var number = 0
  private var acknowledged = 0
  private var lastCut: Microseconds = .min
  private var acks = Queue<(number: Int, at: Microseconds)>()
  private var losses = Queue<Microseconds>()
  private(set) var received: [Int] = []

  init(roundTrip: Microseconds) { self.roundTrip = roundTrip }

  func advance(to now: Microseconds, bottleneck: Bottleneck) {
    while let (_, at) = acks.first, at <= now {
      _ = acks.removeFirst()
      inFlight -= 1
      if window < threshold { window += 1 } else { rise(now: now) }
    }
    while let at = losses.first, at <= now {
      _ = losses.removeFirst()
      inFlight -= 1
      if lastCut == .min || now - lastCut > roundTrip + bottleneck.delay(at: now) {
        lastCut = now
        most = window
        window = max(2, window * 0.7)
        threshold = window
        epoch = nil
      }
    }
    while Double(inFlight) < window {
      let packet = Packet(flow: -1, number: number, size: Self.size, kind: .video, sent: now)
      number += 1
      inFlight += 1
      if !bottleneck.enqueue(packet, now: now) {
        // Three later packets reveal the loss.
        losses.append(now + roundTrip + bottleneck.delay(at: now))
      }
    }
  }

  func forwarded(_ packet: Packet, at time: Microseconds) {
    let slice = Int(time / (100 * millisecond))
    while received.count <= slice { received.append(0) }
    received[slice] += packet.size
    acks.append((packet.number, time + roundTrip))
  }

  private func rise(now: Microseconds) {
    let began = epoch ?? now
    epoch = began
    let t = Double(now - began) / 1_000_000
    let k = cbrt(most * 0.3 / 0.4)
    let wanted = 0.4 * pow(t - k, 3) + most
    // At least as fast as Reno.
    window += max((wanted - window) / window, 0.5 / window)
  }

  func rate(_ time: Range<Microseconds>) -> Int {
    let slices = Int(time.lowerBound / (100 * millisecond))..<Int(time.upperBound / (100 * millisecond))
    return slices.reduce(0) { $0 + ($1 < received.count ? received[$1] : 0) } * 8_000_000
      / Int(time.upperBound - time.lowerBound)
  }
}
