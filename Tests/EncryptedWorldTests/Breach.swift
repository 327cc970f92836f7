/// A broken invariant of a call with real keys. The invariants must hold whatever anybody does.
enum Breach: Error {
  /// A device opened a frame of an epoch on whose list it was not, or in another stay.
  case opensUnlisted
  /// A list has a stay that was already over.
  case listsGone
  case twoLists
  case keyAndNonceRepeat
  /// A frame passed for another participant's.
  case passesForAnother
  case doesNotConverge
  case isNotHeard
  case mediaGap
  /// An honest client refused something from an honest server, or warned of it.
  case refusesHonest
  case changedKeyGetsEnvelope
  case ghostIsNotSeen
  case ghostHears
  /// A device posted envelopes for a past epoch or stay.
  case sealsForWhatIsOver
  /// An envelope signed by an honest device does not have the secret that the device uses for that epoch.
  case sealsAnotherSecret
  /// Devices that were shown different lists understand each other.
  case splitIsUnderstood
  /// The world itself is wrong.
  case broken

  static func unless(_ holds: Bool, _ breach: Breach) throws { if !holds { throw breach } }
}

/// A fault of a client or of the server. Each breaks one rule on purpose, to test that it is caught.
enum Weakness: CaseIterable {
  /// Gives keys to devices that have left.
  case sharesWithThoseWhoLeft
  /// Gives a newcomer the earlier keys.
  case sharesThePast
  /// Comes back after a lost connection with its old keys, and counts its frames from 0 again.
  case countsAnew
  /// Keeps sending under the first key that it got.
  case neverSwitches
  /// Sends nothing from the announcement of an epoch until its switch.
  case pausesForRotation
  /// Accepts any key as the device's.
  case trustsWhatComes
  /// Reports nothing of what it sees.
  case hidesWarnings
  /// Posts its envelopes even if their epoch is over by then.
  case sealsLate
  /// Keeps sending, whatever its list says.
  case neverStops
  /// The server's fault: keeps devices that have left on the list.
  case keepsThoseWhoLeft

  var breach: Breach {
    switch self {
    case .sharesWithThoseWhoLeft, .sharesThePast: .opensUnlisted
    case .countsAnew: .keyAndNonceRepeat
    case .neverSwitches: .doesNotConverge
    case .pausesForRotation: .mediaGap
    case .trustsWhatComes: .changedKeyGetsEnvelope
    case .hidesWarnings: .ghostIsNotSeen
    case .sealsLate: .sealsForWhatIsOver
    case .neverStops: .ghostHears
    case .keepsThoseWhoLeft: .listsGone
    }
  }
}
