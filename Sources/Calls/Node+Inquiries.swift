package import MediaModel

extension Node {
  package func answer(_ inquiry: Inquiry, now: Timestamp) -> InquiryAnswer {
    switch inquiry {
    case .calls(let inquiry): control.answer(inquiry, now: now)
    case .people(let inquiry): people.answer(inquiry, now: now)
    }
  }

  /// Running calls, in no particular order; asked once, before the first command.
  package var callTallies: [CallTally] {
    control.calls.values.map { call in
      CallTally(
        call: call.id, members: call.members.map(\.state), participants: Int(call.lastNumber), failures: call.failures)
    }
  }
}
