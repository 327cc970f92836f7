extension Metrics.Page {
  mutating func add(_ webhooks: Webhooks.Statistics) {
    gauge("conclave_webhooks_waiting", "Webhooks not delivered yet.", webhooks.waiting)
    counter("conclave_webhooks_delivered_total", "Webhooks that the back end took.", webhooks.delivered)
    counter("conclave_webhooks_failed_total", "POSTs of webhooks that were not taken.", webhooks.failed)
    counter(
      "conclave_webhooks_dropped_total", "Webhooks given up, by reason.",
      WebhookQueue.Drop.allCases.map { ("reason=\"\($0)\"", webhooks.drops[$0, default: 0]) })
  }

  mutating func add(_ authorizer: Authorizer.Statistics) {
    counter(
      "conclave_authorize_total", "Questions to the back end, by result.",
      [
        ("result=\"answered\"", authorizer.answered), ("result=\"failed\"", authorizer.failed),
        ("result=\"overloaded\"", authorizer.overloaded),
      ])
  }

  mutating func add(_ pushes: WebPush.Statistics) {
    gauge("conclave_push_waiting", "Web pushes not sent yet.", pushes.waiting)
    counter("conclave_push_sent_total", "Web pushes that a push service took.", pushes.sent)
    counter(
      "conclave_push_failed_total", "Tries to send a web push that failed, by reason.",
      PushPost.Failure.allCases.map { ("reason=\"\($0)\"", pushes.failed[$0, default: 0]) })
    counter(
      "conclave_push_dropped_total", "Web pushes given up, by reason.",
      PushQueue.Drop.allCases.map { ("reason=\"\($0)\"", pushes.drops[$0, default: 0]) })
  }

  mutating func add(_ measured: Measurements.Values) {
    histogram("conclave_client_round_trip_seconds", "Round trips that clients measured.", measured.roundTrip)
    histogram("conclave_client_loss_ratio", "Lost packets, as a part of 1.", measured.loss)
    histogram("conclave_client_jitter_seconds", "Jitter.", measured.jitter)
    histogram("conclave_client_freezes", "Times that a picture stood still.", measured.freezes)
    histogram("conclave_client_first_frame_seconds", "From joining to the first picture.", measured.firstFrame)
  }
}
