import CallMessages
import Contract
import JSON
import MediaModel
import OutboundHTTP
import Synchronization

/// Asks the app's back end which users a user may reach (protocol section 7). After any failure there are none.
final class Authorizer: Sendable {
  struct Statistics {
    var answered: UInt64 = 0
    /// No answer in time, or an unreadable one.
    var failed: UInt64 = 0
    /// Not asked, because too many questions were under way.
    var overloaded: UInt64 = 0
  }

  struct Answer: Sendable {
    enum Source: String, Sendable {
      case backEnd = "answered"
      case failure = "failed"
      case overload = "overloaded"
    }
    var allowed: Set<UserID>
    var source: Source
  }

  private struct State {
    var underWay = 0
    var statistics = Statistics()
  }

  static let maximumUnderWay = 256
  private static let maximumAnswer = 1 << 20

  private let requests: SignedRequests
  private let time: Duration
  private let state = Mutex(State())

  init(_ requests: SignedRequests, time: Duration) {
    self.requests = requests
    self.time = time
  }

  var statistics: Statistics { state.withLock { $0.statistics } }

  /// The users of `to` that the back end allows.
  /// - Parameter traceparent: the header of this name.
  func allowed(
    _ action: Question.Action, from: UserID, to: [UserID], traceparent: String? = nil
  ) async -> Answer {
    let hasRoom = state.withLock { state in
      guard state.underWay < Self.maximumUnderWay else {
        state.statistics.overloaded &+= 1
        return false
      }
      state.underWay += 1
      return true
    }
    guard hasRoom else { return Answer(allowed: [], source: .overload) }
    let allowed = await ask(AuthorizeQuestion(action: action.rawValue, from: from, to: to), traceparent)
    state.withLock { state in
      state.underWay -= 1
      if allowed == nil { state.statistics.failed &+= 1 } else { state.statistics.answered &+= 1 }
    }
    guard let allowed else { return Answer(allowed: [], source: .failure) }
    return Answer(allowed: allowed.intersection(to), source: .backEnd)
  }

  private func ask(_ question: AuthorizeQuestion, _ traceparent: String?) async -> Set<UserID>? {
    let headers = traceparent.map { [("traceparent", $0)] } ?? []
    guard let body = try? JSONCoding.encode(question),
      let answer = try? await requests.post(body, headers: headers, timeout: time, answer: Self.maximumAnswer),
      answer.status == 200
    else { return nil }
    return try? JSONCoding.decode(AuthorizeAnswer.self, from: answer.body).allowed
  }
}

struct AuthorizeQuestion: Encodable {
  var action: String
  var from: UserID
  var to: [UserID]
}

/// `{"allowed":["bob"]}`, or only the array. Strings that are not user ids are ignored.
struct AuthorizeAnswer: Decodable {
  var allowed: Set<UserID>

  private enum CodingKeys: String, CodingKey { case allowed }

  init(from decoder: any Decoder) throws {
    let names: [String]
    if let container = try? decoder.container(keyedBy: CodingKeys.self) {
      names = try container.decode([String].self, forKey: .allowed)
    } else {
      names = try decoder.singleValueContainer().decode([String].self)
    }
    allowed = Set(names.compactMap { UserID($0) })
  }
}
