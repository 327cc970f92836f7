/// The rules of protocol sections 3 to 8 and 11 that a simulated world keeps, by name.
enum Check: Int, CaseIterable {
  // Members and rings.
  case oneDeviceAnswers, ringEndsOnce, memberFollowsTable, cameInByRequest, onlyInitiatorEnds, nobodyIsRemoved
  case numberIsNew, oneCallIsHeard, countsAreRight, roleMayStart, drainingStartsNothing
  case onlyAllowedAreRung
  // Events.
  case everyEntitledDevice, nobodyElse, inOrder, unacknowledgedComesAgain, acknowledgedIsOver, stateComesFirst
  case presenceIsTold, topicIsTold, webhooksTell, waitingIsTold, revisionRises
  // Keys.
  case listIsJoined, envelopeIsForListed, oneEpochWaits, epochNeverGoesBack, oneListANumber, firstAnswerWins
  case supersededIsOver, nobodyBlocks, leaderIsLowest, fromIsServers, queueEmpties
  case listsAreChained, storedBeforeAnnounced, confirmationsAdd, joinKeysAreNewest
  // Recordings.
  case storedWithConsent, starterIsThere
  // Time, disk and history.
  case noTimerIsLeft, nothingIsLeft, confirmedIsStored, restartTells, historyAgrees
  case settles
  // Messages between people and calls.
  case requestIsAnswered, peopleFollowCalls, callsFollowPeople, deviceSeesMembers, messagesAreReadable, noGapStays
}

/// The findings in one world: the first rule that did not hold, and how often each was checked.
final class Verdict {
  private(set) var failure: (check: Check, what: String)?
  private(set) var looked = [Int](repeating: 0, count: Check.allCases.count)

  func require(_ check: Check, _ holds: @autoclosure () -> Bool, _ what: @autoclosure () -> String) {
    looked[check.rawValue] += 1
    if failure == nil, !holds() { failure = (check, what()) }
  }
}
