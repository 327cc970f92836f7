import Contract
import NIOCore
import STOMP

@testable import STOMPFront

/// The frames do not depend on how the stream was cut.
func readSTOMP(_ input: UnsafeMutableRawBufferPointer) {
  for version in Version.allCases {
    for limits in [FrameLimits.beforeLogin, FrameLimits()] {
      let whole = Result { try frames(in: input.octets, version, limits, cut: input.count) }
      let cut = Result { try frames(in: input.octets, version, limits, cut: input.count / 2) }
      switch (whole, cut) {
      case (.success(let one), .success(let other)): precondition(one == other)
      case (.failure, .failure): break
      default: fatalError("the cut decides whether the stream is read")
      }
    }
  }
  _ = HeartBeat(header: input.text)
}

private func frames(
  in bytes: [UInt8], _ version: Version, _ limits: FrameLimits, cut: Int
) throws(FrameError) -> [Frame] {
  var decoder = FrameDecoder(version: version, limits: limits)
  var frames: [Frame] = []
  for piece in [bytes[..<cut], bytes[cut...]] {
    var piece = ByteBuffer(bytes: piece)
    decoder.append(&piece)
    while let frame = try decoder.next() { frames.append(frame) }
  }
  return frames
}

/// A destination, a line feed and a body.
func readRequest(_ input: UnsafeMutableRawBufferPointer) {
  let parts = input.split(separator: UInt8(ascii: "\n"), maxSplits: 1, omittingEmptySubsequences: false)
  guard parts.count == 2 else { return }
  let frame = Frame(
    .send, ["destination": String(decoding: parts[0], as: UTF8.self)], body: ByteBuffer(bytes: parts[1]))
  guard case .request(let path)? = Destination(of: frame) else { return }
  _ = try? RequestReader(keysBody: 1 << 20, body: 64 << 10).request(path, frame.body)
}
