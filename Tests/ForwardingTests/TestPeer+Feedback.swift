import MediaModel
import RTP

@testable import Forwarding

/// The transport-wide feedback of a receiver: a report each 50 ms, as browsers send it.
struct TestFeedback {
  var recorder = TransportFeedbackRecorder()
  /// The numbers that came, in their order, with the SSRC of each packet.
  var arrivals: [(number: UInt16, ssrc: UInt32)] = []
  /// Reports get lost on their way, or are never sent.
  var isSilent = false
}

extension TestPeer {
  /// Offers transport-wide feedback on all slots; the caller configures the SFU.
  func reportArrivals() {
    configuration.extensions.transportSequence = UInt8(13 + configuration.participant % 2)
    for i in configuration.slots.indices { configuration.slots[i].isReported = true }
  }

  func noteNumber(of header: RTPHeader, _ extensions: [UInt8: [UInt8]], now: Instant) {
    guard let number = extensions[configuration.extensions.transportSequence], number.count == 2 else { return }
    let value = UInt16(number[0]) << 8 | UInt16(number[1])
    feedback.arrivals.append((value, header.ssrc))
    feedback.recorder.received(value, now: Int64(now.nanoseconds / 1_000))
  }

  func sendFeedback() {
    guard !feedback.isSilent else { return }
    while feedback.recorder.isDue {
      var bytes = [UInt8](repeating: 0, count: 1_000)
      let length = bytes.withUnsafeMutableBytes { feedback.recorder.write(sender: 1, media: 1, into: $0) }
      guard length > 0 else { return }
      sendRTCP(Array(bytes[..<length]))
    }
  }
}
