/// The purpose of one stretch of a worker's time, packets apart.
package enum Pass: Int, CaseIterable, Sendable {
  /// Commands of the control plane, and the slots that they fill.
  case commands
  /// Speakers and slots of one call.
  case slots
  /// Peers of which some were sent reports.
  case reports
  /// Peers with other timers: NACKs, key-frame requests, DTLS, checks, consent.
  case timers
}
