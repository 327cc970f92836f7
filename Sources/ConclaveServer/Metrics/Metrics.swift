import Calls
import Contract
import Forwarding
import LinuxIO
import MediaModel
import MediaPlane
import Listening
import ReelStore

/// The text of `/metrics`, in Prometheus' exposition format 0.0.4. It contains nothing about a person.
enum Metrics {
  static func text(
    media workers: [WorkerStatistics], signaling: SignalingStatistics?, calls: (calls: Int, participants: Int),
    lastingLinks: Int, outcomes: CallCounts, waitingForDisk: Int,
    backlog: (waiting: Int, refused: [CommandQueue.Overflow: UInt64]), guests: GuestEntry.Counts?,
    store: StoreHealth.Statistics, recordings: (RecordingStatistics, AlertCounts)?, reels: ReelStatistics? = nil,
    backEnd: BackEnd?, webPush: WebPush?,
    spans: SpanExporter?,
    measured: Measurements.Values, rooms: RoomCounts? = nil, process: ProcessFacts
  ) -> String {
    var page = Page()
    page.add(workers)
    page.gauge("conclave_calls", "Calls that run.", calls.calls)
    page.gauge("conclave_participants", "Devices that are joined in them.", calls.participants)
    page.gauge("conclave_lasting_links", "Links that were made without a call and have not expired.", lastingLinks)
    page.add(outcomes)
    page.gauge("conclave_control_waiting_requests", "Requests that wait for the control plane.", backlog.waiting)
    page.counter(
      "conclave_control_refused_total", "Requests answered with server.busy, by whose bound was reached.",
      CommandQueue.Overflow.allCases.map { ("bound=\"\($0)\"", backlog.refused[$0, default: 0]) })
    if let guests {
      page.counter(
        "conclave_guest_tokens_total", "Requests for tokens of guests, by what became of them.",
        [
          ("result=\"let-in\"", guests.letIn), ("result=\"renewed\"", guests.renewed),
          ("result=\"refused\"", guests.refused), ("result=\"limited\"", guests.limited),
          ("result=\"waiting\"", guests.waiting),
        ])
    }
    if let signaling { page.add(signaling) }
    page.gauge(
      "conclave_store_waiting_effects", "Replies, events and commands to workers that wait for the disk.",
      waitingForDisk)
    page.add(store)
    if let (recordings, alerts) = recordings { page.add(recordings, alerts) }
    if let reels { page.add(reels) }
    if let webhooks = backEnd?.webhooks { page.add(webhooks.statistics) }
    if let authorizer = backEnd?.authorizer { page.add(authorizer.statistics) }
    if let webPush { page.add(webPush.statistics) }
    if let spans { page.add(spans.statistics) }
    page.add(measured)
    if let rooms { page.add(rooms) }
    page.add(process)
    return page.text
  }
}

