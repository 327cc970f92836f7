import Contract
import MediaModel

/// Messages between participants: SFrames with track 0 and the metadata "message" (protocol section 6).
extension CallClient {
  private static let metadata = Array("message".utf8)

  func send(_ message: [UInt8], to participants: [UInt32]?, in id: CallID) async throws(SignalingError) {
    guard let cipher = calls[id]?.cipher else { throw .notInCall }
    guard let body = try? cipher.seal(message, track: 0, metadata: Self.metadata) else { throw .noKey }
    try await perform(.message(id, SendMessage(to: participants, body: Base64Bytes(body))))
  }

  func receive(message sealed: [UInt8], of id: CallID) {
    if !open(sealed, of: id) { calls[id]?.messages.keep(sealed, now: Self.now.nanoseconds) }
  }

  /// A key came: messages that waited for it open now.
  func openWaiting(of id: CallID) {
    guard calls[id]?.messages.isEmpty == false else { return }
    for message in calls[id]?.messages.take(now: Self.now.nanoseconds) ?? [] where !open(message.frame, of: id) {
      calls[id]?.messages.keepAgain(message)
    }
  }

  /// Who sent it is told by the key that opens it; what does not open is dropped, and so is a repetition. False when its key has not come.
  private func open(_ sealed: [UInt8], of id: CallID) -> Bool {
    guard let call = calls[id] else { return true }
    do throws(FrameCipherError) {
      let (body, opened) = try call.cipher.open(sealed, metadata: Self.metadata)
      if opened.track == 0 { call.updates.yield(.message(from: opened.participant, body: body)) }
      return true
    } catch {
      return error != .unknownKey
    }
  }
}
