import CallMessages
import MediaModel

/// The sessions that read each topic. A session is listed as long as it may read.
struct Topics {
  /// The maximum for one topic. A session's topics are bounded by its subscriptions.
  static let maximumReaders = 4_096

  private var readers: [Channel: [SessionID]] = [:]
  private var channels: [SessionID: [Channel]] = [:]

  func readers(of channel: Channel) -> [SessionID] { readers[channel] ?? [] }

  func isRead(_ channel: Channel) -> Bool { readers[channel] != nil }

  /// False if the topic already has the most readers that it may have.
  mutating func add(_ session: SessionID, to channel: Channel) -> Bool {
    guard !readers(of: channel).contains(session) else { return true }
    guard readers(of: channel).count < Self.maximumReaders else { return false }
    readers[channel, default: []].append(session)
    channels[session, default: []].append(channel)
    return true
  }

  mutating func remove(_ session: SessionID, from channel: Channel) {
    guard let place = channels[session]?.firstIndex(of: channel) else { return }
    channels[session]?.remove(at: place)
    if channels[session]?.isEmpty == true { channels[session] = nil }
    readers[channel]?.removeAll { $0 == session }
    if readers[channel]?.isEmpty == true { readers[channel] = nil }
  }

  /// The connection is gone.
  mutating func remove(_ session: SessionID) {
    for channel in channels[session] ?? [] { remove(session, from: channel) }
  }

  /// The topic is over.
  mutating func remove(_ channel: Channel) {
    for session in readers(of: channel) { remove(session, from: channel) }
  }
}
