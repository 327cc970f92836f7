import MediaModel
import Testing

@testable import ConclaveServer

@Test func aCallStaysTogetherAndANewOneGoesToTheIdlestWorker() {
  var placement = Placement(workers: 2)
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
