/// A possible fault of a server: each breaks one rule on purpose, to see that an invariant catches it.
enum Mutation: CaseIterable {
  case dropsEvent, sendsToAnother, swapsEvents, repeatsEvent, losesStatesOfMembers
  case secondDeviceAnswers, ringsOnTwice, swapsState, letsStrangerIn, reusesNumber, letsStrangerEnd, removesMember
  case resurrectsEnvelope, keepsEnvelope, forgesSender, envelopeForUnlisted, dropsEnvelopeAtRestart
  case lowersEpoch, makesTwoLists, listsAbsent, letsOneBlock, namesAnotherLeader, takesSecondAnswer
  case keepsTimer, keepsMembership, forgetsStoreChange, keepsNumbersAtRestart, losesMemberAtRestart
  case wrongOutcome, forgetsStay
  case breaksChain, forgetsEpoch, losesEpochAtRestart, forgesConfirmation, keepsOldJoinKey
  case losesUnacknowledged, greetsWithoutState, hidesPresence, dropsPublication, dropsWebhook, swapsWebhooks
  case ignoresRole, startsWhileDraining, ignoresAnswer, speaksInTwoCalls, beginsTwoEpochs, stopsTimers
  case keepsRevision
  case losesMessage, repeatsMessage, swapsMessages, losesLetter, takesRepeats
  case dropsWaiting, skipsListener, tellsWaitingAgain, reordersWaiting, waitsOn
  case storesTooEarly, storesOn

  /// Whether it is a fault in recording calls.
  var isOfRecording: Bool { self == .storesTooEarly || self == .storesOn }

  /// Whether it is a fault in sending the waiting changes of a large call.
  var isOfWaiting: Bool {
    switch self {
    case .dropsWaiting, .skipsListener, .tellsWaitingAgain, .reordersWaiting, .waitsOn: true
    default: false
    }
  }

  /// Whether it is a fault of the network between people and calls.
  var isOfMail: Bool {
    switch self {
    case .losesMessage, .repeatsMessage, .swapsMessages, .losesLetter, .takesRepeats: true
    default: false
    }
  }

  /// The invariants that may catch it.
  var caughtBy: Set<Check> {
    switch self {
    case .dropsEvent:
      [.everyEntitledDevice, .inOrder, .ringEndsOnce, .unacknowledgedComesAgain, .stateComesFirst, .confirmationsAdd]
    case .sendsToAnother: [.nobodyElse, .inOrder, .ringEndsOnce]
    case .swapsEvents, .repeatsEvent: [.inOrder, .unacknowledgedComesAgain, .acknowledgedIsOver, .stateComesFirst]
    case .losesStatesOfMembers: [.everyEntitledDevice]
    case .secondDeviceAnswers: [.oneDeviceAnswers, .cameInByRequest]
    case .ringsOnTwice: [.ringEndsOnce, .everyEntitledDevice, .memberFollowsTable]
    case .swapsState: [.memberFollowsTable]
    case .letsStrangerIn: [.cameInByRequest]
    case .reusesNumber: [.numberIsNew, .cameInByRequest]
    case .letsStrangerEnd: [.onlyInitiatorEnds]
    case .removesMember: [.nobodyIsRemoved]
    case .resurrectsEnvelope: [.acknowledgedIsOver, .supersededIsOver]
    case .keepsEnvelope: [.queueEmpties, .acknowledgedIsOver, .supersededIsOver, .confirmedIsStored]
    case .forgesSender: [.fromIsServers]
    case .envelopeForUnlisted: [.envelopeIsForListed, .nobodyElse, .inOrder]
    case .dropsEnvelopeAtRestart: [.unacknowledgedComesAgain]
    case .lowersEpoch: [.epochNeverGoesBack]
    case .makesTwoLists: [.oneListANumber]
    case .listsAbsent: [.listIsJoined, .oneListANumber]
    case .letsOneBlock: [.nobodyBlocks]
    case .namesAnotherLeader: [.leaderIsLowest, .nobodyElse]
    case .takesSecondAnswer: [.firstAnswerWins]
    case .keepsTimer: [.noTimerIsLeft]
    case .keepsMembership: [.nothingIsLeft]
    case .forgetsStoreChange: [.confirmedIsStored, .historyAgrees]
    case .keepsNumbersAtRestart: [.restartTells]
    case .losesMemberAtRestart: [.restartTells]
    case .wrongOutcome, .forgetsStay: [.historyAgrees]
    case .breaksChain: [.listsAreChained]
    case .forgetsEpoch: [.storedBeforeAnnounced, .confirmedIsStored]
    case .losesEpochAtRestart: [.oneListANumber, .restartTells, .epochNeverGoesBack, .listsAreChained]
    case .forgesConfirmation: [.confirmationsAdd]
    case .keepsOldJoinKey: [.joinKeysAreNewest]
    case .losesUnacknowledged: [.unacknowledgedComesAgain]
    case .greetsWithoutState: [.stateComesFirst]
    case .hidesPresence: [.presenceIsTold]
    case .dropsPublication: [.topicIsTold]
    case .dropsWebhook, .swapsWebhooks: [.webhooksTell]
    case .ignoresRole: [.roleMayStart]
    case .startsWhileDraining: [.drainingStartsNothing]
    case .ignoresAnswer: [.onlyAllowedAreRung]
    case .speaksInTwoCalls: [.oneCallIsHeard]
    case .beginsTwoEpochs: [.oneEpochWaits]
    case .stopsTimers: [.settles, .nobodyBlocks]
    case .keepsRevision: [.revisionRises]
    case .storesTooEarly, .storesOn: [.storedWithConsent]
    case .dropsWaiting, .waitsOn: [.waitingIsTold, .topicIsTold, .webhooksTell]
    case .skipsListener: [.waitingIsTold]
    case .tellsWaitingAgain, .reordersWaiting: [.inOrder, .topicIsTold, .webhooksTell]
    case .losesMessage, .repeatsMessage, .swapsMessages:
      [
        .requestIsAnswered, .peopleFollowCalls, .callsFollowPeople, .deviceSeesMembers, .settles, .presenceIsTold,
        .queueEmpties, .topicIsTold, .oneCallIsHeard,
      ]
    // A very old message, or one that keeps others waiting forever, may break any rule.
    case .losesLetter, .takesRepeats: Set(Check.allCases)
    }
  }
}
