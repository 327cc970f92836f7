import MediaModel
import Octets
import Paths

@testable import Forwarding

/// The conditions for datagrams on the path between a peer and the server.
struct NetworkConditions {
  var loss = 0.0
  /// The loss of datagrams to the server, in addition to the other.
  var upstreamLoss = 0.0
  var duplication = 0.0
  /// In milliseconds, drawn for each datagram: a wide range reorders.
  var delay = 5...5
}

struct Datagram {
  var bytes: [UInt8]
  var source: SocketAddress
  var destination: SocketAddress
}

/// Datagrams in flight, in virtual time, with a seed.
struct SimulatedNetwork {
  var conditions = NetworkConditions()
  /// The links to some destinations; the others have no rate limit.
  var links: [SocketAddress: Link] = [:]
  private var random: SplitMix64
  private var due: [UInt64: [Datagram]] = [:]

  init(seed: UInt64) { random = SplitMix64(seed: seed) }

  mutating func send(_ datagram: Datagram, at millisecond: UInt64) {
    guard Double.random(in: 0..<1, using: &random) >= conditions.loss else { return }
    if conditions.upstreamLoss > 0, datagram.destination == SimulatedCall.server,
      Double.random(in: 0..<1, using: &random) < conditions.upstreamLoss
    {
      return
    }
    if let loss = links[datagram.destination]?.loss, loss > 0, Double.random(in: 0..<1, using: &random) < loss {
      return
    }
    var queued: UInt64 = 0
    if let delay = links[datagram.destination]?.delay(of: datagram.bytes.count, now: Int(millisecond) * 1_000) {
      queued = UInt64(delay / 1_000)
    } else if links[datagram.destination] != nil {
      return
    }
    due[arrival(millisecond) + queued, default: []].append(datagram)
    if Double.random(in: 0..<1, using: &random) < conditions.duplication {
      due[arrival(millisecond), default: []].append(datagram)
    }
  }

  mutating func arrivals(at millisecond: UInt64) -> [Datagram] { due.removeValue(forKey: millisecond) ?? [] }

  private mutating func arrival(_ millisecond: UInt64) -> UInt64 {
    millisecond + UInt64(max(1, Int.random(in: conditions.delay, using: &random)))
  }
}
