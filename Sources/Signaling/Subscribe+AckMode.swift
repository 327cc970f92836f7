import Calls
import STOMP

extension Calls.Command {
  static func subscribe(_ session: SessionID, _ channel: Channel, as mode: STOMP.AckMode) -> Self {
    switch mode {
    case .auto: .subscribe(session, channel, .auto)
    case .client: .subscribe(session, channel, .client)
    case .individual: .subscribe(session, channel, .individual)
    }
  }
}
