extension Configuration {
  /// Limits of one client, user, address or call (protocol section 10), in bytes, seconds and counts.
  package struct Limits: Sendable {
    package var connections = 20_000
    package var addressConnections = 10_000
    package var addressConnectionsBeforeLogin = 500
    package var addressRequestsPerSecond = 100
    package var addressRequestBurst = 2_000
    package var userConnections = 64
    package var userSubscriptions = 512
    package var userRequestsPerSecond = 300
    package var userRequestBurst = 1_000
    package var userEvents = 1 << 20
    package var userEventBurst = 16 << 20
    package var userOutbound = 16 << 20
    package var userInbound = 16 << 20
    package var totalOutbound = 256 << 20
    package var headers = 64
    package var headerLine = 8 << 10
    package var body = 256 << 10
    package var keysBody = 1 << 20
    package var connectSeconds = 10
    package var subscriptions = 64
    package var transactions = 8
    package var framesInTransaction = 100
    package var requestsPerSecond = 50
    package var requestBurst = 100
    package var outbound = 4 << 20
    package var participants = 1_000
    package var ringing = 100
    package var guests = 100

    fileprivate static let members: [(key: CodingKeys, path: any WritableKeyPath<Limits, Int> & Sendable)] = [
      (.connections, \.connections), (.addressConnections, \.addressConnections),
      (.addressConnectionsBeforeLogin, \.addressConnectionsBeforeLogin),
      (.addressRequestsPerSecond, \.addressRequestsPerSecond), (.addressRequestBurst, \.addressRequestBurst),
      (.userConnections, \.userConnections),
      (.userSubscriptions, \.userSubscriptions), (.userRequestsPerSecond, \.userRequestsPerSecond),
      (.userRequestBurst, \.userRequestBurst), (.userEvents, \.userEvents), (.userEventBurst, \.userEventBurst),
      (.userOutbound, \.userOutbound), (.userInbound, \.userInbound),
      (.totalOutbound, \.totalOutbound),
      (.headers, \.headers), (.headerLine, \.headerLine), (.body, \.body),
      (.keysBody, \.keysBody), (.connectSeconds, \.connectSeconds), (.subscriptions, \.subscriptions),
      (.transactions, \.transactions), (.framesInTransaction, \.framesInTransaction),
      (.requestsPerSecond, \.requestsPerSecond), (.requestBurst, \.requestBurst), (.outbound, \.outbound),
      (.participants, \.participants), (.ringing, \.ringing), (.guests, \.guests),
    ]

    func check(_ faults: inout Faults) {
      for (key, path) in Self.members where !(1...1 << 30).contains(self[keyPath: path]) {
        faults.add("limits.\(key.rawValue): \(self[keyPath: path]) is out of range; take 1 to \(1 << 30)")
      }
    }
  }
}

extension Configuration.Limits: Decodable {
  fileprivate enum CodingKeys: String, CodingKey, CaseIterable {
    case connections, addressConnections, addressConnectionsBeforeLogin, addressRequestsPerSecond, addressRequestBurst,
      userConnections, userSubscriptions,
      userRequestsPerSecond, userRequestBurst, userEvents, userEventBurst, userOutbound, userInbound, totalOutbound,
      headers, headerLine, body,
      keysBody,
      connectSeconds, subscriptions, transactions,
      framesInTransaction, requestsPerSecond, requestBurst, outbound, participants, ringing, guests
  }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.strictContainer(keyedBy: CodingKeys.self)
    for (key, path) in Self.members {
      if let value = try container.decodeIfPresent(Int.self, forKey: key) { self[keyPath: path] = value }
    }
  }
}
