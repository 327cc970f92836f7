import CallMachine
package import CallMessages
package import MediaModel
import PeopleMachine

extension Node {
  package func answer(_ inquiry: Inquiry, now: Timestamp) -> InquiryAnswer {
    switch inquiry {
    case .calls(let inquiry): control.answer(inquiry, now: now)
    case .people(let inquiry): people.answer(inquiry, now: now)
    }
  }

  /// Running calls, in no particular order; asked once, before the first command.
  package var callTallies: [CallTally] { control.tallies }
}
