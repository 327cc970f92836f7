import MediaModel

/// Chooses the worker that forwards a peer's media. A new call goes to the worker with the fewest peers. While its workers have room for more of its
/// peers, they stay together; then the next worker joins in.
struct Placement {
  private struct Place {
    var call: CallID
    var worker: WorkerAddress
  }

  /// A worker's part of a call.
  private struct Share {
    var worker: WorkerAddress
    var peers: Set<PeerID>
  }

  /// How many peers of one call a worker takes before another worker joins in.
  private let callShare: Int
  private var peers: [PeerID: Place] = [:]
  /// The workers of each call, in the order in which they came.
  private var calls: [CallID: [Share]] = [:]
  private let workers: [WorkerAddress]
  /// The peers of each worker.
  private var load: [WorkerAddress: Int] = [:]

  init(workers: [WorkerAddress], callShare: Int) {
    self.workers = workers
    self.callShare = callShare
  }

  func worker(of peer: PeerID) -> WorkerAddress? { peers[peer]?.worker }

  /// In the order in which they came.
  func workers(of call: CallID) -> [WorkerAddress] { calls[call]?.map(\.worker) ?? [] }

  /// The peers of the call that are not on this worker.
  func peers(of call: CallID, notOn worker: WorkerAddress) -> [PeerID] {
    calls[call]?.filter { $0.worker != worker }.flatMap(\.peers) ?? []
  }

  /// Gives the peer a worker, for as long as it lives.
  mutating func place(_ peer: PeerID, of call: CallID) -> WorkerAddress {
    if let worker = worker(of: peer) { return worker }
    var shares = calls[call] ?? []
    let index = share(for: &shares)
    shares[index].peers.insert(peer)
    calls[call] = shares
    peers[peer] = Place(call: call, worker: shares[index].worker)
    load[shares[index].worker, default: 0] += 1
    return shares[index].worker
  }

  /// The index of the share that the next peer joins.
  private func share(for shares: inout [Share]) -> Int {
    if let index = shares.firstIndex(where: { $0.peers.count < callShare }) { return index }
    let others = workers.filter { worker in !shares.contains { $0.worker == worker } }
    guard let idlest = others.min(by: { load[$0, default: 0] < load[$1, default: 0] }) else {
      return shares.indices.min { shares[$0].peers.count < shares[$1].peers.count } ?? 0
    }
    shares.append(Share(worker: idlest, peers: []))
    return shares.count - 1
  }

  /// - Returns: the peer's call and worker; nil for a peer without one.
  @discardableResult
  mutating func remove(_ peer: PeerID) -> (call: CallID, worker: WorkerAddress)? {
    guard let place = peers.removeValue(forKey: peer) else { return nil }
    load[place.worker, default: 0] -= 1
    guard var shares = calls.removeValue(forKey: place.call) else { return nil }
    for index in shares.indices where shares[index].worker == place.worker { shares[index].peers.remove(peer) }
    shares.removeAll { $0.peers.isEmpty }
    if !shares.isEmpty { calls[place.call] = shares }
    return (place.call, place.worker)
  }
}
