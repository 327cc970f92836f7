import MediaModel
import Testing

@testable import ConclaveServer

@Test func aCallStaysTogetherAndANewOneGoesToTheIdlestWorker() {
  var placement = Placement(workers: 2, callShare: 40)
  let calls = (0..<3).map { CallID(unchecked: "c\($0)") }
  let peers = (0..<6).map { PeerID(rawValue: $0) }
  #expect(placement.place(peers[0], of: calls[0]) == 0)
  #expect(placement.place(peers[1], of: calls[0]) == 0)
  #expect(placement.place(peers[2], of: calls[1]) == 1)
  #expect(placement.place(peers[3], of: calls[2]) == 1)
  #expect(placement.place(peers[3], of: calls[2]) == 1)
  placement.remove(peers[0])
  #expect(placement.worker(of: peers[0]) == nil)
  #expect(placement.worker(of: peers[1]) == 0)
  placement.remove(peers[1])
  #expect(placement.place(peers[4], of: calls[0]) == 0)
}

@Test func aCallLargerThanAWorkersShareSpreads() {
  var placement = Placement(workers: 3, callShare: 2)
  let (large, small) = (CallID(unchecked: "large"), CallID(unchecked: "small"))
  var places = (0..<4).map { placement.place(PeerID(rawValue: $0), of: large) }
  #expect(places == [0, 0, 1, 1], "the second worker joins when the first has its share")
  #expect(placement.place(PeerID(rawValue: 10), of: small) == 2)
  places = (4..<9).map { placement.place(PeerID(rawValue: $0), of: large) }
  #expect(places == [2, 2, 0, 1, 2], "all have their share: the one with the fewest peers of the call is next")
  #expect(placement.workers(of: large) == [0, 1, 2])
  #expect(
    placement.peers(of: large, notOn: 0).sorted { $0.rawValue < $1.rawValue }.map(\.rawValue) == [2, 3, 4, 5, 7, 8])
  // A place that is free is taken before another worker's.
  placement.remove(PeerID(rawValue: 0))
  placement.remove(PeerID(rawValue: 1))
  #expect(placement.place(PeerID(rawValue: 9), of: large) == 0)
}

@Test func aWorkerWithoutPeersOfACallIsNoneOfItsWorkers() {
  var placement = Placement(workers: 2, callShare: 1)
  let call = CallID(unchecked: "c")
  for peer in 0..<2 as Range<UInt64> { _ = placement.place(PeerID(rawValue: peer), of: call) }
  let gone = placement.remove(PeerID(rawValue: 0))
  #expect(gone?.call == call && gone?.worker == 0)
  #expect(placement.workers(of: call) == [1])
  #expect(placement.remove(PeerID(rawValue: 0)) == nil)
  placement.remove(PeerID(rawValue: 1))
  #expect(placement.workers(of: call).isEmpty)
}
