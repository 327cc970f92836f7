import MediaModel

/// Which worker forwards a peer's media: all of a call are together, a new call goes to the worker with the fewest peers.
struct Placement {
  private var peers: [PeerID: CallID] = [:]
  private var calls: [CallID: (worker: Int, peers: Int)] = [:]
  private var load: [Int]

  init(workers: Int) { load = Array(repeating: 0, count: workers) }

  func worker(of peer: PeerID) -> Int? { peers[peer].flatMap { calls[$0]?.worker } }

  mutating func place(_ peer: PeerID, of call: CallID) -> Int {
    if let worker = worker(of: peer) { return worker }
    let idlest = load.indices.min { load[$0] < load[$1] } ?? 0
    let worker = calls[call]?.worker ?? idlest
    peers[peer] = call
    calls[call, default: (worker, 0)].peers += 1
    load[worker] += 1
    return worker
  }

  mutating func remove(_ peer: PeerID) {
    guard let call = peers.removeValue(forKey: peer), let (worker, count) = calls[call] else { return }
    load[worker] -= 1
    calls[call] = count == 1 ? nil : (worker, count - 1)
  }
}