extension Metrics.Page {
  fileprivate mutating func add(_ workers: [WorkerStatistics]) {
    let sums: [(String, String, (WorkerStatistics) -> UInt64)] = [
      ("received_packets", "Datagrams received.", { $0.forwarding.datagramsIn }),
      ("received_bytes", "Bytes received.", { $0.forwarding.bytesIn }),
      ("sent_packets", "Datagrams sent.", { $0.forwarding.datagramsOut }),
      ("sent_bytes", "Bytes sent.", { $0.forwarding.bytesOut }),
      ("forwarded_packets", "RTP packets sent on to a receiver.", { $0.forwarding.forwarded }),
      ("relayed_packets", "RTP packets handed to another worker of the same call.", { $0.forwarding.relayed }),
      ("layer_switches", "Slots that went over to another layer of their track.", { $0.forwarding.layerSwitches }),
      (
        "feedback_received", "Transport-wide reports of receivers on what arrived.", { $0.forwarding.feedbackReceived }
      ),
      ("retransmitted_packets", "RTP packets sent again.", { $0.forwarding.retransmitted }),
      ("nacks_sent", "Sequence numbers asked for.", { $0.forwarding.nacksSent }),
      ("nacks_received", "Sequence numbers that receivers asked for.", { $0.forwarding.nacksReceived }),
      ("key_frame_requests_sent", "Key frames asked for.", { $0.forwarding.keyFrameRequestsSent }),
      (
        "key_frame_requests_received", "Key frames that receivers asked for.",
        { $0.forwarding.keyFrameRequestsReceived }
      ),
      (
        "arrival_reports_sent", "Transport-wide reports on the packets of publishers.",
        { $0.forwarding.arrivalReportsSent }
      ),
      (
        "arrivals_unreported",
        "Packets of publishers that no transport-wide report covers: too late, or a number twice.",
        { $0.forwarding.arrivalsUnreported }
      ),
      ("probes", "Probes for a higher rate to a receiver.", { $0.forwarding.probes }),
      ("probe_packets", "Copies and padding sent for probes.", { $0.forwarding.fillers }),
      (
        "paced_packets", "Packets that waited, as a receiver's path was too narrow for them at once.",
        { $0.forwarding.paced }
      ),
      (
        "withheld_videos", "Videos that paused, as a receiver's path had no room for them.",
        { $0.forwarding.withheld }
      ),
      ("shed_videos", "Videos that paused because the worker could not keep up.", { $0.forwarding.shed }),
      (
        "histories_halved", "Streams that lost half of their packets for retransmission, to bound the memory of all.",
        { $0.forwarding.historiesHalved }
      ),
      (
        "checks_sent", "Connectivity checks of addresses that clients want their media at.",
        { $0.forwarding.checksSent }
      ),
      (
        "sframe_unread", "First packets of frames whose SFrame header could not be read.",
        { $0.forwarding.sframeUnread }
      ),
      (
        "visits", "Peers, tracks, slots and deadlines looked at for slots, speakers and timers.",
        { $0.forwarding.visits }
      ),
      ("kernel_dropped_packets", "Datagrams that came faster than they were read.", { UInt64($0.receiveDrops) }),
    ]
    for (name, help, value) in sums {
      counter("conclave_media_\(name)_total", help, workers.enumerated().map { ("worker=\"\($0)\"", value($1)) })
    }
    counter(
      "conclave_media_dropped_packets_total", "Packets not used, by reason.",
      DropReason.allCases.map { reason in
        ("reason=\"\(reason)\"", workers.reduce(0) { $0 &+ $1.forwarding.drops(reason) })
      })
    counter(
      "conclave_media_unsent_packets_total", "Datagrams that the system did not take, by reason.",
      SendFailure.allCases.map { failure in
        ("reason=\"\(failure)\"", workers.reduce(0) { $0 &+ $1.socket[failure] })
      })
    add(workers.map(\.passes))
    add(workers.map(\.forwarding.estimates))
    add(workers.map(\.tcp))
    gauge(
      "conclave_media_video_share_ratio",
      "Part of the video that a worker forwards: below 1 while it cannot keep up.",
      workers.enumerated().map { ("worker=\"\($0)\"", $1.videoShare) })
    gauge(
      "conclave_media_history_bytes", "Memory of packets kept for retransmission.",
      workers.enumerated().map { ("worker=\"\($0)\"", Double($1.forwarding.historyBytes)) })
    gauge("conclave_media_peers", "Participants' transports.", workers.reduce(0) { $0 + $1.forwarding.peers })
    gauge(
      "conclave_media_connected_peers", "Those to which media flows.",
      workers.reduce(0) { $0 + $1.forwarding.connected }
    )
  }

  fileprivate mutating func add(_ outcomes: CallCounts) {
    counter(
      "conclave_calls_ended_total", "Calls that ended, by the reason that clients were told.",
      EndReason.allCases.map { ("reason=\"\($0.rawValue)\"", outcomes.ends[$0, default: 0]) })
    counter(
      "conclave_joins_total", "Participants that joined, by what became of their media.",
      CallCounts.JoinOutcome.allCases.map { ("outcome=\"\($0.rawValue)\"", outcomes.joins[$0, default: 0]) })
  }

