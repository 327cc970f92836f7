import Logging
import MediaModel
import NIOCore

/// Everything that all connections of a server share.
struct SharedServices: Sendable {
  let configuration: SignalingServer.Configuration
  let authenticator: any Authenticator
  let sink: any SignalingSink
  let pages: @Sendable (HTTPRequest) async -> HTTPResponse
  /// The wall clock, which tokens' ends are told in.
  let clock: @Sendable () -> Timestamp
  let logger: Logger
  /// For what strangers can cause.
  let log: LimitedLog
  let counters: SignalingCounters
  let broker: SharedBroker
  let connections = ConnectionTable()
  let admission: Admission
  let pageRates: PageRates
  let shares: UserShares
  let slowReaders: SlowReaders
  let sessionIDs = SessionNumbers()
  let stateTexts = StateTexts()
  let rules: DestinationRules

  init(
    configuration: SignalingServer.Configuration, group: any EventLoopGroup, authenticator: any Authenticator,
    sink: any SignalingSink, pages: @escaping @Sendable (HTTPRequest) async -> HTTPResponse,
    clock: @escaping @Sendable () -> Timestamp, logger: Logger
  ) {
    self.configuration = configuration
    self.authenticator = authenticator
    self.sink = sink
    self.pages = pages
    self.clock = clock
    self.logger = logger
    log = LimitedLog(logger)
    let counters = SignalingCounters()
    self.counters = counters
    admission = Admission(limits: configuration.admission, proxies: configuration.proxies, counters: counters)
    pageRates = PageRates(
      perSecond: configuration.requestsFromAddressPerSecond, burst: configuration.requestBurstFromAddress,
      proxies: configuration.proxies)
    shares = UserShares(limits: configuration.userShare)
    slowReaders = SlowReaders(limits: configuration.backlog)
    broker = SharedBroker(loops: Array(group.makeIterator()), counters: counters)
    rules = DestinationRules(prefixes: configuration.destinations, body: configuration.requestBody)
  }
}
