/// A broken invariant of a call with real keys, which must hold whatever anybody does.
enum Breach: Error {
  /// A device opened a frame of an epoch that it was not on the list of, or in another stay.
  case opensUnlisted
  /// A list holds a stay that was over before.
  case listsGone
  case twoLists
  case keyAndNonceRepeat
  /// A frame passed for another participant's.
  case passesForAnother
  case doesNotConverge
  case isNotHeard
  case mediaGap
  /// An honest client refused what an honest server brought, or warned of it.
  case refusesHonest
  case changedKeyGetsEnvelope
  case ghostIsNotSeen
  case ghostHears
  /// A device posted envelopes for an epoch or a stay that is over.
  case sealsForWhatIsOver
  /// An envelope that an honest device signed does not hold the secret that the device uses for that epoch.
  case sealsAnotherSecret
  /// Devices that were shown different lists understand each other.
  case splitIsUnderstood
  /// The world itself is wrong.
  case broken

  static func unless(_ holds: Bool, _ breach: Breach) throws { if !holds { throw breach } }
}

/// A fault of a client or of the server: each breaks one rule on purpose, to test that it is caught.
enum Weakness: CaseIterable {
  /// Gives keys to devices that have gone.
  case sharesWithThoseWhoLeft
  /// Gives a joiner the keys from before.
  case sharesThePast
  /// Comes back from a lost connection with the keys that it had, and counts its frames from 0 again.
  case countsAnew
  /// Sends on under the first key that it got.
  case neverSwitches
  /// Sends nothing from the announcement of an epoch until its switch.
  case pausesForRotation
  /// Takes any key that comes for the device's.
  case trustsWhatComes
  /// Tells nobody of what it sees.
  case hidesWarnings
  /// Posts its envelopes though their epoch may be over by then.
  case sealsLate
  /// Sends on whatever its list says.
  case neverStops
  /// The server's fault: keeps devices that have gone on the list.
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
