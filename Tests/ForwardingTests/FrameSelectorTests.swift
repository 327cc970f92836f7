import Octets
import RTP
import Testing

@testable import Forwarding

struct FrameSelectorTests {
  /// A receiver that keeps one decode target, over all frames of the browsers' streams.
  @Test(arguments: RecordedStream.names)
  func agreesWithTheRecordedStream(_ name: String) throws {
    let stream = try RecordedStream(named: name)
    try #require(stream.frames.count == stream.expected.frames.count && stream.frames.count >= 20)
    for target in stream.expected.decodeTargets.indices {
      var selector = FrameSelector(at: stream.frames[0].frame, target: target)
      for (index, expected) in stream.expected.frames.enumerated() {
        let (frame, structure) = stream.frames[index]
        try #require(UInt16(truncatingIfNeeded: frame.number) == expected.fn)
        for other in stream.expected.decodeTargets.indices where other != target {
          #expect(
            selector.canSwitch(to: other, at: frame) == expected.switch.contains([target, other]),
            "frame \(expected.fn), from \(target) to \(other)")
        }
        let isAdmitted = selector.admits(frame, wanted: target, structure)
        #expect(isAdmitted == (Array(expected.forward)[target] == "1"), "frame \(expected.fn), target \(target)")
        let next = stream.frames.dropFirst(index + 1).first?.frame
        let isLast = next?.timestamp != frame.timestamp
        let marks = isAdmitted && selector.marks(frame.dependencies, endsPicture: isLast, structure)
        #expect(marks == (Array(expected.mark)[target] == "1"), "frame \(expected.fn), target \(target)")
      }
    }
  }

  /// Each frame that a receiver gets refers only to frames that it got, however its wish changes and frames are
  /// reordered.
  @Test(arguments: RecordedStream.names, [41, 42, 43] as [UInt64])
  func sendsNoFrameWithoutItsReferences(_ name: String, seed: UInt64) throws {
    let stream = try RecordedStream(named: name)
    var random = SplitMix64(seed: seed)
    for _ in 0..<20 {
      let targets = stream.expected.decodeTargets.indices
      var selector = FrameSelector(at: stream.frames[0].frame, target: targets.randomElement(using: &random)!)
      var wanted = selector.target
      var got: Set<UInt64> = []
      var order = stream.frames
      for i in order.indices.dropFirst(2) where Int.random(in: 0..<10, using: &random) == 0 { order.swapAt(i, i - 1) }
      for (frame, structure) in order {
        if Int.random(in: 0..<5, using: &random) == 0 { wanted = targets.randomElement(using: &random)! }
        guard selector.admits(frame, wanted: wanted, structure) else { continue }
        let isStillAdmitted = selector.admits(frame, wanted: wanted, structure)
        #expect(isStillAdmitted)
        got.insert(frame.number)
      }
      #expect(!got.isEmpty)
      for (frame, _) in order where got.contains(frame.number) {
        for i in 0..<frame.dependencies.referenceCount {
          #expect(got.contains(frame.number - UInt64(frame.dependencies.reference(i))))
        }
      }
    }
  }

  @Test func temporalLayersGoDownAtOnceAndUpWhereTheReferencesWereSent() throws {
    let stream = try RecordedStream(named: "chrome-vp8-simulcast-e2ee-1212267467")
    var selector = FrameSelector(at: stream.frames[0].frame, target: 2)
    var layers: [Int] = []
    for (index, (frame, structure)) in stream.frames.enumerated() {
      if selector.admits(frame, wanted: (4..<9).contains(index) ? 0 : 2, structure) {
        layers.append(Int(frame.dependencies.temporalLayer))
      } else {
        layers.append(-1)
      }
    }
    // Four frames of everything, then only T0, and back through T1.
    #expect(layers[..<4].allSatisfy { $0 >= 0 })
    #expect(layers[4..<9].allSatisfy { $0 <= 0 })
    #expect(layers[9...].contains(2))
    #expect(selector.target == 2)
  }

  /// Simulcast layers share frame numbers, so a layer that is off may miss half a round of them.
  @Test func numbersRunOnAcrossAnOffLayer() throws {
    let (key, structure) = try RecordedStream(named: "chrome-vp8-simulcast-e2ee-1212267467").frames[0]
    var selector = FrameSelector(at: key, target: 0)
    var later = key
    later.number += 40_000
    // The old one is older than everything that is remembered.
    let admitted = [key, later, key].map { selector.admits($0, wanted: 0, structure) }
    #expect(admitted == [true, true, false])
  }

  /// A new structure may have fewer targets than the receiver's wish names.
  @Test func aTargetThatTheStructureLacksIsNoTarget() throws {
    let (key, _) = try RecordedStream(named: "chrome-vp8-simulcast-e2ee-1212267467").frames[0]
    var selector = FrameSelector(at: key, target: 0)
    let isAdmitted = selector.admits(key, wanted: 2, DependencyStructure())
    #expect(isAdmitted && selector.target == 0)
  }
}
