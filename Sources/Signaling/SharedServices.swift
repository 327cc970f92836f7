import Logging
import MediaModel
import NIOCore

/// Everything that all connections of a server share.
struct SharedServices: Sendable {
  let current: CurrentConfiguration
  let authenticator: any Authenticator
  let sink: any SignalingSink
  let pages: @Sendable (HTTPRequest) async -> HTTPResponse
  /// The wall clock in which tokens' expiries are expressed.
  let clock: @Sendable () -> Timestamp
  let logger: Logger
  /// For log lines that strangers can cause.
  let log: LimitedLog
  let counters: SignalingCounters
  let broker: SharedBroker
  let connections = ConnectionTable()
  let admission: ConnectionAdmission
  let pageRates: PageRates
  let shares: UserShares
  let slowReaders: SlowReaders
  let sessionIDs: SessionNumbers
  let stateTexts = StateTexts()

  /// The current configuration.
  var configuration: FixedConfiguration { current.value }

  init(
    configuration: SignalingServer.Configuration, incarnation: Incarnation, group: any EventLoopGroup,
    authenticator: any Authenticator,
    sink: any SignalingSink, pages: @escaping @Sendable (HTTPRequest) async -> HTTPResponse,
    clock: @escaping @Sendable () -> Timestamp, logger: Logger
  ) {
    current = CurrentConfiguration(configuration)
    sessionIDs = SessionNumbers(of: incarnation)
    self.authenticator = authenticator
    self.sink = sink
    self.pages = pages
    self.clock = clock
    self.logger = logger
    log = LimitedLog(logger)
    let counters = SignalingCounters()
    self.counters = counters
    admission = ConnectionAdmission(
      limits: configuration.limits.admission, proxies: configuration.proxies, counters: counters)
    pageRates = PageRates(
      perSecond: configuration.limits.addressRequestsPerSecond, burst: configuration.limits.addressRequestBurst,
      proxies: configuration.proxies)
    shares = UserShares(limits: configuration.limits.userShare)
    slowReaders = SlowReaders(limits: configuration.limits.backlog)
    broker = SharedBroker(loops: Array(group.makeIterator()), counters: counters)
  }

  /// Applies limits, origins and times of another configuration. Open connections keep their own limits.
  func use(_ configuration: SignalingServer.Configuration) {
    current.set(configuration)
    admission.setLimits(configuration.limits.admission)
    pageRates.set(
      perSecond: configuration.limits.addressRequestsPerSecond, burst: configuration.limits.addressRequestBurst)
    shares.setLimits(configuration.limits.userShare)
    slowReaders.setLimits(configuration.limits.backlog)
  }
}
