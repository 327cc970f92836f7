import RTP
import Testing

@testable import loadtest

/// The layered cameras of the load test, and how it determines whether a frame can be decoded.
struct CameraLayerTests {
  private let key = TrackKey(participant: 1, track: 1)

  /// Frames of three layers in turn; `keyFrames` are the turns in which all have a key frame.
  private func frames(_ turns: Int, keyFrames: Set<Int> = [0]) -> [LayeredFrame] {
    let counter = FrameCounter()
    var layers = CameraLayer.all.indices.map { LayerFrames(rank: $0, counter: counter) }
    return (0..<turns).flatMap { turn in layers.indices.map { layers[$0].next(isKeyFrame: keyFrames.contains(turn)) } }
  }

  /// The server's parser reads the frame's values from them.
  @Test func descriptorsSayTheFramesLayersAndReferences() throws {
    for rank in CameraLayer.all.indices {
      var structure = DependencyStructure()
      var isFirstFrame = true
      for frame in frames(40, keyFrames: [0, 21]) where frame.rank == rank {
        for (isFirst, isLast) in [(true, false), (false, false), (false, true)] {
          let element = frame.descriptor(isFirst: isFirst, isLast: isLast)
          // Longer ones would need two-byte headers (RFC 8285 section 4.2).
          #expect(element.count <= 16)
          let read = try DependencyDescriptor(parsing: element.span.bytes, by: &structure)
          #expect(read.startsFrame == isFirst && read.endsFrame == isLast)
          #expect(read.frameNumber == UInt16(truncatingIfNeeded: frame.number))
          #expect(read.isKeyFrame == (frame.reference == nil && isFirst))
          #expect(read.frame.temporalLayer == frame.temporalLayer)
          #expect(read.frame.referenceCount == (frame.reference == nil ? 0 : 1))
          if let reference = frame.reference { #expect(read.frame.reference(0) == UInt16(frame.number - reference)) }
          // T0 is in all targets, T2 only in the highest.
          #expect(read.frame.present == [0b111, 0b110, 0b100][Int(frame.temporalLayer)])
        }
        if isFirstFrame { #expect(structure.targetCount == 3 && structure.height(of: 0) == 180 << rank) }
        isFirstFrame = false
      }
    }
  }

  @Test func framesOfOneLayerCanBeDecodedWithoutItsHigherTemporalLayers() {
    for temporal in 0...2 as ClosedRange<UInt8> {
      var decodable = DecodableFrames()
      let received = frames(60).filter { $0.rank == 1 && $0.temporalLayer <= temporal }
      #expect(received.count == [15, 30, 60][Int(temporal)])
      let shown = received.count { decodable.take($0, of: key) }
      #expect(shown == received.count)
    }
  }

  /// Without a frame of T0 nothing can be decoded up to the next key frame.
  @Test func aMissingFrameSpoilsThoseThatReferToIt() {
    var decodable = DecodableFrames()
    let received = frames(20, keyFrames: [0, 12]).filter { $0.rank == 0 }
    let shown = received.indices.filter { $0 != 4 && decodable.take(received[$0], of: key) }
    #expect(shown == [0, 1, 2, 3] + Array(12..<20))
  }

  @Test func aSwitchOfLayersNeedsAKeyFrame() {
    for turn in [8, 9] {
      var decodable = DecodableFrames()
      let all = frames(20, keyFrames: [0, 8])
      let received = all.filter { $0.rank == 2 }.prefix(turn) + all.filter { $0.rank == 1 }.dropFirst(turn)
      let shown = received.count { decodable.take($0, of: key) }
      #expect(shown == (turn == 8 ? 20 : 9))
    }
  }

  @Test func aSlotWithAnotherTrackBeginsAnew() {
    var decodable = DecodableFrames()
    let received = frames(4).filter { $0.rank == 0 }
    let isFirstShown = decodable.take(received[0], of: key)
    let isOthersShown = decodable.take(received[1], of: TrackKey(participant: 2, track: 1))
    #expect(isFirstShown && !isOthersShown)
  }

  @Test func namesOfTracksAreRead() {
    #expect(TrackKey("12.3") == TrackKey(participant: 12, track: 3))
    for text in ["", "1", "1.", ".1", "1.256", "a.1", "1.2.3", "-1.1"] { #expect(TrackKey(text) == nil) }
  }
}
