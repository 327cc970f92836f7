import Octets
import Testing

struct TranscriptTests {
  @Test func numbersAreBigEndianAndPartsStandBehindTheirLength() {
    var transcript = Transcript("ab")
    transcript.append(0x0102_0304 as UInt32)
    transcript.append(0x05 as UInt64)
    transcript.appendPrefixed("xyz")
    transcript.append([9, 9] as [UInt8])
    #expect(transcript.bytes == [0x61, 0x62, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 5, 0, 3, 0x78, 0x79, 0x7a, 9, 9])
  }

  /// Two devices or two keys never give the same bytes by moving the boundary between parts.
  @Test func aMovedBorderGivesOtherBytes() {
    let a = Transcript.device(user: "ab", device: "c", wrap: ("x", [1, 2]), sign: ("y", [3]))
    let b = Transcript.device(user: "a", device: "bc", wrap: ("x", [1, 2]), sign: ("y", [3]))
    let c = Transcript.device(user: "ab", device: "c", wrap: ("x", [1]), sign: ("2y", [3]))
    #expect(Set([a.bytes, b.bytes, c.bytes]).count == 3)
  }

  @Test func anEntryThatHasNotJoinedHasZeros() {
    var row = Transcript()
    row.appendEntry(
      user: "u", device: "d", participant: 0, fingerprint: [UInt8](repeating: 7, count: 32), joinId: nil,
      joinKeyHash: nil)
    #expect(row.bytes.count == 3 + 3 + 4 + 32 + 16 + 32)
    #expect(row.bytes.suffix(48).allSatisfy { $0 == 0 })
  }

  @Test func aKeyIDNamesParticipantTrackAndEpoch() {
    let id = FrameKeyID(participant: 7, track: 3, epoch: 0x1_02)
    #expect(id.rawValue == 7 << 16 | 3 << 8 | 2)
    #expect(FrameKeyID(rawValue: id.rawValue) == id)
    #expect(FrameKeyID(rawValue: 0x0302) == nil)
    #expect(FrameKeyID(rawValue: 1 << 48) == nil)
  }
}
