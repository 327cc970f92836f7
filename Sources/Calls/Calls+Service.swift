import Contract
import MediaModel

/// What the app's back end hears (protocol section 11).
extension Calls {
  mutating func tellService(_ channel: Channel, _ event: EventMessage) {
    if configuration.hasWebhooks { effects.append(.webhook(channel, event)) }
  }
}
