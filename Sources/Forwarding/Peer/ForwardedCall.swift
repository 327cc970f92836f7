import MediaModel

/// The peers of one call: those on this worker, and those on other workers that send tracks. A room is a call of pinned peers.
final class ForwardedCall: Scheduled {
  /// Distinct formats of one call's tracks. No slot supports a track in one format more.
  static let maximumFormats = 64

  let id: CallID
  /// Its place in the order in which the calls of a worker began, so that what is done for all of them has one order.
  let number: UInt64
  /// The workers that have peers of the call; empty while all are on this one.
  var workers: [WorkerAddress] = []
  /// Those with ranked slots, and whose tracks are ranked.
  var peers: ContiguousArray<Peer> = []
  /// Those with pinned slots. No ranking, voice or need depends on them.
  var pinnedPeers: ContiguousArray<Peer> = []
  let speakers = CallSpeakers()
  /// The number of voice slots of the peer that has most; nil until they are counted again.
  private var mostVoices: Int?
  /// When the slots must be filled again: after a change, or when slots that are held for a moment may change.
  var allocationDue: Instant?
  /// One of each set of formats that are compatible with each other; its index is the set's key.
  private(set) var formats: [PayloadFormat] = []
  /// Counts allocation passes, to mark what each of them chose.
  var pass: UInt64 = 0
  var ranking = Ranking()
  var isRankingStale = true
  /// How the ranking has changed since slots were last allocated by it.
  var rankingChange = Ranking.Change.none
  /// Peers whose slots wait to be filled, and how many at the front have been taken. A taken peer is released immediately: when a call of 1,000 ends all of them
  /// wait here, and freeing them in one pass would take several milliseconds.
  private var unfilled: ContiguousArray<Peer?> = []
  private var taken = 0
  /// The cost of its receivers.
  let load = CallLoad()
  /// The share of the wished video rate that each receiver gets; below 1 while the worker cannot keep up and the call is expensive.
  var videoShare = 1.0
  /// The cost of all its video per second, as last measured.
  var videoNeed = 0.0
  /// Layered tracks whose receivers changed.
  private var demands: [UpTrack] = []
  var place = -1

  init(_ id: CallID, number: UInt64 = 0) {
    self.id = id
    self.number = number
  }

  /// Both kinds.
  var allPeers: ContiguousArray<Peer> {
    pinnedPeers.isEmpty ? peers : peers.isEmpty ? pinnedPeers : peers + pinnedPeers
  }

  var isEmpty: Bool { peers.isEmpty && pinnedPeers.isEmpty }

  func add(_ peer: Peer) {
    if peer.isPinned { pinnedPeers.append(peer) } else { peers.append(peer) }
    speakers.arrive(peer, peers: peers.count + pinnedPeers.count)
  }

  func remove(_ peer: Peer, now: Instant) {
    speakers.depart(peer, now: now)
    if peer.isPinned { pinnedPeers.removeAll { $0 === peer } } else { peers.removeAll { $0 === peer } }
    recountVoices()
    isRankingStale = true
  }

  /// A peer's slots changed, or it was removed.
  func recountVoices() { mostVoices = nil }

  /// The number of voice slots of the peer that has most.
  func countVoices() -> Int {
    let most = mostVoices ?? peers.lazy.map(\.audioSlots.count).max() ?? 0
    mostVoices = most
    return most
  }

  /// Queues the peer so that one of the next passes fills its slots.
  func enqueue(_ peer: Peer) {
    guard !peer.isWaitingForSlots else { return }
    peer.isWaitingForSlots = true
    unfilled.append(peer)
  }

  /// The next `count` queued peers, without those that were removed.
  func takeUnfilled(_ count: Int) -> ContiguousArray<Peer> {
    var next: ContiguousArray<Peer> = []
    for index in taken..<min(taken + count, unfilled.count) {
      taken += 1
      guard let peer = exchange(&unfilled[index], with: nil) else { continue }
      peer.isWaitingForSlots = false
      if !peer.isGone { next.append(peer) }
    }
    if taken == unfilled.count {
      unfilled.removeAll(keepingCapacity: true)
      taken = 0
    }
    return next
  }

  func noteDemand(of track: UpTrack) {
    guard !track.isDemandNoted else { return }
    track.isDemandNoted = true
    demands.append(track)
  }

  /// The layered tracks whose receivers changed since the last time.
  func takeDemands() -> [UpTrack] {
    guard !demands.isEmpty else { return [] }
    defer { demands.removeAll(keepingCapacity: true) }
    for track in demands { track.isDemandNoted = false }
    return demands.filter { !$0.isDetached }
  }

  /// −1 if the call has too many formats.
  func formatKey(_ format: PayloadFormat?) -> Int {
    guard let format else { return -1 }
    if let key = formats.firstIndex(where: { $0.profile == format.profile }) { return key }
    guard formats.count < Self.maximumFormats else { return -1 }
    formats.append(format)
    return formats.count - 1
  }

  /// When a timer must look at speakers, or at slots that wait or are held.
  var deadline: Instant? {
    if !unfilled.isEmpty { return Instant(nanoseconds: 0) }
    let speaking = speakers.deadline
    guard let allocationDue, let speaking else { return speaking ?? allocationDue }
    return min(allocationDue, speaking)
  }
}
