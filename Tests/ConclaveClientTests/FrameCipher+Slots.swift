import MediaModel
import Octets

@testable import ConclaveClient

extension FrameCipher {
  /// Opens a frame in a slot of its track, or a message from its sender, as delivered by an honest server.
  func openWhereItBelongs(_ sealed: [UInt8], metadata: [UInt8] = []) throws(FrameCipherError) -> ([UInt8], Opened) {
    guard let header = try? sealed.withUnsafeBytes({ try SFrameHeader(parsing: $0.bytes) }),
      let id = FrameKeyID(rawValue: header.keyID)
    else { throw .notAuthentic }
    guard id.track > 0 else { return try open(sealed, from: .message(from: id.participant), metadata: metadata) }
    let track = TrackID(participant: id.participant, index: id.track)
    let now = Instant(nanoseconds: 0)
    assign([track.description: track], now: now)
    return try open(sealed, from: .slot(track.description, now: now), metadata: metadata)
  }
}