  private mutating func add(_ workers: [PassDurations]) {
    let bounds = PassDurations.bounds
    histogram(
      "conclave_media_pass_seconds", "CPU time of passes of a worker in which it forwards no packet, by purpose.",
      bounds: bounds.indices.map { "\(Double(bounds[$0]) / 1e6)" },
      Pass.allCases.map { pass in
        let counts = (0...bounds.count).map { place in workers.reduce(0) { $0 &+ $1[pass].counts[place] } }
        let sum = workers.reduce(0) { $0 + Double($1[pass].nanoseconds) } / 1e9
        return ("pass=\"\(pass)\"", counts, sum)
      })
  }

  private mutating func add(_ estimates: [RateHistogram]) {
    histogram(
      "conclave_media_estimate_bytes",
      "Estimated rates of receivers' paths in bytes a second, taken once a second from each that reports.",
      bounds: RateHistogram.bounds.indices.map { "\(RateHistogram.bounds[$0] / 8)" },
      estimates.enumerated().map { worker, histogram in
        ("worker=\"\(worker)\"", histogram.counts.indices.map { histogram.counts[$0] }, Double(histogram.sum) / 8)
      })
  }

  private mutating func add(_ tcp: [TCPCounters]) {
    gauge("conclave_media_tcp_connections", "Open TCP connections for media.", tcp.reduce(0) { $0 + $1.open })
    counter(
      "conclave_media_tcp_accepted_total", "TCP connections taken for media.", tcp.reduce(0) { $0 &+ $1.accepted })
    counter(
      "conclave_media_tcp_refused_total", "TCP connections not taken, by reason.",
      TCPCounters.Rejection.allCases.map { reason in ("reason=\"\(reason)\"", tcp.reduce(0) { $0 &+ $1[reason] }) })
    counter(
      "conclave_media_tcp_endings_total", "TCP connections that ended, by cause.",
      TCPCounters.Ending.allCases.map { cause in ("cause=\"\(cause)\"", tcp.reduce(0) { $0 &+ $1[cause] }) })
    counter(
      "conclave_media_tcp_unsent_packets_total", "Datagrams that a TCP connection did not take, by reason.",
      TCPCounters.Loss.allCases.map { reason in ("reason=\"\(reason)\"", tcp.reduce(0) { $0 &+ $1[reason] }) })
  }

  fileprivate mutating func add(_ signaling: SignalingStatistics) {
    gauge("conclave_signaling_connections", "Open TCP connections.", signaling.connections)
    gauge("conclave_signaling_sessions", "Signed-in STOMP connections.", signaling.sessions)
    gauge(
      "conclave_signaling_backlog_bytes", "Bytes that wait for clients that read slowly.", signaling.backlogBytes)
    counter("conclave_signaling_accepted_total", "Connections accepted.", signaling.accepted)
    counter("conclave_signaling_received_frames_total", "STOMP frames received.", signaling.framesIn)
    counter("conclave_signaling_sent_frames_total", "STOMP frames sent.", signaling.framesOut)
    counter("conclave_signaling_writes_total", "Writes to connections, each with one frame or more.", signaling.flushes)
    counter("conclave_signaling_requests_total", "Requests handled.", signaling.requests)
    counter("conclave_signaling_messages_total", "An app's own messages accepted.", signaling.messages)
    counter(
      "conclave_signaling_deliveries_total", "An app's own messages delivered to subscribers.", signaling.deliveries)
    if let expiry = signaling.certificateExpiry {
      gauge(
        "conclave_certificate_expiry_seconds", "When the TLS certificate ends, in seconds since 1970.",
        Int(expiry.milliseconds / 1_000))
    }
    counter("conclave_http_requests_total", "HTTP requests answered.", signaling.httpRequests)
    counter(
      "conclave_signaling_endings_total", "STOMP connections that ended, by cause.",
      SignalingStatistics.Ending.all.map { ("cause=\"\($0.rawValue)\"", signaling.endings[$0, default: 0]) })
    counter(
      "conclave_signaling_dropped_total", "Frames and messages dropped, by reason.",
      SignalingStatistics.Drop.all.map { ("reason=\"\($0.rawValue)\"", signaling.drops[$0, default: 0]) })
  }
}
