/// A refusal: one of the codes that Janus's clients know, and what to do about it.
package struct JanusError: Error, Hashable, Sendable {
  package var code: Int
  package var reason: String

  init(_ code: Code, _ reason: String) {
    self.code = code.rawValue
    self.reason = reason
  }

  /// Codes below 421 and above 439, except 499, are of the core; those from 421 to 438 and 499 of the videoroom.
  package enum Code: Int, Sendable, CaseIterable {
    case unauthorized = 403
    case unauthorizedPlugin = 405
    case unknownRequest = 453
    case invalidJSON = 454
    case notAnObject = 455
    case missingElement = 456
    case invalidPath = 457
    case noSuchSession = 458
    case noSuchHandle = 459
    case noSuchPlugin = 460
    case attachFailed = 461
    case messageFailed = 462
    case unknownDescriptionType = 464
    case invalidDescription = 465
    case invalidElement = 467
    case sessionExists = 468
    case unexpectedAnswer = 469
    case notAcceptingSessions = 472
    case tooManySessions = 490

    case roomInvalidRequest = 423
    case roomJoinFirst = 424
    case roomAlreadyJoined = 425
    case roomUnknown = 426
    case roomExists = 427
    case roomNoSuchFeed = 428
    case roomMissingElement = 429
    case roomInvalidElement = 430
    case roomInvalidDescriptionType = 431
    case roomPublishersFull = 432
    case roomUnauthorized = 433
    case roomAlreadyPublished = 434
    case roomNotPublished = 435
    case roomIDExists = 436
    case roomInvalidDescription = 437
    case roomInvalidFeed = 438
    case roomUnknownError = 499
  }
}

extension JanusError {
  /// The `error` of a core reply.
  var core: JSONTree { ["code": JSONTree(code), "reason": .text(reason)] }
  /// The data of a videoroom's reply or event.
  var room: JSONObject { ["videoroom": "event", "error_code": JSONTree(code), "error": .text(reason)] }
}
