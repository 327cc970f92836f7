import CongestionControl
import Glibc
import Testing

struct LayerAllocatorTests {
  private static let camera = StreamWish(height: 180, steps: VideoSource.steps)
  private static let enlarged = StreamWish(height: 720, steps: VideoSource.steps)
  private static let screen = StreamWish(
    isScreen: true, height: 1_080,
    steps: [
      LayerStep(spatial: 0, temporal: 0, rate: 300_000, height: 1_080),
      LayerStep(spatial: 0, temporal: 1, rate: 700_000, height: 1_080),
      LayerStep(spatial: 0, temporal: 2, rate: 1_500_000, height: 1_080),
    ])

  private func settled(
    _ allocator: inout LayerAllocator, _ streams: [StreamWish], _ target: Int, now: inout Microseconds
  ) -> [Int?] {
    for _ in 0..<10 {
      now += 100 * millisecond
      _ = allocator.allocate(streams, target: target, proven: target, isCongested: false, now: now)
    }
    return streams.indices.map { allocator.step($0) }
  }

  @Test func aLadderHasNoStepThatCostsMoreThanABetterOne() {
    let ladder = LayerStep.ladder([
      LayerStep(spatial: 1, temporal: 0, rate: 250, height: 360),
      LayerStep(spatial: 0, temporal: 2, rate: 300, height: 180),
      LayerStep(spatial: 0, temporal: 0, rate: 100, height: 180),
      LayerStep(spatial: 1, temporal: 2, rate: 500, height: 360),
    ])
    #expect(ladder.map(\.rate) == [100, 250, 500])
  }

  @Test func noTrackGetsMoreThanItsWish() {
    var allocator = LayerAllocator()
    var now: Microseconds = 0
    let steps = settled(&allocator, [Self.camera], 10_000_000, now: &now)
    #expect(VideoSource.steps[steps[0]!].height == 180)
    #expect(allocator.nextStep(of: [Self.camera]) == nil)
  }

