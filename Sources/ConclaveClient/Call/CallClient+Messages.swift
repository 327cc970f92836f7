import Contract
import MediaModel

/// Messages between participants: SFrames with track 0 after a byte that says whether they are for all or private (protocol section 6).
extension CallClient {
  private static let publicKind: UInt8 = 0
  private static let privateKind: UInt8 = 1

  func send(_ message: [UInt8], to participants: [UInt32]?, in id: CallID) async throws(SignalingError) {
    guard let cipher = calls[id]?.cipher else { throw .notInCall }
    let sealed: [UInt8]
    if let participants {
      guard let call = calls[id], let content = lend(to: call, { $0.privateContent(message, to: participants) }),
        let frame = try? cipher.seal(content, track: 0, metadata: Array("private".utf8))
      else { throw .noKey }
      sealed = [Self.privateKind] + frame
    } else {
      guard let frame = try? cipher.seal(MessagePadding.padded(message), track: 0, metadata: Array("message".utf8))
      else { throw .noKey }
      sealed = [Self.publicKind] + frame
    }
    try await perform(.inCall(id, .message(SendMessage(to: participants, body: Base64Bytes(sealed)))))
  }

  func receive(_ message: CallMessage, of id: CallID) {
    if !open(message, of: id) { calls[id]?.messages.keep(message, now: Self.now.nanoseconds) }
  }

  /// A key arrived: opens the messages that waited for it.
  func openWaiting(of id: CallID) {
    guard calls[id]?.messages.isEmpty == false else { return }
    for message in calls[id]?.messages.take(now: Self.now.nanoseconds) ?? [] where !open(message.frame, of: id) {
      calls[id]?.messages.keepAgain(message)
    }
  }

  /// A message is accepted only if the key that opens it belongs to the participant that the server names. A message
  /// that does not open, or is replayed, is dropped and counted. Returns false if its key has not arrived.
  private func open(_ message: CallMessage, of id: CallID) -> Bool {
    guard let call = calls[id] else { return true }
    guard let opened = lend(to: call, { Self.open(message, call.cipher, &$0) }) else { return false }
    switch opened {
    case .text(let body, let isPrivate):
      call.updates.yield(.message(from: message.from, body: body, isPrivate: isPrivate))
    case .dropped: calls[id]?.droppedMessages += 1
    }
    return true
  }

  /// The outcome of opening a message.
  enum OpenedMessage: Sendable, Equatable {
    case text([UInt8], isPrivate: Bool)
    case dropped
  }

  /// nil while its key has not arrived.
  static func open(_ message: CallMessage, _ cipher: FrameCipher, _ keys: inout KeyAgreement) -> OpenedMessage? {
    guard let kind = message.body.bytes.first, kind <= privateKind else { return .dropped }
    let isPrivate = kind == privateKind
    do throws(FrameCipherError) {
      let (content, opened) = try cipher.open(
        Array(message.body.bytes.dropFirst()), from: .message(from: message.from),
        metadata: Array((isPrivate ? "private" : "message").utf8))
      guard isPrivate else {
        return MessagePadding.text(of: content).map { .text($0, isPrivate: false) } ?? .dropped
      }
      let text = keys.openPrivate(content, from: message.from, epoch: opened.epoch)
      return text.map { .text($0, isPrivate: true) } ?? .dropped
    } catch {
      return error == .unknownKey ? nil : .dropped
    }
  }
}
