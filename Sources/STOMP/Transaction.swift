/// An open transaction: SEND, ACK and NACK frames that wait for COMMIT.
struct Transaction: Sendable {
  let name: String
  private(set) var frames: [Frame] = []
  /// Bytes of the frames kept.
  private(set) var size = 0

  init(name: String) { self.name = name }

  mutating func append(_ frame: Frame) {
    frames.append(frame)
    size += frame.size
  }
}
