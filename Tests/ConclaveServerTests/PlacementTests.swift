import MediaModel
import Testing

@testable import ConclaveServer

/// The addresses of the first workers of a server.
func addresses(_ workers: Int) -> [WorkerAddress] {
  (0..<workers).map { WorkerAddress(node: Incarnation(6), worker: $0) }
}

/// Workers of one server as their numbers.
extension Placement {
  fileprivate init(workers: Int, callShare: Int) { self.init(workers: addresses(workers), callShare: callShare) }

  fileprivate mutating func number(for peer: PeerID, of call: CallID) -> Int {
    let worker = place(peer, of: call)
    #expect(worker.node == Incarnation(6))
    return worker.worker
  }
}

@Test func aCallStaysTogetherAndANewOneGoesToTheIdlestWorker() {
  var placement = Placement(workers: 2, callShare: 40)
  let calls = (0..<3).map { CallID(unchecked: "c\($0)") }
  let peers = (0..<6).map { PeerID(rawValue: $0) }
  #expect(placement.number(for: peers[0], of: calls[0]) == 0)
  #expect(placement.number(for: peers[1], of: calls[0]) == 0)
  #expect(placement.number(for: peers[2], of: calls[1]) == 1)
  #expect(placement.number(for: peers[3], of: calls[2]) == 1)
  #expect(placement.number(for: peers[3], of: calls[2]) == 1)
  placement.remove(peers[0])
  #expect(placement.worker(of: peers[0]) == nil)
  #expect(placement.worker(of: peers[1])?.worker == 0)
  placement.remove(peers[1])
  #expect(placement.number(for: peers[4], of: calls[0]) == 0)
}

@Test func aCallLargerThanAWorkersShareSpreads() {
  var placement = Placement(workers: 3, callShare: 2)
  let (large, small) = (CallID(unchecked: "large"), CallID(unchecked: "small"))
  var places = (0..<4).map { placement.number(for: PeerID(rawValue: $0), of: large) }
  #expect(places == [0, 0, 1, 1], "the second worker joins when the first has its share")
  #expect(placement.number(for: PeerID(rawValue: 10), of: small) == 2)
  places = (4..<9).map { placement.number(for: PeerID(rawValue: $0), of: large) }
  #expect(places == [2, 2, 0, 1, 2], "all have their share: the one with the fewest peers of the call is next")
  #expect(placement.workers(of: large) == addresses(3))
  #expect(
    placement.peers(of: large, notOn: addresses(1)[0]).sorted { $0.rawValue < $1.rawValue }.map(\.rawValue) == [
      2, 3, 4, 5, 7, 8,
    ])
  // A free place is used before another worker joins.
  placement.remove(PeerID(rawValue: 0))
  placement.remove(PeerID(rawValue: 1))
  #expect(placement.number(for: PeerID(rawValue: 9), of: large) == 0)
}

@Test func aWorkerWithoutPeersOfACallIsNoneOfItsWorkers() {
  var placement = Placement(workers: 2, callShare: 1)
  let call = CallID(unchecked: "c")
  for peer in 0..<2 as Range<UInt64> { _ = placement.number(for: PeerID(rawValue: peer), of: call) }
  let gone = placement.remove(PeerID(rawValue: 0))
  #expect(gone?.call == call && gone?.worker.worker == 0)
  #expect(placement.workers(of: call).map(\.worker) == [1])
  #expect(placement.remove(PeerID(rawValue: 0)) == nil)
  placement.remove(PeerID(rawValue: 1))
  #expect(placement.workers(of: call).isEmpty)
}