  /// Twelve publishers: a screen, one enlarged camera and ten small ones. The golden table has the allocation for each
  /// target when it is reached from above.
  @Test func theTargetFallsAndRises() throws {
    let streams = [Self.screen, Self.enlarged] + [StreamWish](repeating: Self.camera, count: 10)
    var allocator = LayerAllocator()
    var now: Microseconds = 0
    let full = settled(&allocator, streams, 10_000_000, now: &now)
    #expect(full[0] == 2)
    #expect(full[1] == VideoSource.steps.count - 1)
    var falling: [Int: [Int?]] = [:]
    let targets = (0..<460).map { Int(10_000_000 * pow(0.99, Double($0))) }
    for target in targets {
      let steps = settled(&allocator, streams, target, now: &now)
      #expect(allocator.rate(of: streams) <= target / 100 * 103)
      // The screen is the last to be dropped.
      if steps[0] == nil { #expect(target < 300_000) }
      falling[target] = steps
    }
    #expect(falling[targets.last!]!.count { $0 != nil } <= 1)
    var worst = 0
    for target in targets.reversed() {
      let steps = settled(&allocator, streams, target, now: &now)
      for (a, b) in zip(steps, falling[target]!) { worst = max(worst, abs((a ?? -1) - (b ?? -1))) }
    }
    // Going up needs 5 % more, and never takes from one stream to give to another.
    #expect(worst <= 4)
    let again = settled(&allocator, streams, 10_000_000, now: &now)
    #expect(again == full)
    var golden: [String] = []
    for wanted in [5_000_000, 2_500_000, 1_000_000, 500_000] {
      let target = try #require(targets.first { $0 <= wanted })
      let steps: [Int?] = falling[target]!
      golden.append(steps.map { step in step.map { "\($0)" } ?? "-" }.joined(separator: " "))
    }
    #expect(golden == Self.golden)
  }

  private static let golden = [
    "2 8 2 2 2 2 2 2 2 2 2 2", "2 4 1 0 0 0 0 0 0 0 0 0", "0 0 0 0 0 0 0 0 0 0 0 0", "0 0 0 0 - - - - - - - -",
  ]

  /// Every step that fits into the target is used, by any stream. If it were reserved for a stream for which it is not
  /// enough, no probe would go beyond it, and nobody would ever get more.
  @Test func noStepThatFitsIsLeft() {
    func camera(_ rates: [Int]) -> StreamWish {
      StreamWish(
        height: 720,
        steps: rates.enumerated().map { LayerStep(spatial: UInt8($0), temporal: 0, rate: $1, height: 180 << $0) })
    }
    // The last one is the cheapest, and the only one with room at first.
    let streams = [camera([42_000, 150_000]), camera([41_000, 150_000]), camera([40_000, 150_000])]
    var allocator = LayerAllocator()
    var now: Microseconds = 0
    #expect(settled(&allocator, streams, 42_900, now: &now) == [nil, nil, 0])
    var taken = 0
    while let next = allocator.nextStep(of: streams), taken < 6 {
      let before = allocator.rate(of: streams)
      _ = settled(&allocator, streams, next / 100 * 106 + 100, now: &now)
      #expect(allocator.rate(of: streams) > before)
      taken += 1
    }
    #expect(streams.indices.map { allocator.step($0) } == [1, 1, 1])
  }

  /// A probe for the rate of both would exceed what a narrow path carries, and the screen would not come back.
  @Test func aScreenNeedsNoRoomBesideTheCameraThatItReplaces() {
    func stream(_ rate: Int, isScreen: Bool) -> StreamWish {
      StreamWish(
        isScreen: isScreen, height: 720, steps: [LayerStep(spatial: 0, temporal: 0, rate: rate, height: 720)])
    }
    let streams = [stream(40_000, isScreen: false), stream(70_000, isScreen: true)]
    var allocator = LayerAllocator()
    var now: Microseconds = 0
    #expect(settled(&allocator, streams, 60_000, now: &now) == [0, nil])
    #expect(allocator.nextStep(of: streams) == 70_000)
    #expect(settled(&allocator, streams, 75_000, now: &now) == [nil, 0])
    // A camera takes nothing from the screen.
    #expect(allocator.nextStep(of: streams) == 110_000)
  }

  /// Cameras come back one after the other if the rate is low, and together if their key frames are a small part of it.
  @Test(arguments: [(250_000, 1), (4_000_000, 8)]) func camerasComeBackInTurn(target: Int, most: Int) {
    let streams = [StreamWish](repeating: Self.camera, count: 8)
    var allocator = LayerAllocator()
    var now: Microseconds = 0
    _ = settled(&allocator, streams, 10_000_000, now: &now)
    #expect(settled(&allocator, streams, 50_000, now: &now).allSatisfy { $0 == nil })
    var counts = [0]
    for _ in 0..<40 {
      now += 50 * millisecond
      _ = allocator.allocate(streams, target: target, proven: target, isCongested: false, now: now)
      counts.append(streams.indices.count { allocator.step($0) != nil })
    }
    #expect(counts.last! >= min(3, most), "\(counts)")
    #expect(counts.last! == min(8, target / 105 * 100 / Self.camera.steps[0].rate), "\(counts)")
    for (a, b) in zip(counts, counts.dropFirst(6)) { #expect(b - a <= most, "\(counts)") }
  }

  @Test func aShortExcessIsNoReasonToGoDown() {
    var allocator = LayerAllocator()
    var now: Microseconds = 0
    let streams = [Self.enlarged]
    _ = settled(&allocator, streams, 3_000_000, now: &now)
    let used = allocator.rate(of: streams)
    _ = allocator.allocate(streams, target: used / 100 * 90, proven: used, isCongested: false, now: now)
    _ = allocator.allocate(
      streams, target: used / 100 * 90, proven: used, isCongested: false, now: now + 100 * millisecond)
    #expect(allocator.rate(of: streams) == used)
    // A queue is a reason.
    let isLowered = allocator.allocate(
      streams, target: used / 100 * 90, proven: used, isCongested: true, now: now + 100 * millisecond)
    #expect(isLowered)
    #expect(allocator.rate(of: streams) <= used / 100 * 90)
  }

  @Test func aStepUpWaitsForProof() {
    var allocator = LayerAllocator()
    let streams = [Self.enlarged]
    _ = allocator.allocate(streams, target: 3_000_000, proven: 200_000, isCongested: false, now: 0)
    #expect(allocator.rate(of: streams) <= 200_000)
    let isRaisedInAQueue = allocator.allocate(
      streams, target: 3_000_000, proven: 3_000_000, isCongested: true, now: second)
    #expect(!isRaisedInAQueue)
    let isRaised = allocator.allocate(
      streams, target: 3_000_000, proven: 3_000_000, isCongested: false, now: 2 * second)
    #expect(isRaised)
    #expect(allocator.step(0) == VideoSource.steps.count - 1)
  }
}
