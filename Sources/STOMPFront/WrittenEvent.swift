import CallMessages
import Connections
import Contract
import STOMP

/// The event that was last written on an event loop, as the message that it became. The receivers of an event are adjacent, so its headers and its body are put
/// together once for each version of STOMP.
final class WrittenEvent {
  private var last: (event: EncodedEvent, message: SharedMessage)?

  /// The message of this event, which `keep` gets back.
  func take(_ event: EncodedEvent) -> SharedMessage {
    if let last = exchange(&last, with: nil), last.event === event { return last.message }
    return SharedMessage(
      destination: event.channel.destination,
      headers: ["content-type": "application/json", "event": event.name.rawValue], body: event.body)
  }

  func keep(_ message: SharedMessage, of event: EncodedEvent) { last = (event, message) }
}
