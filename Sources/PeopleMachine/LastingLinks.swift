import CallMessages
import Contract
import MediaModel
import Octets

/// All lasting links, with the connections that wait at them (protocol section 4, "Lasting links").
struct LastingLinks {
  /// How many links a connection may wait at, and how many connections at a link.
  static let waitsOfSession = 8
  static let waitsAtLink = 64
  /// The owner's devices are told of people who wait at most so often, and browsers that are closed more rarely.
  static let eventPause = Duration.seconds(60)
  static let pushPause = Duration.seconds(600)

  private struct Link {
    var stored: StoredLastingLink
    /// In the order in which they came.
    var waiting: [SessionID] = []
    var toldAt: Timestamp?
    var pushedAt: Timestamp?
  }

  private var links: [LinkID: Link] = [:]
  /// A user's links in the order in which they were made.
  private var ofUser: [UserID: [LinkID]] = [:]
  private var ofCall: [CallID: LinkID] = [:]
  private var ofSession: [SessionID: Set<LinkID>] = [:]
  /// Links by their ends; also some that are gone.
  private var ends = Heap<Timestamp, LinkID>()

  subscript(id: LinkID) -> StoredLastingLink? { links[id]?.stored }

  var count: Int { links.count }

  var all: [StoredLastingLink] { links.values.map(\.stored).sorted { $0.id < $1.id } }

  func links(of user: UserID) -> [StoredLastingLink] { (ofUser[user] ?? []).compactMap { links[$0]?.stored } }

  func count(of user: UserID) -> Int { ofUser[user]?.count ?? 0 }

  /// The ends that are kept, also of links that are gone.
  var ending: Int { ends.count }

  /// When the first one ends, or nothing is left of one that was deleted before.
  var nextEnd: Timestamp? { ends.first?.key }

  mutating func add(_ link: StoredLastingLink) {
    links[link.id] = Link(stored: link)
    ofUser[link.device.user, default: []].append(link.id)
    if let opening = link.opening { ofCall[opening.call] = link.id }
    ends.add(link.id, key: link.expiresAt)
  }

  /// Returns the link, and the connections that waited at it.
  mutating func remove(_ id: LinkID) -> (link: StoredLastingLink, waiting: [SessionID])? {
    guard let link = links.removeValue(forKey: id) else { return nil }
    let user = link.stored.device.user
    ofUser[user]?.removeAll { $0 == id }
    if ofUser[user]?.isEmpty == true { ofUser[user] = nil }
    if let opening = link.stored.opening { ofCall[opening.call] = nil }
    forget(link.waiting, at: id)
    // Otherwise somebody who makes and deletes links could fill the memory.
    if ends.count > 2 * links.count + 64 { ends.removeAll { links[$0] == nil } }
    return (link.stored, link.waiting)
  }

  /// The next link whose time has come.
  mutating func takeExpired(now: Timestamp) -> LinkID? {
    while let first = ends.first, first.key <= now {
      guard let id = ends.removeFirst(), let link = links[id] else { continue }
      if link.stored.expiresAt <= now { return id }
    }
    return nil
  }

  // MARK: its call

  /// The link has a call now. Returns the connections that waited for it.
  mutating func open(_ id: LinkID, _ opening: StoredLastingLink.Opening) -> [SessionID] {
    guard let link = links[id] else { return [] }
    if let old = link.stored.opening { ofCall[old.call] = nil }
    links[id]?.stored.opening = opening
    links[id]?.waiting = []
    links[id]?.toldAt = nil
    ofCall[opening.call] = id
    forget(link.waiting, at: id)
    return link.waiting
  }

  /// The call is over, or its links are void. Returns the link that it was for.
  mutating func close(_ call: CallID) -> LinkID? {
    guard let id = ofCall.removeValue(forKey: call) else { return nil }
    links[id]?.stored.opening = nil
    return id
  }

  // MARK: who waits

  /// False if there is no room.
  mutating func wait(_ session: SessionID, at id: LinkID) -> Bool {
    guard let link = links[id] else { return false }
    if link.waiting.contains(session) { return true }
    guard link.waiting.count < Self.waitsAtLink, (ofSession[session]?.count ?? 0) < Self.waitsOfSession else {
      return false
    }
    links[id]?.waiting.append(session)
    ofSession[session, default: []].insert(id)
    return true
  }

  /// The connection is gone.
  mutating func leave(_ session: SessionID) {
    for id in ofSession.removeValue(forKey: session) ?? [] { links[id]?.waiting.removeAll { $0 == session } }
  }

  /// The user's links at which connections wait, with these.
  func awaited(of user: UserID) -> [(link: LinkID, by: [SessionID])] {
    (ofUser[user] ?? []).compactMap { id in
      links[id].flatMap { $0.waiting.isEmpty ? nil : (link: id, by: $0.waiting) }
    }
  }

  /// Whether the owner is to be told now that somebody waits: the devices that are connected, and browsers that are closed.
  mutating func takeNotice(of id: LinkID, now: Timestamp) -> (event: Bool, push: Bool) {
    guard let link = links[id], link.stored.opening == nil else { return (false, false) }
    let event = link.toldAt.map { $0 + Self.eventPause <= now } ?? true
    let push = link.pushedAt.map { $0 + Self.pushPause <= now } ?? true
    if event { links[id]?.toldAt = now }
    if push { links[id]?.pushedAt = now }
    return (event, push)
  }

  private mutating func forget(_ sessions: [SessionID], at id: LinkID) {
    for session in sessions {
      ofSession[session]?.remove(id)
      if ofSession[session]?.isEmpty == true { ofSession[session] = nil }
    }
  }
}
